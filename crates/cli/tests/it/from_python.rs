//! The Python projects of `examples/from-python`, each on its script, with the results that its document states.

use llm_do_testing::needs;
use serde_json::Value;

use crate::examples::copied;
use crate::support::{Ran, Sandbox};

/// Checks a project and runs it on its script.
fn run(sandbox: &Sandbox, more: &[&str]) -> Ran {
    sandbox.run(&["check", "."]).ended(0);
    let arguments = ["run", ".", "--model", "script:offline.yaml", "--output", "jsonl"];
    sandbox.run(&arguments.iter().chain(more).copied().collect::<Vec<_>>())
}

/// The calls of a run that have ended, as `path -> output or error`.
fn finished(ran: &Ran) -> Vec<String> {
    let shown = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let lines = ran.lines();
    let ended = lines.iter().filter(|line| line["type"] == "call_finished");
    let result = |line: &Value| match &line["error"] {
        Value::Null => shown(&line["output"]),
        error => shown(&error["message"]),
    };
    ended.map(|line| format!("{} -> {}", shown(&line["path"]), result(line))).collect()
}

/// The results of one call, by the end of its path.
fn results_of(ran: &Ran, call: &str) -> Vec<String> {
    let end = format!("{call} -> ");
    finished(ran).into_iter().filter_map(|line| Some(line.split_once(&end)?.1.to_owned())).collect()
}

#[needs(python)]
#[test]
fn workers_with_one_python_toolset_keep_their_own_rules_in_both_orders() {
    let sandbox = copied("from-python/shared-toolset");
    let ran = run(&sandbox, &["Clear the archive."]).ended(0);
    let blocked = "blocked: `burn` may not run: a rule blocks it";
    assert_eq!(results_of(&ran, "careful > burn"), [blocked, blocked], "before and after `free`");
    assert_eq!(results_of(&ran, "free > burn"), ["burned"]);
    assert_eq!(results_of(&ran, " > look"), ["looked", "looked", "looked"]);
}

