//! `llm-do call`: by name, through the gate.

use serde_json::json;

use crate::support::Sandbox;

#[test]
fn an_agent_is_called_by_name() {
    let sandbox = Sandbox::asking();
    let input = r#"{"input": "direct"}"#;
    // Who starts a call at the shell has chosen it: the policy is about calls that agents make.
    sandbox.run(&["call", ".", "helper", "--input-json", input]).ended(0).said("direct\n");
}

#[test]
fn an_unknown_name_is_answered_with_the_nearest() {
    Sandbox::asking().run(&["call", ".", "helpr"]).ended(2).said("").told("did you mean `helper`?");
}

#[test]
fn a_dry_run_says_what_the_gate_would_say() {
    let sandbox = Sandbox::asking();
    let input = r#"{"input": "x"}"#;
    let arguments = ["call", ".", "helper", "--input-json", input, "--dry-run", "--output", "json"];
    let verdict = sandbox.run(&arguments).ended(0).json();
    assert_eq!(verdict["decision"], "allow");
    assert_eq!(verdict["arguments"], json!({"input": "x"}));
    let unknown = sandbox.run(&["call", ".", "nobody", "--dry-run", "--output", "json"]).ended(2).json();
    assert_eq!((&unknown["decision"], &unknown["failure"]), (&json!("cannot_be_done"), &json!("unknown")));
    assert!(unknown["reason"].as_str().unwrap().contains("there is no tool or agent `nobody`"));
    let wrong = ["call", ".", "helper", "--input-json", "[1]", "--dry-run"];
    sandbox.run(&wrong).ended(2).told("not valid JSON input");
}

#[test]
fn a_call_in_the_name_of_an_agent_keeps_to_the_policy_for_agents() {
    let input = r#"{"input": "x"}"#;
    let arguments =
        ["call", ".", "helper", "--as", "main", "--input-json", input, "--dry-run", "--output", "json"];
    assert_eq!(Sandbox::asking().run(&arguments).ended(5).json()["decision"], "ask");
}

#[test]
fn a_dry_run_says_whether_a_call_can_be_done_in_words_and_by_its_exit_code() {
    let agent = "---\nname: main\nmodel: test:echo\ntoolsets: [filesystem_project]\n\
        approval: {'*': pre_approved, list_files: blocked}\n---\nx";
    let sandbox = Sandbox::new().file("main.agent", agent).file("a.txt", "hello");
    let judged = |name: &str, input: serde_json::Value, exit: i32| {
        let input = input.to_string();
        let arguments = ["call", ".", name, "--as", "main", "--input-json", &input, "--dry-run"];
        let object = sandbox.run(&[&arguments[..], &["--output", "json"]].concat()).ended(exit).json();
        (object["decision"].as_str().unwrap().to_owned(), sandbox.run(&arguments).ended(exit).stdout)
    };
    let edit = |path: &str, old: &str| json!({"path": path, "edits": [{"old": old, "new": "x"}]});
    for (name, input, decision, exit, text) in [
        ("edit_file", edit("a.txt", "hello"), "allow", 0, "allow: a rule of the agent allows it"),
        (
            "edit_file",
            edit("gone.txt", "x"),
            "cannot_be_done",
            1,
            "cannot be done: `gone.txt` does not exist",
        ),
        ("edit_file", edit("a.txt", "other"), "cannot_be_done", 1, "cannot be done: edit 1: the text `old`"),
        ("edit_file", json!({"path": "a.txt"}), "cannot_be_done", 2, "cannot be done: invalid arguments"),
        (
            "write_file",
            json!({"path": "a.txt/b", "content": ""}),
            "cannot_be_done",
            1,
            "cannot be done: `a.txt",
        ),
        ("read_file", json!({"path": "a.txt"}), "allow", 0, "allow:"),
        (
            "read_file",
            json!({"path": "gone.txt"}),
            "cannot_be_done",
            1,
            "cannot be done: `gone.txt` does not exist",
        ),
        ("read_file", json!({"path": "../x"}), "block", 5, "leads out of the root"),
        ("search_files", json!({"pattern": "("}), "cannot_be_done", 1, "cannot be done: "),
        (
            "search_files",
            json!({"pattern": "x", "path": "gone"}),
            "cannot_be_done",
            1,
            "cannot be done: `gone`",
        ),
        ("list_files", json!({"path": "gone"}), "block", 5, "a rule blocks it"),
        ("raed_file", json!({}), "cannot_be_done", 2, "did you mean `read_file`?"),
    ] {
        let (word, shown) = judged(name, input.clone(), exit);
        assert_eq!(word, decision, "{name} {input}: {shown}");
        assert!(shown.contains(text), "{name} {input}: {shown}");
    }
}

