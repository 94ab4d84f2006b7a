//! Limits of running time count over all processes in which a run went on.

use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use llm_do_core::{
    AgentSpec, Answer, Approval, ApprovalRequest, Effect, Event, EventBody, Limits, Output, RunId, Status,
};
use llm_do_models::{Script, asks, says};
use llm_do_runtime::{MemoryStore, Runtime, Store};
use llm_do_testing::{FunctionTool, TestProject, TestRun};
use serde_json::json;

const LIMIT: Duration = Duration::from_secs(60);

/// A moment: the first event of a step that has this type, and how many seconds after the start it was.
type Moment = (&'static str, &'static str, i64);

/// The beginning of a record up to the last moment, with other times. What is between two moments happened at the first.
async fn retimed(kept: &MemoryStore, run: RunId, moments: &[Moment]) -> MemoryStore {
    let events = kept.read(run, None).await.unwrap();
    let mut moments = moments.iter().peekable();
    let (mut record, mut seconds) = (Vec::new(), 0);
    for event in events {
        let kind = serde_json::to_value(&event.body).unwrap()["type"].clone();
        if let Some((_, _, at)) = moments.next_if(|(key, name, _)| event.key == **key && kind == **name) {
            seconds = *at;
        }
        let time = Timestamp::UNIX_EPOCH + SignedDuration::from_secs(seconds);
        record.push(Arc::new(Event { time, ..Event::clone(&event) }));
        if moments.peek().is_none() {
            return MemoryStore::from_events(record);
        }
    }
    panic!("no such moment: {:?}", moments.next());
}

/// An agent that looks and then thinks for so long.
fn thinking(store: &MemoryStore, limits: Limits, of_agent: Limits, thinks: u64) -> Runtime {
    let answer = says("done").after(Duration::from_secs(thinks));
    let main = AgentSpec::new("main", "x").tool("look").limits(of_agent);
    let look = FunctionTool::new("look", |_, _| async { Ok(Output::text("seen")) });
    let store = Arc::new(store.clone());
    TestProject::new()
        .agent(main.model(Script::by_turn([asks("look", json!({})), answer])))
        .tool(look.define(|tool| tool.effect = Effect::Pure))
        .runtime(move |runtime| {
            runtime.store(store).limits(limits).approver(|_: ApprovalRequest| async { Answer::Once })
        })
        .build()
}

fn limited() -> Limits {
    Limits { time: Some(LIMIT), ..Limits::default() }
}

/// How a run ends that thought for 50 seconds and waited 1,000 for a person before it was broken off.
async fn after_50_seconds(limits: Limits, of_agent: Limits, thinks: u64) -> TestRun {
    let kept = MemoryStore::default();
    let first = thinking(&kept, limits.clone(), of_agent.clone(), 0).run("main", "go").await.unwrap();
    let moments = [
        ("1/t1/model", "model_response", 50),
        ("1/t1/tool/0", "approval_requested", 50),
        ("1/t1/tool/0/gate", "approval_decided", 1_050),
        ("1/t2/model", "model_request", 1_050),
    ];
    let cut = retimed(&kept, first.id, &moments).await;
    TestRun::of(thinking(&cut, limits, of_agent, thinks).resume(first.id).await.unwrap().await)
}

#[tokio::test(start_paused = true)]
async fn the_time_that_an_agent_ran_before_a_restart_counts() {
    let in_time = after_50_seconds(limited(), Limits::default(), 5).await;
    assert_eq!(&*in_time.answer(), "done");
    let ran = in_time.events().iter().rev().find_map(|event| match event.body {
        EventBody::CallFinished { ran_ms, .. } => ran_ms,
        _ => None,
    });
    assert!((55_000..56_000).contains(&ran.unwrap()), "{ran:?}");
    assert_eq!(in_time.report().trace().calls[0].ran_ms, ran);
    assert_eq!(after_50_seconds(limited(), Limits::default(), 20).await.status(), Status::Limit);
    // A limit of the agent itself, which its caller is told of.
    let of_agent = after_50_seconds(Limits::default(), limited(), 20).await;
    assert_eq!(of_agent.status(), Status::Failed);
    assert!(of_agent.error().contains("took longer than its time limit"), "{}", of_agent.error());
}

/// A tool with a time limit that calls another one, which asks, and then works for so long.
fn calling(store: &MemoryStore, works: u64) -> Runtime {
    let outer = FunctionTool::new("outer", move |_, call| async move {
        call.call("inner", json!({})).await?;
        tokio::time::sleep(Duration::from_secs(works)).await;
        Ok(Output::text("worked"))
    });
    let inner = FunctionTool::new("inner", |_, _| async { Ok(Output::text("seen")) });
    let main = AgentSpec::new("main", "x").tool("outer").tool("inner");
    let store = Arc::new(store.clone());
    TestProject::new()
        .agent(main.model(Script::by_turn([asks("outer", json!({})), says("done")])))
        .tool(outer.define(|tool| {
            tool.effect = Effect::Calls;
            tool.approval = Approval::PreApproved;
            tool.time_limit = Some(LIMIT);
        }))
        .tool(inner.define(|tool| tool.effect = Effect::Pure))
        .runtime(move |runtime| runtime.store(store).approver(|_: ApprovalRequest| async { Answer::Once }))
        .build()
}

#[tokio::test(start_paused = true)]
async fn a_tool_does_not_run_while_a_call_that_it_made_waits_for_a_person() {
    let kept = MemoryStore::default();
    let first = calling(&kept, 0).run("main", "go").await.unwrap();
    let events = first.events();
    let inner = events.iter().find(|event| &*event.call.path == "main > outer() > inner").unwrap();
    let inner: &'static str = inner.call.id.to_string().leak();
    let gate: &'static str = format!("{inner}/gate").leak();
    // It ran for 10 seconds before it made the call, the call for another 10.
    let moments = [
        ("1/t1/tool/0", "call_executing", 0),
        (inner, "call_started", 10),
        (gate, "approval_decided", 1_000),
        (inner, "call_executing", 1_000),
        (inner, "call_finished", 1_010),
    ];
    for (works, expected) in [(30, "worked"), (45, "took longer than its time limit")] {
        let cut = retimed(&kept, first.id, &moments).await;
        let again = TestRun::of(calling(&cut, works).resume(first.id).await.unwrap().await);
        let results = again.tool_results();
        assert!(results[0].contains(expected), "{works} s: {results:?}");
    }
}
