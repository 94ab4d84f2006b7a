//! Questions that are left open, and answered by other processes.

use std::process::Stdio;

use serde_json::Value;

use crate::support::{Ran, Sandbox};

/// Two agents, each three calls deep, that write a file; both writes ask.
fn two_writers() -> Sandbox {
    let agent = |name: &str, rest: &str| {
        format!("---\nname: {name}\nmodel: script:{name}.yaml\n{rest}\n---\nWork.\n")
    };
    let calls = |call: &str| format!("mode: by_turn\nreplies:\n  - ask: {call}\n  - say: both wrote\n");
    Sandbox::new()
        .file("project.yaml", "version: 1\nentry: {agent: main}\nagent_files: ['*.agent']\n")
        .file("main.agent", &agent("main", "toolsets: [left, right]"))
        .file("left.agent", &agent("left", "toolsets: [one]"))
        .file("right.agent", &agent("right", "toolsets: [two]"))
        .file("one.agent", &agent("one", "toolsets: [filesystem_project]"))
        .file("two.agent", &agent("two", "toolsets: [filesystem_project]"))
        .file("main.yaml", &calls("{left: {input: a}, right: {input: b}}"))
        .file("left.yaml", &calls("{one: {input: go}}"))
        .file("right.yaml", &calls("{two: {input: go}}"))
        .file("one.yaml", &calls("{write_file: {path: one.txt, content: '1'}}"))
        .file("two.yaml", &calls("{write_file: {path: two.txt, content: '2'}}"))
}

/// One agent that writes a file, which asks.
fn writer() -> Sandbox {
    Sandbox::new()
        .file("project.yaml", "version: 1\nentry: {agent: main}\nagent_files: [main.agent]\n")
        .file(
            "main.agent",
            "---\nname: main\nmodel: script:script.yaml\ntoolsets: [filesystem_project]\n---\nWrite.\n",
        )
        .file(
            "script.yaml",
            "mode: by_turn\nreplies:\n  - ask: {write_file: {path: a.txt, content: hello}}\n  - say: the end\n",
        )
}

fn park(sandbox: &Sandbox, more: &[&str]) -> Ran {
    sandbox.run(&[&["run", ".", "go", "-a", "park"], more].concat()).ended(75)
}

fn questions(sandbox: &Sandbox) -> Vec<Value> {
    sandbox.run(&["approvals", "--output", "json"]).ended(0).json().as_array().unwrap().clone()
}

fn id_of(question: &Value) -> &str {
    question["id"].as_str().unwrap()
}

#[test]
fn a_run_that_waits_in_two_branches_is_answered_in_reverse_order_and_ends() {
    let sandbox = two_writers();
    let parked = park(&sandbox, &["--output", "json"]).json();
    assert_eq!((&parked["status"], &parked["output"]), (&"parked".into(), &Value::Null));
    assert_eq!(parked["questions"].as_array().unwrap().len(), 2);
    let open = questions(&sandbox);
    assert_eq!(open.iter().map(|question| &question["id"]).collect::<Vec<_>>().len(), 2, "{open:?}");
    let run = open[0]["run_id"].as_str().unwrap()[..8].to_owned();
    assert!(open.iter().all(|question| id_of(question).starts_with(&format!("{run}-"))), "{open:?}");

    let approved = sandbox.run(&["approve", id_of(&open[1])]).ended(0);
    assert!(approved.stderr.contains(&format!("run {run} waits for 1 answer more")), "{approved:?}");
    let again = sandbox.run(&["resume", "last"]).ended(75);
    assert!(again.stderr.contains("waits for 1 answer:"), "{again:?}");
    let written = |name: &str| sandbox.path(name).exists();
    assert!(written("one.txt") != written("two.txt"));

    let approved = sandbox.run(&["approve", id_of(&open[0])]).ended(0);
    assert!(approved.stderr.contains(&format!("to continue: llm-do resume {run}")), "{approved:?}");
    let first = if written("one.txt") { "one.txt" } else { "two.txt" };
    std::fs::remove_file(sandbox.path(first)).unwrap();
    sandbox.run(&["resume", "--all-answered"]).ended(0).said("both wrote\n");
    assert!(!written(first), "a file was written twice");
    assert!(written("one.txt") || written("two.txt"));
    assert_eq!(questions(&sandbox), [] as [Value; 0]);
    let nothing = sandbox.run(&["resume", "--all-answered"]).ended(0);
    assert!(nothing.stderr.contains("no parked run has answers to all of its questions"), "{nothing:?}");
}