#[test]
fn an_agent_is_not_called_without_input() {
    Sandbox::asking().run(&["call", ".", "helper"]).ended(2).told("no input was given");
}

#[test]
fn an_agent_that_does_not_exist_lends_its_name_to_nobody() {
    let input = r#"{"input": "x"}"#;
    let arguments = ["call", ".", "helper", "--as", "mian", "--input-json", input];
    let ran = Sandbox::asking().run(&arguments).ended(2);
    ran.told("there is no agent `mian`").told("did you mean `main`?");
}

#[test]
fn a_tool_does_not_read_stdin_by_itself() {
    let agent = "---\nname: main\nmodel: test:echo\ntoolsets: [filesystem_project]\n---\nx";
    let sandbox = Sandbox::new().file("main.agent", agent);
    sandbox.run_with_silent_stdin(&["call", ".", "list_files"]).ended(0);
    sandbox.run_with_silent_stdin(&["call", ".", "read_file"]).ended(2).told("missing required field `path`");
    sandbox
        .run_with_silent_stdin(&["call", ".", "nobody"])
        .ended(2)
        .told("there is no tool or agent `nobody`");
    sandbox.run_with(&["call", ".", "list_files", "--input-json", "-"], b"{}").ended(0);
}

#[test]
fn a_shell_loop_around_a_tool_keeps_its_lines() {
    let agent = "---\nname: main\nmodel: test:echo\ntoolsets: [filesystem_project]\n---\nx";
    let sandbox = Sandbox::new().file("main.agent", agent).file("list", "one\ntwo\nthree\n");
    let script =
        "while read -r line; do \"$LLM_DO\" call . list_files >/dev/null; echo \"$line\"; done <list";
    let mut shell = std::process::Command::new("sh");
    shell.args(["-c", script]).env("LLM_DO", env!("CARGO_BIN_EXE_llm-do")).current_dir(sandbox.root());
    crate::support::Ran::from(shell.output().unwrap()).ended(0).said("one\ntwo\nthree\n");
}

#[test]
fn what_takes_a_text_reads_it_from_stdin() {
    let sandbox = Sandbox::asking();
    sandbox.run_with(&["call", ".", "helper"], b"by pipe\n").ended(0).said("by pipe\n");
    let typed = "---\nname: typed\nmodel: test:echo\ninput_schema: {type: object, required: [topic], \
        properties: {topic: {type: string}}}\n---\nx";
    let sandbox = sandbox.file("typed.agent", typed);
    sandbox.run_with_silent_stdin(&["call", ".", "typed"]).ended(2).told("no input was given");
}

/// An agent whose model is kept from writing, and a script that tries it.
fn manual() -> Sandbox {
    let header = "---\nname: main\nmodel: script:script.yaml\ntoolsets: [filesystem_project]\n\
        manual_only: [write_file, 'edit_*']\n---\nx";
    Sandbox::new().file("main.agent", header).file(
        "script.yaml",
        "mode: by_turn\nreplies:\n  - ask: {write_file: {path: a.txt, content: mine}}\n  - say: left it\n",
    )
}