#[needs(python)]
#[test]
fn a_chat_keeps_messages_and_nested_workers_start_clean() {
    let sandbox = copied("from-python/shared-toolset");
    let chat = ["chat", ".", "--headless", "--model", "script:offline.yaml", "--output", "jsonl"];
    let ran = sandbox.run_with(&chat, b"Go round.\nClear the archive.\n").ended(0);
    assert_eq!(results_of(&ran, "main > recall"), [r#"["Go round.","Clear the archive."]"#]);
    assert_eq!(results_of(&ran, "careful > recall"), [r#"["Go."]"#, r#"["Go."]"#]);
    assert_eq!(results_of(&ran, "free > recall"), [r#"["Go."]"#]);
}

#[needs(python)]
#[test]
fn workers_that_call_each_other_stop_at_the_limit_of_depth() {
    let ran = run(&copied("from-python/shared-toolset"), &["Go round."]).ended(0);
    let path = "main > left > right > left > right > left";
    let refused = format!("{path} -> `left` would be agent 6 on the path `{path}`, and 5 are permitted");
    assert_eq!(finished(&ran)[0], refused);
    assert_eq!(results_of(&ran, "main > left"), ["Passed."]);
}

#[needs(python)]
#[test]
fn an_entry_calls_a_worker_with_a_typed_input_in_both_approval_modes() {
    let sandbox = copied("from-python/agents");
    let input = r#"{"company": "Night Ferry", "deck": "deck.txt"}"#;
    let given = ["--input-json", input, "--set", "agents.main.model=script:offline.yaml"];
    let ran = run(&sandbox, &[&given[..], &["--reject-all"]].concat()).ended(0);
    let denied = "denied: `write_file` must ask, and this run rejects everything that must ask";
    assert_eq!(results_of(&ran, "main > write_file"), [denied, denied]);
    assert!(results_of(&ran, "main > shell")[0].contains("Ships at night."), "what only reads runs freely");
    assert!(!sandbox.path("report.md").exists());
    let ran = run(&sandbox, &[&given[..], &["--approve-all"]].concat()).ended(0);
    assert_eq!(results_of(&ran, "review() > main"), ["The report is written.", "The report is written."]);
    assert!(sandbox.path("report.md").exists());
    let first = ran.lines().into_iter().filter(|line| line["type"] == "model_request" && line["turn"] == 1);
    let of_main: Vec<Value> = first.filter(|line| line["path"] == "review() > main").collect();
    assert_eq!(of_main.len(), 2);
    assert_eq!(of_main[0]["messages"], of_main[1]["messages"], "each call has a history of its own");
    let messages = of_main[0]["messages"].to_string();
    assert!(messages.contains("Evaluate the pitch of Night Ferry.") && messages.contains("deck.txt"));
    let too_deep = results_of(&ran, "main > analyzer > analyzer > analyzer > analyzer > analyzer");
    assert!(too_deep.iter().all(|error| error.ends_with("and 5 are permitted")), "{too_deep:?}");
}

#[needs(python)]
#[test]
fn workers_call_what_allow_workers_names_and_create_others() {
    let sandbox = copied("from-python/workers");
    let ran = run(&sandbox, &["Ask the target"]).ended(0);
    assert_eq!(results_of(&ran, "my-worker > delegate"), ["Here."]);
    let ran = run(&sandbox, &["Ask the secret"]).ended(0);
    let refused = results_of(&ran, "my-worker > delegate").concat();
    assert!(refused.contains("`secret-worker` is not allowed for `my-worker`"), "{refused}");
    let ran = run(&sandbox, &["Call the target"]).ended(0);
    assert_eq!(results_of(&ran, "my-worker > agent_call"), ["Here."]);
    let ran = run(&sandbox, &["Create", "--approve-all"]).ended(0);
    assert_eq!(results_of(&ran, "agent_call() > new-worker"), ["Hello from the new worker."]);
    assert!(sandbox.path("agents/generated/new-worker.agent").exists());
}

#[needs(python)]
#[test]
fn a_controller_asks_the_gate_and_a_callback_can_only_deny() {
    let sandbox = copied("from-python/workers");
    let wrote = "wrote output/file.txt";
    assert_eq!(
        results_of(&run(&sandbox, &["Write twice", "--approve-all"]).ended(0), " > write"),
        [wrote, wrote]
    );
    let ran = run(&sandbox, &["Write strictly", "--approve-all"]).ended(0);
    let refused = results_of(&ran, " > write").concat();
    assert!(refused.contains("Strict mode: tool 'sandbox.write' not pre-approved"), "{refused}");
    let ran = run(&sandbox, &["Write twice"]).ended(5);
    assert!(results_of(&ran, " > write")[0].contains("`sandbox_write` must ask"), "my_callback approved it");
}

#[needs(python)]
#[test]
fn the_context_example_calls_inspects_and_counts() {
    let sandbox = copied("from-python/context");
    sandbox.run(&["check", "."]).ended(0).told_nothing();
    let arguments = ["run", ".", "--model", "script:offline.yaml", "--approve-all", "-v"];
    let set = ["--set", "agents.researcher.model=script:offline.yaml"];
    let ran = sandbox.run(&[&arguments[..], &set].concat()).ended(0);
    let ran = ran.said("Two documents are about AI safety.\n").told(r#"search] -> ["doc1.pdf","doc2.pdf"]"#);
    let ran = ran.told(r#"my_tool() > other_tool] -> [{"file":"tides.pdf"}]"#);
    let printed: Vec<&str> = ran.stderr.lines().filter_map(|line| line.strip_prefix("[main] ")).collect();
    let trace: Vec<&str> = printed.iter().copied().filter(|line| line.contains(") depth=")).collect();
    assert_eq!(
        trace,
        [
            "main (entry) depth=0",
            "researcher (agent) depth=1",
            "search (tool) depth=1",
            "caller (agent) depth=1",
            "my_tool (tool) depth=1",
            "other_tool (tool) depth=1",
        ]
    );
    let usage = "{'script:offline.yaml': Usage(requests=4, input_tokens=64, output_tokens=24, ";
    assert!(printed.iter().any(|line| line.starts_with(usage)), "{ran:?}");
}

#[needs(python)]
#[test]
fn tools_of_llmproc_get_their_context_or_an_error_result() {
    let sandbox = copied("from-python/llmproc");
    let ran = run(&sandbox, &["--approve-all"]).ended(0);
    assert_eq!(results_of(&ran, "main > example_tool"), ["Process model: script:offline.yaml"]);
    assert_eq!(results_of(&ran, "main > spawn_tool"), ["Quiet."]);
    assert_eq!(results_of(&ran, "main > step"), [r#"["starting step"]"#]);
    let call = ["call", ".", "alone", "--input-json", r#"{"input": "go"}"#, "--approve-all", "-v"];
    let ran = sandbox.run(&[&call[..], &["--model", "script:offline.yaml"]].concat()).ended(0);
    ran.told("Tool 'spawn_tool' error: Runtime context missing required keys: linked_programs");
}
