//! What counts as the outcome of a step when a run is resumed.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use llm_do_core::{
    AgentSpec, Answer, Approval, ApprovalRequest, Effect, Event, EventBody, ModelErrorKind, Output, RunId,
    Status, ToolError,
};
use llm_do_models::{Script, asks, fails, says};
use llm_do_runtime::{MemoryStore, Runtime};
use llm_do_testing::{FunctionTool, TestProject, TestRun};
use serde_json::json;

use crate::resume::cut_after;

/// A tool that answers with an error when it is told to end, and otherwise does its work. It counts how often it ran.
fn patient(store: &MemoryStore, effect: Effect, is_done: bool, count: &Arc<AtomicUsize>) -> Runtime {
    let count = count.clone();
    let tool = FunctionTool::new("patient", move |_, call| {
        count.fetch_add(1, Ordering::SeqCst);
        async move {
            if is_done {
                return Ok(Output::text("worked"));
            }
            call.cancellation().cancelled().await;
            Err(ToolError::new("cancelled"))
        }
    });
    let store = Arc::new(store.clone());
    TestProject::new()
        .agent(
            AgentSpec::new("main", "x")
                .tool("patient")
                .model(Script::by_turn([asks("patient", json!({})), says("done")])),
        )
        .tool(tool.define(|tool| {
            tool.effect = effect;
            tool.approval = Approval::PreApproved;
        }))
        .runtime(move |runtime| runtime.store(store))
        .build()
}

/// Interrupts a tool and resumes the run; returns what the tool gave at last, and how often it ran.
async fn interrupted(effect: Effect) -> (String, usize) {
    let (kept, count) = (MemoryStore::default(), Arc::new(AtomicUsize::new(0)));
    let run = patient(&kept, effect, false, &count).run("main", "go").start();
    let mut events = run.events();
    while !matches!(events.next().await.unwrap().body, EventBody::CallExecuting { .. }) {}
    run.cancel();
    let error = run.await.unwrap_err();
    assert_eq!((error.status(), error.report.can_resume), (Status::Interrupted, true));
    let resumed = patient(&kept, effect, true, &count).resume(error.report.id).await.unwrap();
    let again = TestRun::of(resumed.await);
    assert_eq!(&*again.answer(), "done");
    (again.tool_results().remove(0), count.load(Ordering::SeqCst))
}

#[tokio::test]
async fn an_error_of_a_tool_that_was_told_to_end_is_not_its_result_if_it_may_be_repeated() {
    for effect in [Effect::Pure, Effect::Idempotent, Effect::Calls] {
        assert_eq!(interrupted(effect).await, ("worked".to_owned(), 2), "{effect:?}");
    }
    let (result, count) = interrupted(Effect::Once).await;
    assert!(result.contains("cancelled") && count == 1, "{result}, {count}");
}

/// Asks for approvals, in another agent and at the top. Somebody may be there who allows everything.
fn asking(store: &MemoryStore, is_somebody_there: bool) -> Runtime {
    let act = FunctionTool::new("act", |_, _| async { Ok(Output::text("acted")) });
    let main = Script::by_turn([asks("child", json!({"input": "x"})), asks("act", json!({})), says("done")]);
    let child = Script::by_turn([asks("act", json!({})), says("child is done")]);
    let store = Arc::new(store.clone());
    TestProject::new()
        .agent(AgentSpec::new("main", "x").tool("act").toolset("child").model(main))
        .agent(AgentSpec::new("child", "y").tool("act").model(child))
        .tool(act)
        .runtime(move |runtime| {
            let runtime = runtime.store(store);
            match is_somebody_there {
                true => runtime.approver(|_: ApprovalRequest| async { Answer::Once }),
                false => runtime,
            }
        })
        .build()
}

#[tokio::test]
async fn that_nobody_could_be_asked_is_known_after_a_restart() {
    let kept = MemoryStore::default();
    let first = asking(&kept, false).run("main", "go").await.unwrap();
    assert!(first.nobody_to_ask);
    let known_after = async |key: &str| {
        let last = |event: &Event| {
            let is_end =
                matches!(event.body, EventBody::CallFinished { .. } | EventBody::ApprovalDecided { .. });
            event.key == key && (is_end || matches!(event.body, EventBody::ModelResponse { .. }))
        };
        let cut = cut_after(&kept, first.id, last).await;
        let again = asking(&cut, true).resume(first.id).await.unwrap().await.unwrap();
        assert_eq!(&*again.text(), "done");
        again.nobody_to_ask
    };
    assert!(!known_after("1/t1/model").await, "nobody was asked yet");
    assert!(known_after("1/t1/tool/0/t1/tool/0/gate").await, "in a call that goes on");
    assert!(known_after("1/t1/tool/0").await, "in a call that is done");
}

/// An agent whose child may ask two models.
fn with_child(store: &MemoryStore, first: Script, second: Script) -> Runtime {
    let main = Script::by_turn([asks("child", json!({"input": "x"})), says("done")]);
    let child =
        AgentSpec::new("child", "y").model(first.named("first")).fallback_model(second.named("second"));
    let store = Arc::new(store.clone());
    TestProject::new()
        .agent(AgentSpec::new("main", "x").toolset("child").model(main.named("main")))
        .agent(child)
        .runtime(move |runtime| runtime.store(store))
        .build()
}

/// The record up to the last answer to the child.
async fn cut_after_the_childs_answer(kept: &MemoryStore, run: RunId) -> MemoryStore {
    let answered = |event: &Event| {
        event.key == "1/t1/tool/0/t1/model" && matches!(event.body, EventBody::ModelResponse { .. })
    };
    cut_after(kept, run, answered).await
}

#[tokio::test]
async fn a_request_that_the_provider_refused_is_not_made_again() {
    let kept = MemoryStore::default();
    let refuses = || Script::by_turn([fails(ModelErrorKind::Invalid, "too many tools")]);
    let first = with_child(&kept, refuses(), refuses()).run("main", "go").await.unwrap();
    let answers = || Script::by_turn([says("an answer")]);
    // Also if the second process ends before it has recorded what followed.
    let mut cut = cut_after_the_childs_answer(&kept, first.id).await;
    for _ in 0..2 {
        let run = with_child(&cut, answers(), answers()).resume(first.id).await.unwrap().await;
        let again = TestRun::of(run);
        assert_eq!(again.tool_results(), TestRun::of(Ok(first.clone())).tool_results());
        assert!(again.tool_results()[0].contains("too many tools"), "{:?}", again.tool_results());
        cut = cut_after(&cut, first.id, |event| matches!(event.body, EventBody::RunResumed { .. })).await;
    }
}

#[tokio::test]
async fn after_an_outage_all_models_are_asked_again() {
    let kept = MemoryStore::default();
    let down = Script::by_turn([fails(ModelErrorKind::Overloaded, "busy")]);
    let refuses = Script::by_turn([fails(ModelErrorKind::Invalid, "too many tools")]);
    let error = with_child(&kept, down, refuses).run("main", "go").await.unwrap_err();
    assert_eq!(error.status(), Status::Provider);
    let cut = cut_after_the_childs_answer(&kept, error.report.id).await;
    for store in [kept, cut] {
        let answers = || Script::by_turn([says("an answer")]);
        let run = with_child(&store, answers(), answers()).resume(error.report.id).await.unwrap().await;
        assert_eq!(TestRun::of(run).tool_results(), ["an answer"]);
    }
}