#[test]
fn a_manual_only_tool_is_for_people_and_not_for_models() {
    let input = r#"{"path": "a.txt", "content": "yours"}"#;
    let sandbox = manual();
    let ran = sandbox.run(&["run", "main.agent", "go", "--approve-all", "-v"]).ended(0).said("left it\n");
    ran.told("`write_file` is manual-only: only a person or code may call it");
    assert!(!sandbox.path("a.txt").exists());

    let arguments = ["call", "main.agent", "write_file", "--input-json", input];
    sandbox.run(&arguments).ended(5).told("must ask");
    assert!(!sandbox.path("a.txt").exists(), "the gate asks people too");
    sandbox.run(&[&arguments[..], &["--approve-all"]].concat()).ended(0);
    assert_eq!(std::fs::read_to_string(sandbox.path("a.txt")).unwrap(), "yours");

    let line = r#"/call write_file {"path": "b.txt", "content": "yours"}"#;
    sandbox.run_with(&["chat", "main.agent", "--approve-all"], line.as_bytes()).ended(0);
    assert_eq!(std::fs::read_to_string(sandbox.path("b.txt")).unwrap(), "yours");
}

#[test]
fn what_is_manual_only_is_listed_and_in_the_reach() {
    let sandbox = manual();
    let list = sandbox.run(&["list", "main.agent"]).ended(0).stdout;
    assert!(list.contains("write_file (manual-only, asks first)"), "{list}");
    assert!(list.contains("write_file  write access, manual-only, asks first"), "{list}");
    let listed = sandbox.run(&["list", "main.agent", "--output", "json"]).ended(0).json();
    let tools = listed["tools"].as_array().unwrap();
    let is_manual =
        |name: &str| tools.iter().find(|tool| tool["name"] == name).unwrap()["manual_only"].clone();
    assert_eq!((is_manual("write_file"), is_manual("read_file")), (json!(true), json!(false)));
    let reach = sandbox.run(&["check", "main.agent", "--reach"]).ended(0).stdout;
    assert!(reach.contains("edit_file  (filesystem_project, write access): manual-only, "), "{reach}");
    assert!(reach.contains("; 2 not for models"), "{reach}");
}

#[test]
fn a_manifest_keeps_tools_of_a_toolset_from_all_models() {
    let with = |manual_only: &str| {
        let manifest = format!(
            "version: 1\nentry: {{agent: main}}\nagent_files: [main.agent]\n\
             toolsets: {{notes: {{toolset: filesystem_project, manual_only: [{manual_only}]}}}}\n"
        );
        let header = "---\nname: main\nmodel: script:script.yaml\ntoolsets: [notes]\n---\nx";
        manual().file("project.yaml", &manifest).file("main.agent", header)
    };
    let sandbox = with("write_file");
    sandbox.run(&["run", ".", "go", "--approve-all", "-v"]).ended(0).told("`write_file` is manual-only");
    assert!(!sandbox.path("a.txt").exists());
    with("wirte_file")
        .run(&["check", "."])
        .ended(2)
        .told("`manual_only` names `wirte_file`")
        .told("did you mean `write_file`?");
    with("'{a'").run(&["check", "."]).ended(2).told("has an invalid name or glob: `{a`");
    let own = Sandbox::new().file(
        "main.agent",
        "---\nname: main\ntoolsets: [filesystem_project]\nmanual_only: [wirte_file]\n---\nx",
    );
    own.run(&["check", "main.agent"]).ended(2).told("main.agent, line 4").told("did you mean `write_file`?");
    let chosen = "---\nname: main\ntoolsets: [filesystem_project]\nmanual_only: [write_file]\n\
        model_settings: {tool_choice: {tool: write_file}}\n---\nx";
    manual()
        .file("main.agent", chosen)
        .run(&["check", "main.agent"])
        .ended(2)
        .told("`tool_choice` names the tool `write_file`");
}
