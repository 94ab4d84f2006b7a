//! What stdout carries in each mode, and that stderr carries the rest.

use std::io::Read;
use std::process::Stdio;

use serde_json::{Value, json};

use crate::support::Sandbox;

#[test]
fn text_is_the_answer_and_nothing_else() {
    let ran = Sandbox::asking().run(&["run", ".", "hello", "--approve-all", "-v"]).ended(0);
    ran.said("the end\n").told("[main > helper]").told("requests");
}

#[test]
fn a_structured_answer_is_json() {
    let agent = "---\nname: main\nmodel: test\noutput_schema: {type: object, required: [n], \
        properties: {n: {type: integer}}}\n---\nCount.\n";
    let ran = Sandbox::new().file("main.agent", agent).run(&["run", ".", "hello"]).ended(0);
    assert!(ran.json()["n"].is_i64(), "{ran:?}");
}

#[test]
fn json_is_one_object_with_the_same_keys_whatever_happens() {
    let good = Sandbox::echo().run(&["run", ".", "hello", "--output", "json"]).ended(0);
    let failed = Sandbox::scripted("- fail: {kind: server, message: no}\n")
        .run(&["run", ".", "x", "--output", "json"]);
    let refused = Sandbox::echo().run(&["run", ".", "--output", "json"]).ended(2);
    let keys = [
        "status",
        "output",
        "partial",
        "raw",
        "stop",
        "error",
        "hint",
        "notices",
        "denied",
        "questions",
        "diagnostics",
        "usage",
        "cost_usd",
        "models",
        "stderr",
        "run_id",
        "resume",
        "duration_ms",
    ];
    for ran in [&good, &failed, &refused] {
        assert_eq!(ran.stdout.lines().count(), 1, "{ran:?}");
        let object = ran.json();
        assert_eq!(object.as_object().unwrap().keys().collect::<Vec<_>>(), keys, "{ran:?}");
    }
    assert_eq!(good.json()["output"], "hello");
    assert_eq!(good.json()["usage"]["requests"], 1);
    let models = good.json()["models"].clone();
    assert_eq!((&models[0]["name"], &models[0]["requests"]), (&json!("test:echo"), &json!(1)));
    assert_eq!(good.json()["error"], Value::Null);
    assert!(failed.json()["error"].as_str().unwrap().contains("no"));
}

#[test]
fn json_says_why_the_model_stopped_and_what_a_person_should_know() {
    let whole = Sandbox::echo().run(&["run", ".", "x", "--output", "json"]).ended(0).json();
    assert_eq!((&whole["stop"], &whole["notices"]), (&json!("end_turn"), &json!([])));
    let cut = Sandbox::scripted("- say: half an ans\n  stop: max_tokens\n");
    let cut = cut.run(&["run", ".", "x", "--output", "json"]).ended(0).json();
    assert_eq!((&cut["status"], &cut["stop"]), (&json!("done"), &json!("max_tokens")));
    let [notice] = &cut["notices"].as_array().unwrap()[..] else { panic!("{cut}") };
    let text = notice["text"].as_str().unwrap();
    assert!(text.starts_with("the answer was cut off at the output limit after "), "{text}");
    assert!(text.ends_with("; `max_tokens` in `model_settings` sets it"), "{text}");
    assert_eq!(notice["path"], "main");
    let empty = Sandbox::scripted("- say: ''\n").run(&["run", ".", "x", "--output", "json"]).ended(0).json();
    assert_eq!(empty["notices"][0]["text"], "the answer is empty", "{empty}");
}

#[test]
fn a_tool_that_fails_is_named_for_a_person_only() {
    let agent = "---\nname: main\nmodel: script:script.yaml\ntools: [calculator]\n---\nCalculate.\n";
    let script = "mode: by_turn\nreplies:\n  - ask: {calculator: {expression: 1/0}}\n  - say: the end\n";
    let sandbox = Sandbox::new().file("main.agent", agent).file("script.yaml", script);
    let ran = sandbox.run(&["run", ".", "x"]).ended(0).said("the end\n");
    assert!(ran.stderr.starts_with("tool calculator failed: "), "{ran:?}");
    assert_eq!(ran.stderr.lines().count(), 1, "{ran:?}");
    sandbox.run(&["run", ".", "x", "--output", "json"]).ended(0).told_nothing();
    sandbox.run(&["run", ".", "x", "--output", "jsonl"]).ended(0).told_nothing();
}

