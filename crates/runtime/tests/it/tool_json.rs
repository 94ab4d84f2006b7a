//! Argument texts as models send them, from a corpus: accepted, repaired, or refused with words that help.

use std::sync::{Arc, Mutex};

use llm_do_core::{AgentSpec, Approval, Decision, EventBody, Output};
use llm_do_models::{asks_raw, says};
use llm_do_testing::{FunctionTool, TestProject, TestRun};
use serde_json::Value;

fn corpus() -> Value {
    serde_json::from_str(include_str!("../corpus/tool_json.json")).unwrap()
}

/// Runs one call with this argument text and returns the run with the arguments that the tool received.
async fn call_with(tool: &str, schema: &Value, raw: &str) -> (TestRun, Vec<Value>) {
    let received: Arc<Mutex<Vec<Value>>> = Arc::default();
    let seen = received.clone();
    let recording = FunctionTool::new(tool, move |input, _| {
        seen.lock().unwrap().push(input);
        async { Ok(Output::text("ok")) }
    });
    let run = TestProject::new()
        .agent(AgentSpec::new("main", "x").tool(tool))
        .tool(
            recording.takes(schema.clone()).define(|definition| definition.approval = Approval::PreApproved),
        )
        .model_replies([asks_raw(tool, raw), says("done")])
        .run("go")
        .await;
    let received = received.lock().unwrap().clone();
    (run, received)
}

fn was_repaired(run: &TestRun) -> bool {
    run.events().iter().any(|event| match &event.body {
        EventBody::ApprovalDecided { decision, .. } => {
            matches!(&**decision, Decision::Allow(permit) if !permit.repairs.is_empty())
        }
        _ => false,
    })
}

fn reaction(run: &TestRun, received: &[Value]) -> &'static str {
    match received {
        [] => "reject",
        [_] if was_repaired(run) => "repair",
        [_] => "accept",
        _ => "called twice",
    }
}

/// Compares only the listed keys.
fn holds(received: &Value, expected: &Value) -> bool {
    let number = |value: &Value| value.as_f64();
    expected.as_object().unwrap().iter().all(|(key, value)| {
        received[key] == *value || (number(value).is_some() && number(&received[key]) == number(value))
    })
}

#[tokio::test]
async fn every_argument_text_of_the_corpus_gets_the_expected_reaction() {
    let corpus = corpus();
    let mut wrong = Vec::new();
    let cases = corpus["cases"].as_array().unwrap();
    for case in cases {
        let (id, tool) = (case["id"].as_str().unwrap(), case["tool"].as_str().unwrap());
        let (run, received) =
            call_with(tool, &corpus["tools"][tool]["schema"], case["raw"].as_str().unwrap()).await;
        let reaction = reaction(&run, &received);
        let also_ok = case["also_ok"].as_array().cloned().unwrap_or_default();
        if reaction != case["expect"] && !also_ok.iter().any(|other| other == reaction) {
            wrong.push(format!("{id}: {reaction} instead of {}", case["expect"]));
        }
        if let ([received], Some(_)) = (&received[..], case["args"].as_object())
            && !holds(received, &case["args"])
        {
            wrong.push(format!("{id}: received {received}"));
        }
        let words = run.tool_results().first().cloned().unwrap_or_default().to_lowercase();
        let mentions = case["error_mentions"].as_array().cloned().unwrap_or_default();
        let missing = mentions.iter().filter(|word| !words.contains(&word.as_str().unwrap().to_lowercase()));
        if reaction == "reject" {
            wrong.extend(missing.map(|word| format!("{id}: {word} is not mentioned in: {words}")));
        }
    }
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), cases.len(), wrong.join("\n"));
    assert!(cases.len() >= 69);
}
