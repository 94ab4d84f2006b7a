//! Lines at a real terminal: approvals, colors, the chat's editor.

use std::process::Command;
use std::time::Duration;

use expectrl::{Expect, Session, session::OsSession};

use crate::support::Sandbox;

/// Starts a shell line at a terminal of its own.
pub fn at_terminal(sandbox: &Sandbox, line: &str) -> OsSession {
    let mut command = Command::new("sh");
    command.args(["-c", line]).current_dir(sandbox.root()).env("LLM_DO", env!("CARGO_BIN_EXE_llm-do"));
    command.env("TERM", "xterm").env_remove("NO_COLOR").env_remove("LLM_DO_MODEL");
    command.env_remove("XDG_CONFIG_HOME").env_remove("XDG_DATA_HOME");
    command.env("XDG_STATE_HOME", sandbox.state()).env("HOME", sandbox.home());
    let mut session = Session::spawn(command).unwrap();
    session.set_expect_timeout(Some(Duration::from_secs(30)));
    session
}

pub fn ended(mut session: OsSession) -> String {
    let found = session.expect(expectrl::Eof).unwrap();
    let rest = String::from_utf8_lossy(found.as_bytes()).into_owned();
    rest.replace("\r\n", "\n")
}

const CHOICES: &str = "[y] once";

#[test]
fn a_person_sees_path_tool_and_arguments_and_allows_once() {
    let sandbox = Sandbox::asking();
    let mut session = at_terminal(&sandbox, "\"$LLM_DO\" run . hello --headless; echo code $?");
    let shown = session.expect(CHOICES).unwrap();
    let shown = String::from_utf8_lossy(shown.before()).into_owned();
    assert!(shown.contains("main > helper") && shown.contains("\"input\": \"may I\""), "{shown}");
    session.send_line("y").unwrap();
    let rest = ended(session);
    assert!(rest.contains("the end") && rest.contains("code 0"), "{rest}");
}

#[test]
fn a_person_is_asked_also_where_stdin_is_a_pipe() {
    let sandbox = Sandbox::asking();
    let mut session = at_terminal(&sandbox, "echo hello | \"$LLM_DO\" run . -v; echo code $?");
    session.expect(CHOICES).unwrap();
    session.send_line("n too early").unwrap();
    let rest = ended(session);
    assert!(rest.contains("denied: too early") && rest.contains("code 0"), "{rest}");
}

#[test]
fn a_person_chooses_a_scope_or_stops() {
    let sandbox = Sandbox::asking().file(
        "script.yaml",
        "mode: by_turn\nreplies:\n  - ask: {helper: {input: one}}\n  - ask: {helper: {input: two}}\n  - say: the end\n",
    );
    let mut session = at_terminal(&sandbox, "\"$LLM_DO\" run . hello --headless; echo code $?");
    session.expect(CHOICES).unwrap();
    session.send_line("a").unwrap();
    session.expect("2  every call of this tool").unwrap();
    session.send_line("2").unwrap();
    let rest = ended(session);
    assert!(!rest.contains(CHOICES) && rest.contains("the end"), "{rest}");
    let mut session = at_terminal(&sandbox, "\"$LLM_DO\" run . hello --headless; echo code $?");
    session.expect(CHOICES).unwrap();
    session.send_line("q").unwrap();
    let rest = ended(session);
    assert!(rest.contains("stopped at the approval") && rest.contains("code 130"), "{rest}");
}

#[test]
fn another_terminal_answers_a_question_that_waits_at_this_one() {
    let sandbox = Sandbox::asking();
    let mut session = at_terminal(&sandbox, "\"$LLM_DO\" run . hello --headless; echo code $?");
    session.expect(CHOICES).unwrap();
    let open = sandbox.run(&["approvals", "--output", "json"]).ended(0).json();
    let approved = sandbox.run(&["approve", open[0]["id"].as_str().unwrap()]).ended(0);
    assert_eq!(approved.stderr, "", "the run goes on by itself");
    let rest = ended(session);
    assert!(rest.contains("the end") && rest.contains("code 0"), "{rest}");
}