#[test]
fn json_lists_the_calls_that_were_denied() {
    let denied = |flags: &[&str], exit: i32| {
        let arguments = [&["run", ".", "x", "--output", "json"], flags].concat();
        Sandbox::asking().run(&arguments).ended(exit).json()["denied"].clone()
    };
    assert_eq!(denied(&["--approve-all"], 0), json!([]));
    for (flags, exit, kind) in [(&["--approve", "none"][..], 0, "denied"), (&[], 5, "unasked")] {
        let list = denied(flags, exit);
        let [call] = &list.as_array().unwrap()[..] else { panic!("{list}") };
        assert_eq!((&call["path"], &call["name"]), (&json!("main > helper"), &json!("helper")));
        assert_eq!(call["agent"], "main", "{call}");
        assert_eq!(call["kind"], kind, "{call}");
        assert!(call["reason"].as_str().unwrap().contains("`helper` must ask"), "{call}");
    }
}

#[test]
fn an_invalid_project_is_told_to_programs_with_each_problem() {
    let sandbox = Sandbox::new().file("main.agent", "---\nnam: main\nmodle: test\n---\nx");
    let object = sandbox.run(&["run", ".", "x", "--output", "json"]).ended(2).json();
    let problems = object["diagnostics"].as_array().unwrap();
    assert!(problems.len() >= 2 && problems.iter().all(|problem| problem["file"].is_string()), "{object}");
    let error = object["error"].as_str().unwrap();
    assert!(!error.contains("error:") && error.lines().count() == 1, "{error}");
    let lines = sandbox.run(&["run", ".", "x", "--output", "jsonl"]).ended(2).lines();
    let [line] = &lines[..] else { panic!("{lines:?}") };
    assert_eq!((&line["type"], &line["status"]), (&json!("result"), &json!("invalid")));
    assert_eq!((&line["diagnostics"], &line["hint"]), (&object["diagnostics"], &problems[0]["hint"]));
    let chat = sandbox.run(&["chat", ".", "--output", "jsonl"]).ended(2).lines();
    assert_eq!(chat[0]["type"], "result");
    let usage = Sandbox::echo().run(&["run", ".", "--output", "jsonl"]).ended(2).lines();
    assert_eq!((&usage[0]["type"], &usage[0]["diagnostics"]), (&json!("result"), &json!([])));
    assert_eq!(usage[0]["error"], "no input was given");
    assert!(usage[0]["hint"].as_str().unwrap().starts_with("give a prompt"), "{usage:?}");
}

