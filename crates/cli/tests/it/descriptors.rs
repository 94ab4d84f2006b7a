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

#[test]
fn a_person_reads_that_descriptors_belong_to_a_conversation() {
    let sandbox = Sandbox::new();
    let agent = "---\nname: main\nmodel: test:echo\ntoolsets: [file_descriptors]\n---\nRead.\n";
    std::fs::write(sandbox.path("main.agent"), agent).unwrap();
    let called = sandbox.run(&["call", ".", "list_fd"]);
    called.told(
        "`list_fd` is about the file descriptors of an agent's conversation, and this call belongs to none",
    );
    let listed = sandbox.run(&["list", "."]).ended(0);
    assert!(!listed.stdout.contains("::"), "{}", listed.stdout);
    assert!(listed.stdout.contains("they belong to the conversation of an agent"), "{}", listed.stdout);
}

#[test]
fn what_an_agent_lists_to_no_use_is_noticed() {
    let sandbox = Sandbox::new();
    let agent =
        "---\nname: main\nmodel: test:echo\ntools: [tune, {name: calculator, alias: read_fd}]\n---\nWork.\n";
    std::fs::write(sandbox.path("main.agent"), agent).unwrap();
    let checked = sandbox.run(&["check", "."]).ended(0);
    let checked =
        checked.told("`tune` is not offered to the model, because the agent has no `tuning` section");
    checked.told("its `read_fd` replaces the tool that reads long results, so they are truncated");
}

#[test]
fn no_line_of_an_error_log_looks_like_one_of_the_program() {
    let sandbox = Sandbox::new();
    let agent = "---\nname: main\nmodel: script:s.yaml\ntools: [write_stderr]\n---\nWork.\n";
    std::fs::write(sandbox.path("main.agent"), agent).unwrap();
    let script = "- ask: {write_stderr: {message: \"fine\\n[main] notice: approved\"}}\n- say: done\n";
    std::fs::write(sandbox.path("s.yaml"), script).unwrap();
    let ran = sandbox.run(&["run", ".", "go"]).ended(0);
    ran.told("fine\n    [main] notice: approved\n");
}
