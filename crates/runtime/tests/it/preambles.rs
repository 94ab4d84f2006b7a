//! What stands before the instructions of an agent: made once when its call begins, and kept.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use llm_do_core::{AgentSpec, Approval, Effect, EventBody, Failure, FailureKind, Preamble, Status, Template};
use llm_do_models::{Script, asks, contains, replies, says};
use llm_do_runtime::{MemoryStore, RunReport, Store};
use llm_do_testing::{FunctionTool, TestProject};
use serde_json::json;

/// A preamble that says how often it was made.
fn counting() -> Preamble {
    let made = AtomicU32::new(0);
    Preamble::new("counting", move || {
        let text = format!("<env>{}</env>", made.fetch_add(1, Ordering::SeqCst) + 1);
        Box::pin(std::future::ready(Ok(text)))
    })
}

fn agent() -> AgentSpec {
    let mut spec = AgentSpec::new("main", "Do it.").model(Script::by_turn([says("hi"), says("there")]));
    spec.preamble = Some(counting());
    spec
}

fn instructions(report: &RunReport) -> Vec<String> {
    let shown = |body: &EventBody| match body {
        EventBody::ModelRequest { instructions, .. } => instructions.as_ref().map(ToString::to_string),
        _ => None,
    };
    report.events().iter().filter_map(|event| shown(&event.body)).collect()
}

#[tokio::test]
async fn it_stands_before_the_instructions_after_a_blank_line() {
    let run = TestProject::new().agent(agent()).run("go").await;
    assert_eq!(instructions(run.report()), ["<env>1</env>\n\nDo it."]);
}

#[tokio::test]
async fn each_call_has_its_own_and_a_session_keeps_the_first() {
    let runtime = TestProject::new().agent(agent()).build();
    for number in 1..=2 {
        let report = runtime.run("main", "go").await.unwrap();
        assert_eq!(instructions(&report), [format!("<env>{number}</env>\n\nDo it.")]);
    }
    let mut session = runtime.session("main");
    let mut shown = Vec::new();
    for text in ["first", "second"] {
        shown.extend(instructions(&session.send(text).await.unwrap()));
    }
    assert_eq!(shown, ["<env>3</env>\n\nDo it."]);
    session.close().await;
}

#[tokio::test]
async fn it_stands_before_instructions_that_are_made_from_the_input() {
    let mut spec = agent();
    spec.template = Some(Template::new("template", |input| Ok(format!("Do {}.", input.value()["input"]))));
    let run = TestProject::new().agent(spec).run("this").await;
    assert_eq!(instructions(run.report()), ["<env>1</env>\n\nDo \"this\"."]);
}

#[tokio::test]
async fn one_that_fails_fails_the_call() {
    let mut spec = agent();
    spec.preamble = Some(Preamble::new("failing", || {
        Box::pin(std::future::ready(Err(Failure::new(FailureKind::Tool, "the file is gone"))))
    }));
    let run = TestProject::new().agent(spec).run("go").await;
    assert_eq!(run.status(), Status::Failed);
    assert!(run.error().contains("the file is gone"), "{}", run.error());
}

#[tokio::test]
async fn a_call_is_cancelled_while_it_is_made() {
    let begun = Arc::new(tokio::sync::Notify::new());
    let mut spec = agent();
    spec.preamble = Some(Preamble::new("endless", {
        let begun = begun.clone();
        move || {
            begun.notify_one();
            Box::pin(std::future::pending())
        }
    }));
    let run = TestProject::new().agent(spec).build().run("main", "go").start();
    begun.notified().await;
    run.cancel();
    let ended = tokio::time::timeout(std::time::Duration::from_secs(20), run).await;
    assert_eq!(ended.expect("it goes on").unwrap_err().status(), Status::Interrupted);
}

#[tokio::test]
async fn a_fork_keeps_that_of_its_parent() {
    let split = FunctionTool::new("split", |_, call| async move {
        let mut answers = call.fork(["left"]).await?;
        Ok(answers.remove(0)?)
    })
    .define(|definition| {
        definition.approval = Approval::PreApproved;
        definition.effect = Effect::Calls;
        definition.sequential = true;
    });
    let mut spec = AgentSpec::new("main", "Do it.").tool("split").model(Script::new([
        replies(|request| says(request.instructions.to_owned())).when(contains("left")),
        asks("split", json!({})),
        says("done"),
    ]));
    spec.preamble = Some(counting());
    let run = TestProject::new().agent(spec).tool(split).run("go").await;
    assert_eq!(run.tool_results(), ["<env>1</env>\n\nDo it."]);
}

#[tokio::test]
async fn a_resumed_run_goes_on_with_what_was_recorded() {
    let runtime = |store: Arc<MemoryStore>, made: u32| {
        let mut spec = AgentSpec::new("main", "Do it.").tool("look").model(Script::by_turn([
            asks("look", json!({})),
            replies(|request| says(request.instructions.to_owned())),
        ]));
        spec.preamble = Some(Preamble::new("stable", move || {
            Box::pin(std::future::ready(Ok(format!("<env>{made}</env>"))))
        }));
        let look = FunctionTool::new("look", |_, _| async { Ok("seen".into()) })
            .define(|definition| definition.approval = Approval::PreApproved);
        TestProject::new().agent(spec).tool(look).runtime(move |builder| builder.store(store)).build()
    };
    let store = Arc::new(MemoryStore::default());
    let report = runtime(store.clone(), 1).run("main", "go").await.unwrap();
    assert_eq!(&*report.text(), "<env>1</env>\n\nDo it.");
    let mut record = store.read(report.id, None).await.unwrap();
    let answered = record.iter().position(|event| matches!(event.body, EventBody::ModelResponse { .. }));
    record.truncate(answered.unwrap() + 1);
    let kept = MemoryStore::from_events(record);
    let again = runtime(Arc::new(kept), 2).resume(report.id).await.unwrap().await.unwrap();
    assert_eq!(again.text(), report.text());
}