#[test]
fn jsonl_is_every_event_in_order_without_a_gap() {
    let ran = Sandbox::asking().run(&["run", ".", "hello", "--approve-all", "--output", "jsonl"]).ended(0);
    let mut events = ran.lines();
    let result = events.pop().unwrap();
    assert_eq!((&result["type"], &result["output"]), (&json!("result"), &json!("the end")));
    let seqs: Vec<u64> = events.iter().filter_map(|event| event["seq"].as_u64()).collect();
    assert_eq!(seqs, (0..seqs.len() as u64).collect::<Vec<_>>());
    for event in &events {
        let object = event.as_object().unwrap();
        for key in ["run", "call", "parent", "depth", "path", "agent", "type", "time", "key"] {
            assert!(object.contains_key(key), "{key} is not in {event}");
        }
    }
    assert_eq!(events.first().unwrap()["type"], "run_started");
    assert_eq!(events.last().unwrap()["type"], "run_finished");
    assert!(events.iter().any(|event| event["type"] == "call_started" && event["path"] == "main > helper"));
    let deltas = events.iter().filter(|event| event["type"] == "text_delta");
    for delta in deltas {
        assert!(delta.get("seq").is_none() && delta["index"].is_u64(), "{delta}");
    }
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let sandbox = Sandbox::scripted("- say: late\n  delay: 60s\n");
    let mut command = sandbox.command(&["run", ".", "hello", "--output", "jsonl"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    // The request is written after the reader has gone, and ends the run long before its answer.
    let mut stderr = String::new();
    child.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
    assert_eq!((child.wait().unwrap().code(), stderr.as_str()), (Some(141), ""));
    for arguments in [["schema", "manifest"], ["completions", "bash"], ["run", "--help"]] {
        let mut child =
            sandbox.command(&arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{arguments:?}");
    }
}

#[test]
fn more_v_tells_more() {
    let sandbox = Sandbox::asking();
    let told = |level: &str| sandbox.run(&["run", ".", "hello", "--approve-all", level]).ended(0).stderr;
    let (one, two, three) = (told("-v"), told("-vv"), told("-vvv"));
    assert!(one.contains("[main > helper] -> may I") && !one.contains("[main] the end"), "{one}");
    assert!(two.contains("[main] the end") && !two.contains("instructions"), "{two}");
    assert!(three.contains("\"instructions\": \"Ask.\""), "{three}");
}

#[test]
fn nothing_is_colored_in_a_pipe() {
    let ran = Sandbox::asking().run(&["run", ".", "hello", "-vv"]);
    assert!(!ran.stderr.contains('\u{1b}') && !ran.stdout.contains('\u{1b}'), "{ran:?}");
}

#[test]
fn changes_by_set_reach_manifest_and_agents() {
    let sandbox = Sandbox::asking();
    sandbox.run(&["run", ".", "x", "--set", "runtime.agent_calls_require_approval=false"]).ended(0);
    sandbox.run(&["run", ".", "x", "--set", "agents.main.model=test:echo"]).ended(0).said("x\n");
    let wrong = sandbox.run(&["run", ".", "x", "--set", "runtime.max_dept=3"]).ended(2);
    wrong.told("--set runtime.max_dept=3").told("did you mean `max_depth`?");
    sandbox.run(&["run", ".", "x", "--set", "agents.mian.model=test"]).ended(2).told("did you mean `main`?");
    // A lone agent has no manifest: what is set makes one.
    Sandbox::echo().run(&["run", "main.agent", "x", "--set", "runtime.max_depth=1"]).ended(0).said("x\n");
}

#[test]
fn older_spellings_are_read_with_a_notice() {
    let sandbox = Sandbox::new()
        .file("project.json", r#"{"version": 1, "runtime": {}, "entry": {"input": {"input": "old"}}, "worker_files": ["main.worker"]}"#)
        .file("main.worker", "---\nname: main\nmodel: test:echo\nentry: true\n---\nx");
    let ran = sandbox.run(&["run", "."]).ended(0).said("old\n");
    ran.told("`worker_files` is read as `agent_files`");
}

/// An agent that thinks and speaks before it calls another one, which speaks too.
fn talking() -> Sandbox {
    Sandbox::new()
        .file("project.yaml", "version: 1\nentry: {agent: main}\nagent_files: ['*.agent']\n")
        .file("main.agent", "---\nname: main\nmodel: script:main.yaml\ntoolsets: [helper]\n---\nAsk.\n")
        .file("helper.agent", "---\nname: helper\nmodel: script:helper.yaml\n---\nHelp.\n")
        .file(
            "main.yaml",
            "mode: by_turn\nreplies:\n  - think: hm\n    say: I am going to ask.\n    ask: {helper: {input: may I}}\n  \
             - say: the end\n",
        )
        .file("helper.yaml", "mode: by_turn\nreplies:\n  - say: \"Of course:\\ndo it.\"\n")
}

#[test]
fn those_who_listen_hear_who_thinks_and_who_says_what() {
    let told = talking().run(&["run", ".", "hello", "--plain"]).ended(0).said("the end\n").stderr;
    let lines: Vec<&str> = told.lines().collect();
    let (last, lines) = lines.split_last().unwrap();
    assert_eq!(
        lines,
        [
            "main begins: hello",
            "main is thinking",
            "main says: I am going to ask.",
            "main calls helper: may I",
            "main > helper says: Of course:",
            "    do it.",
        ],
        "{told}"
    );
    assert!(last.starts_with("helper is done after") && last.ends_with("seconds"), "{told}");
    let thoughts = talking().run(&["run", ".", "hello", "--plain", "-vv"]).ended(0).said("the end\n");
    thoughts.told("main thought: hm\n");
}

#[test]
fn those_who_listen_hear_words_that_were_refused_and_words_that_broke_off() {
    let refused = Sandbox::new()
        .file(
            "main.agent",
            "---\nname: main\nmodel: script:script.yaml\noutput_schema:\n  type: object\n  properties: {a: {type: integer}}\n  required: [a]\n---\nAnswer.\n",
        )
        .file("script.yaml", "mode: by_turn\nreplies:\n  - say: not so fast\n  - say: '{ \"a\": 1 }'\n");
    let told = refused.run(&["run", "main.agent", "x", "--plain"]).ended(0).said("{\"a\":1}\n").stderr;
    assert!(told.contains("main says: not so fast\n") && !told.contains("\"a\""), "{told}");
    let broken = Sandbox::scripted("replies:\n  - {cut: I was about to}\n");
    let ran = broken.run(&["run", "main.agent", "x", "--plain"]);
    ran.told("main says: I was about to\n    (the answer was cut off here)\n");
}

#[test]
fn a_failed_request_and_a_denial_are_told_once() {
    let fails = Sandbox::scripted("- fail: {kind: auth, message: wrong key}\n");
    let denies = Sandbox::asking();
    for flags in [&["-v"][..], &["-vv"], &["--plain"]] {
        let ran = fails.run(&[&["run", ".", "x"], flags].concat()).ended(3);
        // The tree of calls at the end repeats what came of each.
        let told = ran.stderr.split("agent main").next().unwrap_or_default();
        assert_eq!(told.matches("wrong key").count(), 1, "{flags:?}: {ran:#?}");
        let ran = denies.run(&[&["run", ".", "x", "--approve", "none"], flags].concat()).ended(0);
        let told = ran.stderr.split("agent main").next().unwrap_or_default();
        assert_eq!(told.matches("`helper` must ask").count(), 1, "{flags:?}: {ran:#?}");
    }
    let retried = Sandbox::scripted("- fail: {kind: server, message: out of order}\n- say: well\n");
    let ran = retried.run(&["run", ".", "x", "-v"]).ended(0).said("well\n");
    assert_eq!(ran.stderr.matches("out of order").count(), 1, "{ran:#?}");
}

#[test]
fn a_cassette_that_records_nothing_says_so() {
    let sandbox = Sandbox::echo();
    let ran = sandbox.run(&["run", ".", "x", "--cassette", "tape.jsonl"]).ended(0).said("x\n");
    ran.told("no request was sent, so nothing is recorded in the cassette `tape.jsonl`");
    let object =
        sandbox.run(&["run", ".", "x", "--cassette", "tape.jsonl", "--output", "json"]).ended(0).json();
    assert!(object["notices"][0]["text"].as_str().unwrap().contains("nothing is recorded"), "{object}");
}

#[test]
fn notices_before_the_run_are_in_the_object() {
    let sandbox = Sandbox::echo().config("[approvals]\nmode = \"approve_all\"\n");
    let object = sandbox.run(&["run", ".", "hi", "--output", "json"]).ended(0).json();
    let texts: Vec<&str> =
        object["notices"].as_array().unwrap().iter().filter_map(|n| n["text"].as_str()).collect();
    assert_eq!(texts, ["calls that must ask are approved: `approvals.mode` in ~/.config/llm-do/config.toml"]);
    assert_eq!(object["notices"][0]["path"], "");
}
