//! Every protocol that the server speaks, streamed and whole.

use llm_do_testing::needs;
use serde_json::Value;

use crate::local_model::server::{Events, Local};

#[needs(model)]
#[test]
fn chat_completions_stream_an_answer() {
    streams("local-chat");
}

#[needs(model)]
#[test]
fn responses_stream_an_answer() {
    streams("local-responses");
}

#[needs(model)]
#[test]
fn messages_stream_an_answer() {
    streams("local-messages");
}

#[needs(model)]
#[test]
fn chat_completions_give_an_answer_at_once() {
    answers_at_once("local-chat");
}

#[needs(model)]
#[test]
fn responses_give_an_answer_at_once() {
    answers_at_once("local-responses");
}

#[needs(model)]
#[test]
fn messages_give_an_answer_at_once() {
    answers_at_once("local-messages");
}

const WHOLE: [&str; 2] = ["--set", "agents.greeter.model_settings.stream=false"];

fn streams(protocol: &str) {
    let local = Local::new(protocol);
    let events = local.events(&["Good morning!"]);
    is_an_answer(&events);
    let deltas = events.deltas();
    assert!(deltas.len() > 1, "{protocol}: {events:#?}");
    assert_eq!(deltas.concat(), events.answers()[0], "{protocol}");
}

fn answers_at_once(protocol: &str) {
    let local = Local::new(protocol);
    let events = local.events(&["Good morning!", WHOLE[0], WHOLE[1]]);
    is_an_answer(&events);
    assert!(events.deltas().len() <= 1, "{protocol}: {events:#?}");
}

/// Checks the events of one run with one request.
#[track_caller]
fn is_an_answer(events: &Events) {
    is_well_formed(events);
    assert!(!events.answers()[0].trim().is_empty(), "{events:#?}");
    assert_eq!(events.of("model_request").len(), 1, "{events:#?}");
    assert_eq!(events.of("run_finished")[0]["status"], "done", "{events:#?}");
    let usage = &events.of("model_response")[0]["usage"];
    assert!((1..=24).contains(&usage["output"].as_u64().unwrap()), "{usage}");
    // The instructions and the message have some twenty tokens.
    assert!((15..=100).contains(&events.input_tokens()[0]), "{usage}");
}

/// Checks what holds for the events of every run.
#[track_caller]
fn is_well_formed(events: &Events) {
    let types: Vec<&str> = events.0.iter().map(|event| event["type"].as_str().unwrap()).collect();
    assert_eq!((types.first(), types.last()), (Some(&"run_started"), Some(&"run_finished")));
    let numbers: Vec<u64> = events.0.iter().filter_map(|event| event["seq"].as_u64()).collect();
    let gapless: Vec<u64> = (numbers[0]..).take(numbers.len()).collect();
    assert_eq!(numbers, gapless);
    let runs: Vec<&Value> = events.0.iter().map(|event| &event["run"]).collect();
    assert!(runs.iter().all(|run| run.is_string() && *run == runs[0]), "{runs:?}");
    assert!(
        events.0.iter().all(|event| event["time"].is_string() && event["key"].is_string()),
        "{events:#?}"
    );
}

#[needs(model)]
#[test]
fn stdout_carries_only_the_answer() {
    let local = Local::new("local-chat");
    let ran = local.run(&["run", "Good morning!"]).ended(0).told_nothing();
    let object = local.run(&["run", "Good morning!", "--output", "json"]).ended(0).json();
    assert_eq!(object["status"], "done");
    assert_eq!(ran.stdout.trim_end(), object["output"].as_str().unwrap().trim_end());
}
