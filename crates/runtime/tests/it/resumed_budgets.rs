//! What a resumed run knows of money: requests without an answer, failed attempts, limits that a person raised.

use std::sync::Arc;

use futures::future::BoxFuture;
use llm_do_core::{
    AgentSpec, Answer, Approval, ApprovalRequest, Approver, ApproverError, Event, EventBody,
    ExtensionRequest, Limits, ModelErrorKind, ModelSettings, Output, RunId, Status,
};
use llm_do_models::{Script, asks, cut, fails, says};
use llm_do_runtime::{MemoryStore, ResumeOptions, RetryPolicy, Runtime};
use llm_do_testing::{FunctionTool, TestProject, TestRun};
use serde_json::json;

use crate::resume::cut_after;

const LIMIT: u64 = 100_000;

/// Says how many tokens are left.
fn left() -> FunctionTool {
    FunctionTool::new("left", |_, call| async move {
        Ok(Output::text(call.remaining().tokens.unwrap_or_default().to_string()))
    })
    .define(|tool| tool.approval = Approval::PreApproved)
}

fn runtime(store: &MemoryStore, script: Script) -> Runtime {
    let settings = ModelSettings { max_tokens: Some(1_000), ..ModelSettings::default() };
    let limits = Limits { tokens: Some(LIMIT), ..Limits::default() };
    let store = Arc::new(store.clone());
    TestProject::new()
        .agent(AgentSpec::new("main", "x").settings(settings).tool("left").model(script))
        .tool(left())
        .runtime(move |runtime| runtime.limits(limits).store(store).retry(RetryPolicy::default()))
        .build()
}

fn by_turn() -> Script {
    Script::by_turn([
        asks("left", json!({"n": 1})).tokens(300, 200),
        asks("left", json!({"n": 2})).tokens(300, 200),
        says("done").tokens(300, 200),
    ])
}

async fn resumed(runtime: &Runtime, run: RunId) -> TestRun {
    TestRun::of(runtime.resume(run).await.unwrap().await)
}

fn count(events: &[Arc<Event>], what: impl Fn(&EventBody) -> bool) -> usize {
    events.iter().filter(|event| what(&event.body)).count()
}

fn is_request(body: &EventBody) -> bool {
    matches!(body, EventBody::ModelRequest { .. })
}

fn is_response(body: &EventBody) -> bool {
    matches!(body, EventBody::ModelResponse { .. })
}

/// What the last request of a record keeps of the tokens.
async fn reserved(store: &MemoryStore, run: RunId) -> u64 {
    let events = llm_do_runtime::Store::read(store, run, None).await.unwrap();
    let last = events.iter().rev().find_map(|event| match &event.body {
        EventBody::ModelRequest { reserved, .. } => reserved.map(|reserved| reserved.tokens),
        _ => None,
    });
    last.expect("tokens are limited")
}

#[tokio::test]
async fn a_request_in_flight_at_a_crash_is_booked_with_all_that_was_reserved_for_it() {
    let kept = MemoryStore::default();
    let first = runtime(&kept, by_turn()).run("main", "go").await.unwrap();
    let cut = cut_after(&kept, first.id, |event| event.key == "1/t2/model" && is_request(&event.body)).await;
    let reserved = reserved(&cut, first.id).await;
    assert!(reserved > 1_000, "{reserved}");

    let again = resumed(&runtime(&cut, by_turn()), first.id).await;
    assert_eq!(&*again.answer(), "done");
    let usage = again.report().usage.total();
    assert_eq!((usage.requests, usage.cost.unpriced, usage.tokens()), (4, 4, 1_500));
    let left = LIMIT - 2 * 500 - reserved;
    assert_eq!(again.tool_results(), [(LIMIT - 500).to_string(), left.to_string()]);
    // Readers of the record see what became of each request.
    let events = again.events();
    assert_eq!((count(&events, is_request), count(&events, is_response)), (4, 4));
    let attempts: Vec<u32> = events
        .iter()
        .filter_map(|event| match event.body {
            EventBody::ModelRequest { attempt, .. } => Some(attempt),
            _ => None,
        })
        .collect();
    assert_eq!(attempts, [0, 0, 1, 0]);

    // A second crash does not book it a second time.
    let cut = cut_after(&cut, first.id, |event| event.key == "1/t3/model" && is_response(&event.body)).await;
    let once_more = resumed(&runtime(&cut, by_turn()), first.id).await;
    assert_eq!(once_more.report().usage.total(), usage);
}