#[test]
fn a_parked_run_says_what_it_waits_for_and_what_to_do() {
    let sandbox = writer();
    let parked = park(&sandbox, &[]);
    let open = questions(&sandbox);
    let id = id_of(&open[0]).to_owned();
    for line in [
        "waits for 1 answer:",
        &format!("  {id}  main > write_file wants to "),
        "to answer: llm-do approve ID, or llm-do deny ID",
        "to continue: llm-do resume ",
    ] {
        assert!(parked.stderr.contains(line), "{line}: {parked:?}");
    }
    assert_eq!(parked.stdout, "");
    let list = sandbox.run(&["approvals"]).ended(0);
    assert!(list.stdout.contains(&id) && list.stdout.contains("open"), "{list:?}");
    let shown = sandbox.run(&["approvals", &id]).ended(0);
    for text in
        [&*format!("question {id}, asked "), "main > write_file", "a.txt", "+hello", "scopes of --session"]
    {
        assert!(shown.stdout.contains(text), "{text}: {shown:?}");
    }
    assert!(sandbox.run(&["runs", "--status", "parked"]).ended(0).stdout.contains("main: go"));
    let tree = sandbox.run(&["show", "last"]).ended(0);
    let call = tree.stdout.lines().find(|line| line.contains("write_file")).unwrap();
    assert!(call.contains("waits for an answer"), "{tree:?}");
    let caller = tree.stdout.lines().find(|line| line.contains("agent main")).unwrap();
    assert!(caller.contains("not finished"), "{tree:?}");
}

#[test]
fn a_run_shows_who_answered_its_questions() {
    let sandbox = writer();
    park(&sandbox, &[]);
    let open = questions(&sandbox);
    let call = || sandbox.run(&["show", "last", "--call", "1/t1/tool/0"]).ended(0).stdout;
    assert!(call().contains("took     it waits for an answer"), "{}", call());
    sandbox.run(&["approve", id_of(&open[0])]).ended(0);
    sandbox.run(&["resume", "last"]).ended(0);
    let shown = call();
    let line = shown.lines().find(|line| line.starts_with("approval")).unwrap();
    assert!(line.contains("allowed by ") && line.contains("(process "), "{shown}");
}

#[test]
fn a_denial_and_its_reason_reach_the_model() {
    let sandbox = writer();
    park(&sandbox, &[]);
    let id = id_of(&questions(&sandbox)[0]).to_owned();
    sandbox
        .run(&["deny", &id, "--reason", "ask the customer"])
        .ended(0)
        .said(&format!("denied: {}\n", "main > write_file wants to create `a.txt` (5 bytes)"));
    let ran = sandbox.run(&["resume", "last", "--output", "json"]).ended(0).json();
    assert_eq!(ran["denied"][0]["reason"], "denied: ask the customer");
    assert!(!sandbox.path("a.txt").exists());
}

#[test]
fn edited_arguments_and_scopes_are_checked_before_they_are_kept() {
    let sandbox = writer();
    park(&sandbox, &[]);
    let id = id_of(&questions(&sandbox)[0]).to_owned();
    sandbox.run(&["approve", &id, "--edit", "{path}"]).ended(2).told("not valid JSON");
    sandbox.run(&["approve", &id, "--session", "99"]).ended(2).told("is not a scope of this question");
    let edited = r#"{"path": "b.txt", "content": "other"}"#;
    sandbox.run(&["approve", &id, "--edit", edited]).ended(0);
    sandbox.run(&["resume", "last"]).ended(0).said("the end\n");
    assert_eq!(std::fs::read_to_string(sandbox.path("b.txt")).unwrap(), "other");
    assert!(!sandbox.path("a.txt").exists());
}