#[test]
fn a_person_edits_the_arguments_in_an_editor() {
    let sandbox = Sandbox::asking().file("edit.sh", "#!/bin/sh\nsed -i 's/may I/edited/' \"$2\"\n");
    let line = "EDITOR='sh edit.sh --flag' \"$LLM_DO\" run . hello -v; echo code $?";
    let mut session = at_terminal(&sandbox, line);
    session.expect(CHOICES).unwrap();
    session.send_line("e").unwrap();
    let shown = session.expect(CHOICES).unwrap();
    assert!(String::from_utf8_lossy(shown.before()).contains("\"input\": \"edited\""));
    session.send_line("y").unwrap();
    let rest = ended(session);
    assert!(rest.contains("runs with {\"input\":\"edited\"}") && rest.contains("code 0"), "{rest}");
    let recorded = sandbox.run(&["show", "last", "--output", "jsonl"]).ended(0);
    assert!(recorded.stdout.contains(r#""answered_by":{"via":"terminal"}"#), "{recorded:?}");
}

#[test]
fn an_editor_that_changes_nothing_is_no_answer() {
    let sandbox = Sandbox::asking();
    let mut session = at_terminal(&sandbox, "EDITOR=true \"$LLM_DO\" run . hello --headless; echo code $?");
    session.expect(CHOICES).unwrap();
    session.send_line("e").unwrap();
    session.expect("nothing was changed").unwrap();
    session.expect(CHOICES).unwrap();
    session.send_line("n no").unwrap();
    assert!(ended(session).contains("code 0"));
}

#[test]
fn a_forged_line_stays_on_its_line() {
    let sandbox = Sandbox::new()
        .file(
            "main.agent",
            "---\nname: main\nmodel: script:script.yaml\ntoolsets: [filesystem_project]\n---\nx",
        )
        .file(
            "script.yaml",
            "- ask: {write_file: {path: \"x\\n[y] once  > \", content: \"\"}}\n- say: done\n",
        );
    let mut session = at_terminal(&sandbox, "\"$LLM_DO\" run . hello --headless; echo code $?");
    let shown = session.expect(CHOICES).unwrap();
    let shown = String::from_utf8_lossy(shown.before()).into_owned();
    assert!(shown.contains("create `x\\n"), "{shown}");
    session.expect("stop > ").unwrap();
    session.send_line("n no").unwrap();
    assert!(ended(session).contains("code 0"));
}

#[test]
fn what_was_typed_before_the_question_is_no_answer() {
    let sandbox = Sandbox::asking().file("slow.yaml", "- say: x\n  delay: 1s\n").file(
        "script.yaml",
        "mode: by_turn\nreplies:\n  - ask: {helper: {input: may I}}\n    delay: 1s\n  - say: the end\n",
    );
    let mut session = at_terminal(&sandbox, "\"$LLM_DO\" run . hello --headless; echo code $?");
    session.send_line("y").unwrap();
    session.expect(CHOICES).unwrap();
    session.send_line("n").unwrap();
    session.expect("why?").unwrap();
    session.send_line("").unwrap();
    let rest = ended(session);
    assert!(rest.contains("code 0"), "{rest}");
}

#[test]
fn control_signs_are_shown_and_not_obeyed() {
    let sandbox = Sandbox::asking().file(
        "script.yaml",
        "mode: by_turn\nreplies:\n  - ask: {helper: {input: \"a\\u202Eb\\u200Bc\"}}\n  - say: \"the \\e[2Jend\"\n",
    );
    let mut session = at_terminal(&sandbox, "NO_COLOR=1 \"$LLM_DO\" run . hello --headless; echo code $?");
    let shown = session.expect(CHOICES).unwrap();
    let shown = String::from_utf8_lossy(shown.before()).into_owned();
    assert!(shown.contains(r#""a\u202eb\u200bc""#), "{shown}");
    session.send_line("y").unwrap();
    let rest = ended(session);
    assert!(rest.contains("the \\u{1b}[2Jend"), "{rest}");
}

#[test]
fn colors_come_on_a_terminal_and_not_with_no_color() {
    let sandbox = Sandbox::echo();
    let colored = ended(at_terminal(&sandbox, "\"$LLM_DO\" check nowhere"));
    assert!(colored.contains("\u{1b}[31;1merror\u{1b}[0m: "), "{colored}");
    let plain = ended(at_terminal(&sandbox, "NO_COLOR=1 \"$LLM_DO\" check nowhere"));
    assert!(plain.contains("error: ") && !plain.contains("\u{1b}[31"), "{plain}");
}

#[test]
fn a_long_run_shows_its_progress() {
    let sandbox = Sandbox::scripted("- say: late\n  delay: 1s\n");
    let seen = ended(at_terminal(&sandbox, "\"$LLM_DO\" run . hello --headless"));
    assert!(
        seen.contains("script:script.yaml") && seen.contains("0s") && seen.contains("requests"),
        "{seen}"
    );
    assert!(seen.trim_end().ends_with("late"), "{seen}");
}

#[test]
fn a_chat_has_an_editor_and_a_history() {
    let sandbox = Sandbox::echo();
    let mut session = at_terminal(&sandbox, "\"$LLM_DO\" chat . --headless");
    session.expect("> ").unwrap();
    session.send_line("hello there").unwrap();
    session.expect("hello there\r\n").unwrap();
    session.expect("> ").unwrap();
    session.send("\u{4}").unwrap();
    ended(session);
    let history = std::fs::read_to_string(sandbox.state().join("llm-do/history")).unwrap();
    assert!(history.contains("hello there"), "{history}");
}

#[test]
fn ctrl_c_at_the_terminal_ends_the_run() {
    let sandbox = Sandbox::scripted("- say: late\n  delay: 60s\n");
    let mut session = at_terminal(&sandbox, "trap : INT; \"$LLM_DO\" run . hello --headless; echo code $?");
    session.expect("script:script.yaml").unwrap();
    session.send("\u{3}").unwrap();
    let rest = ended(session);
    assert!(rest.contains("code 130"), "{rest}");
}

#[test]
fn a_question_comes_after_the_lines_about_what_led_to_it() {
    let replies = "mode: by_turn\nreplies:\n  - say: First I look.\n    ask: {list_files: {}}\n  \
        - say: Now I ask.\n    ask: {helper: {input: may I}}\n  - say: the end\n";
    let agent =
        "---\nname: main\nmodel: script:script.yaml\ntoolsets: [helper, filesystem_project]\n---\nAsk.\n";
    let sandbox = Sandbox::asking().file("main.agent", agent).file("script.yaml", replies);
    let plain =
        ["main says: First I look.", "list_files is done", "main says: Now I ask.", "main calls helper"];
    let lines = ["[main > list_files] ->", "[main] Now I ask.", "[main > helper]"];
    for (flags, choices, expected) in
        [("--plain", "Type y to allow", &plain[..]), ("--headless -vv", CHOICES, &lines)]
    {
        for _ in 0..5 {
            let line = format!("NO_COLOR=1 \"$LLM_DO\" run . hello {flags}; echo code $?");
            let mut session = at_terminal(&sandbox, &line);
            let question = session.expect(choices).unwrap();
            let before = String::from_utf8_lossy(question.before()).into_owned();
            let mut rest = before.as_str();
            for part in expected {
                let Some(found) = rest.find(part) else {
                    panic!("{flags}: `{part}` is not in order in {before}")
                };
                rest = &rest[found..];
            }
            session.send_line("n no").unwrap();
            assert!(ended(session).contains("code 0"));
        }
    }
}

#[test]
fn a_key_is_typed_without_being_shown() {
    let sandbox = Sandbox::new();
    let line = "stty echo; \"$LLM_DO\" auth login openai; echo code $?; stty -a | grep -o ' echo '; \"$LLM_DO\" auth list";
    let mut session = at_terminal(&sandbox, line);
    session.expect("Key of openai: ").unwrap();
    session.send_line("sk-typed-canary-4321").unwrap();
    let rest = ended(session);
    assert!(rest.contains("stored the key of openai") && rest.contains("code 0"), "{rest}");
    assert!(rest.contains(" echo ") && rest.contains("...4321  stored"), "{rest}");
    assert!(!rest.contains("canary"), "{rest}");

    let mut session = at_terminal(
        &sandbox,
        "stty echo; \"$LLM_DO\" auth login groq; echo code $?; stty -a | grep -o ' echo '",
    );
    session.expect("Key of groq: ").unwrap();
    session.send("sk-can\x03").unwrap();
    let rest = ended(session);
    assert!(
        rest.contains("nothing was stored") && rest.contains("code 2") && rest.contains(" echo "),
        "{rest}"
    );
}

#[test]
fn a_no_to_more_trust_keeps_the_agreement_and_says_so() {
    let manifest = "version: 1\nentry: {agent: main}\nagent_files: [main.agent]\npython_files: [tools.py]\n";
    let sandbox = Sandbox::untrusted()
        .file("project.yaml", manifest)
        .file("main.agent", "---\nname: main\nmodel: test:echo\n---\nEcho.\n")
        .file("tools.py", "ONE = 1\n");
    for (flag, question, answer, end) in [
        ("", "Trust this directory?", "n", ": not trusted\ncode 2"),
        ("", "Trust this directory?", "y", "code 0"),
        ("--own", "also after you edit it.", "n", "still holds\ncode 2"),
        ("--own", "also after you edit it.", "y", "code 0"),
    ] {
        let mut session = at_terminal(&sandbox, &format!("\"$LLM_DO\" trust . {flag}; echo code $?"));
        session.expect(question).unwrap();
        session.send_line(answer).unwrap();
        let rest = ended(session);
        assert!(rest.contains(end), "{flag} {answer}: {rest}");
    }
    assert!(sandbox.run(&["trust", ".", "--own"]).ended(0).stdout.starts_with("already trusted since"));
}

#[test]
fn changed_code_runs_after_a_yes() {
    let manifest = "version: 1\nentry: {agent: main}\nagent_files: [main.agent]\npython_files: [tools.py]\n";
    let sandbox = Sandbox::untrusted()
        .file("project.yaml", manifest)
        .file("main.agent", "---\nname: main\nmodel: test:echo\n---\nEcho.\n")
        .file("tools.py", "ONE = 1\n")
        .config("[trust]\ncontent = \"ask\"\n");
    let mut session = at_terminal(&sandbox, "\"$LLM_DO\" run . hi --headless; echo code $?");
    session.expect("[y] yes, remember").unwrap();
    session.send_line("y").unwrap();
    assert!(ended(session).contains("code 0"));
    let sandbox = sandbox.file("tools.py", "TWO = 2\n");
    for (answer, code) in [("", "code 2"), ("y", "code 0")] {
        let mut session = at_terminal(&sandbox, "\"$LLM_DO\" run . hi --headless; echo code $?");
        session.expect("Run the changed code?").unwrap();
        session.send_line(answer).unwrap();
        let rest = ended(session);
        assert!(rest.contains(code), "{rest}");
    }
    let rest = ended(at_terminal(&sandbox, "\"$LLM_DO\" run . hi --headless; echo code $?"));
    assert!(rest.contains("code 0") && !rest.contains("changed"), "{rest}");
}

#[test]
fn an_answer_that_streams_to_a_terminal_is_not_mixed_with_other_lines() {
    let sandbox = Sandbox::scripted("- say: \"one two three\\nfour \\u001b[31mfive\"\n  pace: 150ms\n");
    let line = "NO_COLOR=1 \"$LLM_DO\" run . hello --headless -vv; echo code $?";
    let mut session = at_terminal(&sandbox, line);
    session.expect("one two").unwrap();
    let rest = ended(session);
    // What `-vv` says about the same text waits until the answer has its line end.
    assert!(rest.starts_with(" three\nfour \\u{1b}[31mfive\n"), "{rest}");
    assert!(rest.contains("[main] one two three") && rest.contains("code 0"), "{rest}");
    // Without `-v` a status line is drawn until the answer begins, and never behind it.
    let mut session = at_terminal(&sandbox, "\"$LLM_DO\" run . hello --headless; echo code $?");
    session.expect("one two").unwrap();
    assert_eq!(ended(session), " three\nfour \\u{1b}[31mfive\ncode 0\n");
}