#[tokio::test(start_paused = true)]
async fn failed_attempts_are_booked_as_they_were_in_the_first_process() {
    let failing = Script::new([
        fails(ModelErrorKind::Overloaded, "refused"),
        cut("half"),
        asks("left", json!({"n": 1})).tokens(300, 200),
        asks("left", json!({"n": 2})).tokens(300, 200),
        says("done").tokens(300, 200),
    ]);
    let kept = MemoryStore::default();
    let first = TestRun::of(runtime(&kept, failing).run("main", "go").await);
    let run = first.report().id;
    let cut = cut_after(&kept, run, |event| event.key == "1/t1/model" && is_response(&event.body)).await;
    let again = resumed(&runtime(&cut, by_turn()), run).await;
    assert_eq!(again.tool_results(), first.tool_results());
    assert_eq!(again.report().usage, first.report().usage);
    assert_eq!(again.report().usage.total().requests, 5);
}

#[tokio::test]
async fn requests_of_calls_that_are_done_count_against_the_limit_of_requests() {
    let runtime = |store: &MemoryStore| {
        let child = Script::by_turn([asks("left", json!({})), says("done")]);
        let main = Script::by_turn([asks("child", json!({"input": "x"})), says("main is done")]);
        let limits = Limits { requests: Some(3), ..Limits::default() };
        let store = Arc::new(store.clone());
        TestProject::new()
            .agent(AgentSpec::new("main", "x").toolset("child").model(main))
            .agent(AgentSpec::new("child", "y").tool("left").model(child))
            .tool(left())
            .runtime(move |runtime| runtime.limits(limits).store(store))
            .build()
    };
    let kept = MemoryStore::default();
    let first = runtime(&kept).run("main", "go").await.unwrap_err();
    assert_eq!(first.status(), Status::Limit);
    let run = first.report.id;
    let cut = cut_after(&kept, run, |event| matches!(event.body, EventBody::CallFinished { .. })).await;
    let again = resumed(&runtime(&cut), run).await;
    assert_eq!(again.status(), Status::Limit);
    assert_eq!(count(&again.events(), is_request), 3);
}

/// Extends every budget by so much, or by nothing.
struct Extends(Option<u64>);

impl Approver for Extends {
    fn decide<'a>(&'a self, _request: &'a ApprovalRequest) -> BoxFuture<'a, Result<Answer, ApproverError>> {
        Box::pin(async { Ok(Answer::Once) })
    }

    fn extend<'a>(&'a self, _request: &'a ExtensionRequest) -> BoxFuture<'a, Option<u64>> {
        let more = self.0;
        Box::pin(async move { more })
    }
}

/// A run in which either the run or its agent may make one call, and a person allows three more. It is cut after the third
/// call and resumed with nobody who allows more. Returns how many calls were made in all.
async fn calls(of_run: Limits, of_agent: Limits, resume: ResumeOptions) -> usize {
    let runtime = |store: &MemoryStore, more| {
        let turns = (0..4).map(|n| asks("left", json!({ "n": n }))).chain([says("done")]);
        let agent = AgentSpec::new("main", "x").tool("left").limits(of_agent.clone());
        let store = Arc::new(store.clone());
        let limits = of_run.clone();
        TestProject::new()
            .agent(agent.model(Script::by_turn(turns)))
            .tool(left())
            .runtime(move |runtime| runtime.limits(limits).approver(Extends(more)).store(store))
            .build()
    };
    let kept = MemoryStore::default();
    let first = runtime(&kept, Some(3)).run("main", "go").await.unwrap();
    assert_eq!(count(&first.events(), |body| matches!(body, EventBody::BudgetExtended { by: 3, .. })), 1);
    let third =
        |event: &Event| event.key == "1/t3/tool/0" && matches!(event.body, EventBody::CallFinished { .. });
    let cut = cut_after(&kept, first.id, third).await;
    let again = TestRun::of(runtime(&cut, None).resume_with(first.id, resume).await.unwrap().await);
    assert_eq!(&*again.answer(), "done");
    again.tool_results().iter().filter(|result| !result.contains("used up")).count()
}

#[tokio::test]
async fn what_a_person_added_to_a_limit_is_there_after_a_restart() {
    let one = || Limits { tool_calls: Some(1), ..Limits::default() };
    let none = Limits::default;
    assert_eq!(calls(one(), none(), ResumeOptions::default()).await, 4);
    assert_eq!(calls(none(), one(), ResumeOptions::default()).await, 4);
    // Limits that are given with the resume replace what a person had added before.
    let mut replaced = ResumeOptions::default();
    replaced.limits = Some(Limits { tool_calls: Some(3), ..Limits::default() });
    assert_eq!(calls(one(), none(), replaced).await, 3);
    let mut other = ResumeOptions::default();
    other.limits = Some(Limits { turns: Some(50), ..Limits::default() });
    assert_eq!(calls(one(), none(), other).await, 4);
}