#[test]
fn the_first_answer_counts_and_the_second_is_told_who_was_first() {
    let sandbox = writer();
    park(&sandbox, &[]);
    let id = id_of(&questions(&sandbox)[0]).to_owned();
    let mut first = sandbox.command(&["approve", &id]);
    first.env("USER", "ada");
    assert!(first.output().unwrap().status.success());
    let second = sandbox.run(&["deny", &id]).ended(1);
    assert!(
        second.stderr.contains(&format!("{id} cannot be answered: it was answered by ada (process ")),
        "{second:?}"
    );
    sandbox.run(&["resume", "last"]).ended(0);
    sandbox.run(&["approve", &id]).ended(2).told("no question that waits begins with");
    sandbox.run(&["approve", "ab"]).ended(2).told("too short");
}

/// How often two processes answer the same question at once: `LLM_DO_ANSWER_ROUNDS`.
fn rounds() -> usize {
    std::env::var("LLM_DO_ANSWER_ROUNDS").map_or(3, |count| count.parse().unwrap())
}

#[test]
fn of_two_processes_that_answer_at_once_one_is_first() {
    let sandbox = writer();
    for round in 0..rounds() {
        let _ = std::fs::remove_file(sandbox.path("a.txt"));
        park(&sandbox, &[]);
        let id = id_of(&questions(&sandbox)[0]).to_owned();
        let start = |verb: &str| {
            sandbox.command(&[verb, &id]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
        };
        let both = [start("approve"), start("deny")];
        let [approved, denied] = both.map(|child| Ran::from(child.wait_with_output().unwrap()));
        assert_ne!(
            approved.code == Some(0),
            denied.code == Some(0),
            "round {round}: {approved:?} {denied:?}"
        );
        sandbox.run(&["resume", "last"]).ended(0);
        assert_eq!(sandbox.path("a.txt").exists(), approved.code == Some(0), "round {round}");
    }
}

#[test]
fn what_nobody_answers_in_time_is_denied() {
    let sandbox = writer();
    park(&sandbox, &["--answer-within", "1ms"]);
    assert!(sandbox.run(&["approvals"]).ended(0).stdout.contains("expired"));
    let late = sandbox.run(&["approve", id_of(&questions(&sandbox)[0])]).ended(1);
    assert!(late.stderr.contains("it could be answered until"), "{late:?}");
    let ran = sandbox.run(&["resume", "--all-answered"]).ended(5);
    assert!(ran.stderr.contains("resuming "), "{ran:?}");
    assert!(!sandbox.path("a.txt").exists());
    sandbox.run(&["run", ".", "go", "--answer-within", "1h"]).ended(2).told("add `--approve park`");
}

#[test]
fn a_file_that_changed_meanwhile_makes_the_answer_void() {
    let sandbox = writer();
    park(&sandbox, &[]);
    let id = id_of(&questions(&sandbox)[0]).to_owned();
    sandbox.run(&["approve", &id]).ended(0);
    std::fs::write(sandbox.path("a.txt"), "somebody else's").unwrap();
    let again = sandbox.run(&["resume", "last"]).ended(75);
    assert!(
        again.stderr.contains("is void: the call is no longer the one that was asked about"),
        "{again:?}"
    );
    assert_eq!(std::fs::read_to_string(sandbox.path("a.txt")).unwrap(), "somebody else's");
}

#[test]
fn programs_that_llm_do_started_answer_nothing() {
    let sandbox = writer();
    park(&sandbox, &[]);
    let id = id_of(&questions(&sandbox)[0]).to_owned();
    for verb in ["approve", "deny"] {
        let output = sandbox.command(&[verb, &id]).env("LLM_DO_CHILD", "1").output().unwrap();
        Ran::from(output).ended(2).told("a program that llm-do started cannot answer approvals");
    }
    assert_eq!(questions(&sandbox)[0]["answered_by"], Value::Null);
}

#[test]
fn a_chat_and_a_run_without_a_record_cannot_wait() {
    let sandbox = writer();
    let ran =
        sandbox.run(&["run", ".", "go", "-a", "park", "--no-record", "--output", "json"]).ended(5).json();
    let reason = ran["denied"][0]["reason"].as_str().unwrap();
    assert!(reason.contains("the question cannot be left open: this run is not recorded"), "{reason}");
}
