//! What the calling program left open is for this process alone.

use std::process::Command;

use crate::support::Sandbox;

#[test]
fn programs_that_tools_start_get_no_descriptor_that_somebody_left_open() {
    let sandbox = Sandbox::new();
    let agent = "---\nname: main\nmodel: test:echo\ntoolsets: [shell_readonly]\n---\nLook.\n";
    std::fs::write(sandbox.path("main.agent"), agent).unwrap();
    let open = sandbox.path("open.txt");
    let command = r#"{"command": "find . -maxdepth 0 -exec sh -c \"echo mine >&9; ls /proc/self/fd\" \\;"}"#;
    let script = r#"exec 9>"$1"; exec "$0" call . shell --approve all --input-json "$2""#;
    let output = Command::new("sh")
        .args(["-c", script, env!("CARGO_BIN_EXE_llm-do")])
        .args([open.as_os_str(), command.as_ref()])
        .current_dir(sandbox.root())
        .output()
        .unwrap();
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(printed.contains("exit_code"), "{output:?}");
    assert_eq!(std::fs::read_to_string(open).unwrap(), "", "{printed}");
}
