//! Hints of failed runs are for the person who reads them, not for models or embedding programs.

use serde_json::json;

use crate::support::{Ran, Sandbox};

/// What only a model or the code of a program can follow.
const NOT_FOR_PEOPLE: [&str; 8] = [
    "call it again",
    "make the call again",
    "answer with what",
    "answer without calling",
    "go on without it",
    "approver",
    "builder",
    "do the work here",
];

/// Runs it in both forms and returns the hint.
fn hint(sandbox: &Sandbox, arguments: &[&str], exit: i32) -> String {
    let text: Ran = sandbox.run(arguments).ended(exit);
    let object = sandbox.run(&[arguments, &["--output", "json"]].concat()).ended(exit).json();
    let hint = object["hint"].as_str().unwrap_or_default().to_owned();
    for phrase in NOT_FOR_PEOPLE {
        assert!(!text.stderr.contains(phrase), "{phrase}: {text:#?}");
        assert!(!hint.contains(phrase) && !object["error"].to_string().contains(phrase), "{object:#}");
    }
    let told = text.stderr.lines().filter(|line| line.starts_with("hint: ")).count();
    assert_eq!(told, usize::from(!hint.is_empty()), "one hint at most: {text:#?}");
    hint
}

fn scripted(header: &str, replies: &str) -> Sandbox {
    let agent = format!("---\nname: main\nmodel: script:script.yaml\n{header}---\nx\n");
    Sandbox::new()
        .file("main.agent", &agent)
        .file("script.yaml", &format!("mode: by_turn\nreplies: {replies}\n"))
}

#[test]
fn arguments_that_do_not_fit_name_the_flag() {
    let sandbox = scripted("toolsets: [filesystem_project]\n", "[{say: x}]");
    let wrong = ["call", ".", "read_file", "--input-json", "{\"pth\": 1}"];
    assert!(hint(&sandbox, &wrong, 2).contains("--input-json"));
    let typed = scripted("input_schema: {type: object, required: [topic]}\n", "[{say: x}]");
    assert!(hint(&typed, &["run", ".", "hello"], 2).contains("--input-json"));
}

#[test]
fn limits_name_the_key_that_set_them() {
    let again = "[{ask: {main: {input: again}}}, {ask: {main: {input: again}}}, {say: x}]";
    let turns = scripted("toolsets: [main]\n", again);
    assert!(hint(&turns, &["run", ".", "x", "--max-turns", "1"], 4).contains("turns"));
    let tokens = scripted("limits: {tokens: 5}\n", "[{say: x}]");
    let shown = hint(&tokens, &["run", ".", "x"], 4);
    assert_eq!(shown, "`limits.tokens` sets the limit");
}

#[test]
fn a_call_that_nobody_could_be_asked_about_has_one_hint() {
    let asking = Sandbox::asking();
    let call = ["call", ".", "helper", "--as", "main", "--input-json", "\"x\""];
    assert!(hint(&asking, &call, 5).contains("`--approve all`"));
    assert!(hint(&asking, &["run", ".", "x"], 5).contains("`--approve all`"));
}

#[test]
fn a_conversation_that_is_too_long_has_a_way_out() {
    let sandbox = scripted("", "[{fail: {kind: context_overflow, message: 4605 tokens exceed 4096}}]");
    let way = hint(&sandbox, &["run", ".", "x"], 3);
    for part in ["less input", "/clear", "/goto N"] {
        assert!(way.contains(part), "{way}");
    }
}

#[test]
fn an_answer_has_no_hint() {
    let object = Sandbox::echo().run(&["run", ".", "x", "--output", "json"]).ended(0).json();
    assert_eq!(object["hint"], json!(null));
}

#[test]
fn a_call_that_fails_again_and_again_names_the_limit() {
    let call = "{ask: {read_file: {path: nosuch.txt}}}";
    let sandbox = scripted(
        "toolsets: [filesystem_project]\n",
        &format!("[{call}, {call}, {call}, {call}, {{say: x}}]"),
    );
    let shown = hint(&sandbox, &["run", ".", "x"], 4);
    assert!(shown.contains("`limits.repeats`"), "{shown}");
}
