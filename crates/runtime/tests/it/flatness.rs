//! What a turn costs does not depend on how many there were: neither events nor readers repeat the history.
//!
//! Nothing is timed here. `docs/performance.md` says how to measure.

use std::sync::Arc;

use llm_do_core::{AgentSpec, Approval, Event, EventBody, Limits, Message, Output};
use llm_do_models::{Script, asks, says};
use llm_do_testing::{FunctionTool, TestProject, TestRun};
use serde_json::json;

const TURNS: usize = 400;

/// An agent that calls a tool in each of its turns, then answers.
async fn long_run() -> TestRun {
    let look = FunctionTool::new("look", |_, _| async { Ok(Output::text("nothing to see")) })
        .define(|definition| definition.approval = Approval::PreApproved);
    let replies = (0..TURNS).map(|turn| asks("look", json!({"place": format!("{turn:04}")})));
    let limits = Limits { turns: Some(TURNS as u32 + 1), ..Limits::default() };
    TestProject::new()
        .agent(AgentSpec::new("main", "Look.").tool("look").limits(limits))
        .tool(look)
        .model(Script::each_call(replies.chain([says("done")])))
        .run("look around")
        .await
}

fn announced(events: &[Arc<Event>]) -> Vec<Arc<Message>> {
    let requests = events.iter().filter_map(|event| match &event.body {
        EventBody::ModelRequest { messages, .. } => Some(messages.clone()),
        _ => None,
    });
    requests.flatten().collect()
}

#[tokio::test]
async fn every_message_is_announced_once_however_many_requests_there_are() {
    let run = long_run().await;
    let messages = &run.report().messages;
    let announced = announced(&run.events());

    assert_eq!(messages.len(), 1 + 2 * TURNS + 1);
    // The last message is the answer, which no request follows.
    assert_eq!(announced.len(), messages.len() - 1);
    assert!(announced.iter().zip(messages).all(|(event, message)| Arc::ptr_eq(event, message)));
}

#[tokio::test]
async fn an_event_late_in_a_run_is_no_larger_than_an_early_one() {
    let events = long_run().await.events();
    // Without the beginning, and without the end, which a turn has not.
    let turns: Vec<usize> = events[10..events.len() - 10]
        .iter()
        .map(|event| serde_json::to_string(event).unwrap().len())
        .collect();
    let quarter = turns.len() / 4;
    let early: usize = turns[..quarter].iter().sum();
    let late: usize = turns[turns.len() - quarter..].iter().sum();

    // Keys and sums of usage have a few more digits.
    assert!(late * 10 < early * 11, "{late} bytes late, {early} bytes early");
}

#[tokio::test]
async fn nobody_keeps_the_history_of_a_turn() {
    let run = long_run().await;
    let holders = run.report().messages.iter().map(Arc::strong_count).max();

    // The report, the response that brought it, and the request that announced it.
    assert!(holders <= Some(3), "a message has {holders:?} holders after {TURNS} turns");
}
