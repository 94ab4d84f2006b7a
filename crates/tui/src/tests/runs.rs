//! Real runs, seen from their first event to their last.

use std::sync::{Arc, Mutex};

use insta::assert_snapshot;
use llm_do::approval::{Answer, Approval};
use llm_do::event::{Event, EventBody};
use llm_do::testing::{Script, asks, asks_all, says, thinks};
use llm_do::{AgentSpec, Output};
use llm_do_testing::{FunctionTool, TestProject, deny, once};
use serde_json::json;

use super::driver::{Driver, options};
use crate::UiOptions;

/// Events of which no two runs differ.
fn steady(event: &Event) -> Event {
    let mut event = event.clone();
    match &mut event.body {
        EventBody::ModelResponse { duration_ms, .. }
        | EventBody::CallFinished { duration_ms, .. }
        | EventBody::RunFinished { duration_ms, .. } => *duration_ms = 1_200,
        _ => {}
    }
    event
}

/// Two agents and a tool that asks, with everything that happened.
async fn newsroom(answers: impl IntoIterator<Item = Answer>) -> Vec<Event> {
    let main = AgentSpec::new("main", "Lead.").toolset("writer").tool("publish").model(Script::new([
        thinks("I let somebody write.").and(asks("writer", json!({"input": "two lines about the harbour"}))),
        says("Now **both**:")
            .and(asks_all([("publish", json!({"title": "Ships"})), ("publish", json!({"title": "Boats"}))])),
        says("It is out.\n\n- Ships\n- Boats"),
    ]));
    let writer = AgentSpec::new("writer", "Write.").model(Script::new([says("Ships come.\n\nShips go.")]));
    let publish = FunctionTool::new("publish", |_, _| std::future::ready(Ok(Output::text("published"))))
        .define(|definition| definition.approval = Approval::Ask);
    let events: Arc<Mutex<Vec<Event>>> = Arc::default();
    let seen = events.clone();
    let subscribe = move |event: &Event| seen.lock().unwrap().push(steady(event));
    let project = TestProject::new().agent(main).agent(writer).tool(publish).approvals(answers);
    let runtime = project.runtime(|builder| builder.on_event(subscribe)).build();
    runtime.run("main", "publish").await.unwrap();
    runtime.shutdown().await;
    std::mem::take(&mut events.lock().unwrap())
}

fn single() -> Driver {
    Driver::new(UiOptions { chat: false, awaits_input: false, ..options() }, (80, 30))
}

#[tokio::test]
async fn a_whole_run_is_told_from_its_events() {
    let mut driver = single();
    for event in newsroom([once(), deny("not this one")]).await {
        driver.read(&event);
        driver.frame();
    }
    assert_snapshot!(driver.printed());
}

#[tokio::test]
async fn the_tree_shows_every_message_of_a_run() {
    let mut driver = single();
    newsroom([once(), once()]).await.iter().for_each(|event| driver.read(event));
    driver.press("<C-t><Tab>");
    assert_snapshot!(driver.screen());
}
