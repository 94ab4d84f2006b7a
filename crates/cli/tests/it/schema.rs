//! `llm-do schema`, `completions` and `--version`.

use crate::support::Sandbox;

#[test]
fn the_schemas_accept_what_the_loader_accepts() {
    let sandbox = Sandbox::new();
    let manifest = sandbox.run(&["schema", "manifest"]).ended(0).json();
    assert!(manifest["properties"]["runtime"]["properties"]["max_depth"]["maximum"] == 64, "{manifest}");
    let agent = sandbox.run(&["schema", "agent"]).ended(0).json();
    assert_eq!(agent["required"], serde_json::json!(["name"]));
    assert_eq!(agent["additionalProperties"], false);
    let both = sandbox.run(&["schema"]).ended(0).json();
    assert_eq!(both["manifest"], manifest);
    assert_eq!(both["output"], sandbox.run(&["schema", "output"]).ended(0).json());
}

#[test]
fn completions_are_made_for_every_shell() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let ran = Sandbox::new().run(&["completions", shell]).ended(0);
        assert!(ran.stdout.contains("approvals-from"), "{shell}");
    }
}

#[test]
fn help_and_version_go_to_stdout() {
    let sandbox = Sandbox::new();
    sandbox.run(&["--version"]).ended(0).told_nothing().said(concat!(
        "llm-do ",
        env!("CARGO_PKG_VERSION"),
        "\n"
    ));
    assert!(sandbox.run(&["--help"]).ended(0).told_nothing().stdout.contains("Exit codes:"));
    sandbox.run(&[]).ended(2).said("").told("Usage:");
}
