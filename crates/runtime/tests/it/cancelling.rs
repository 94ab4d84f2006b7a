//! Cancelling a tree: everything ends, is awaited and cleaned up; blocking code is listed.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use llm_do_core::{AgentSpec, Answer, Approval, ApprovalRequest, EventBody, Output, Status};
use llm_do_models::{Script, asks, asks_all, instructed, says};
use llm_do_testing::{FunctionTool, TestProject, TestRun};
use serde_json::json;

/// Counts the futures of a tool that are alive.
#[derive(Clone, Default)]
struct Alive(Arc<AtomicUsize>);

impl Alive {
    fn begin(&self) -> AliveGuard {
        self.0.fetch_add(1, Ordering::SeqCst);
        AliveGuard(self.0.clone())
    }
    fn count(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }
}

struct AliveGuard(Arc<AtomicUsize>);

impl Drop for AliveGuard {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

fn hanging(alive: &Alive) -> FunctionTool {
    let alive = alive.clone();
    FunctionTool::new("hang", move |_, _| {
        let guard = alive.begin();
        async move {
            let _guard = guard;
            std::future::pending().await
        }
    })
    .define(|tool| tool.approval = Approval::PreApproved)
}

#[tokio::test(flavor = "multi_thread")]
async fn cancelling_a_run_ends_every_branch_before_the_run_ends() {
    let alive = Alive::default();
    let runtime = TestProject::new()
        .agent(AgentSpec::new("main", "You are main.").toolset("child").tool("hang"))
        .agent(AgentSpec::new("child", "You are child.").tool("hang"))
        .tool(hanging(&alive))
        .model(Script::new([
            asks_all([("hang", json!({"n": 1})), ("hang", json!({"n": 2}))])
                .when(instructed("You are child")),
            asks_all([
                ("child", json!({"input": "x"})),
                ("child", json!({"input": "y"})),
                ("hang", json!({})),
            ]),
        ]))
        .build();
    let run = runtime.run("main", "go").start();
    let mut events = run.events();
    let mut executing = 0;
    while executing < 5 {
        executing +=
            usize::from(matches!(events.next().await.unwrap().body, EventBody::CallExecuting { .. }));
    }
    run.cancel();
    let error = run.await.unwrap_err();
    assert_eq!(alive.count(), 0, "nothing runs on unseen");
    assert_eq!(error.status(), Status::Interrupted);
    let broken_off = error.report.trace().iter().filter(|call| call.duration_ms.is_none()).count();
    assert_eq!(broken_off, 8);
}

#[tokio::test(start_paused = true)]
async fn a_request_that_is_cancelled_counts_for_the_run_and_for_the_runtime() {
    let runtime = TestProject::new()
        .agent(AgentSpec::new("main", "x"))
        .model_replies([says("never").after(Duration::from_secs(86_400))])
        .build();
    let run = runtime.run("main", "go").start();
    let mut events = run.events();
    while !matches!(events.next().await.unwrap().body, EventBody::ModelRequest { .. }) {}
    run.cancel();
    let error = run.await.unwrap_err();
    assert_eq!(error.report.usage.total().requests, 1);
    assert_eq!(runtime.usage(), error.report.usage);
}

#[tokio::test]
async fn cancelling_while_a_person_is_asked_runs_nothing() {
    let runtime = TestProject::new()
        .agent(AgentSpec::new("main", "x").tool("write"))
        .tool(FunctionTool::new("write", |_, _| async { panic!("ran") }))
        .model_replies([asks("write", json!({})), says("never")])
        .runtime(|runtime| runtime.approver(|_: ApprovalRequest| std::future::pending::<Answer>()))
        .build();
    let run = runtime.run("main", "go").start();
    let mut events = run.events();
    while !matches!(events.next().await.unwrap().body, EventBody::ApprovalRequested(_)) {}
    assert_eq!(runtime.open_requests().len(), 1);
    run.cancel();
    assert_eq!(run.await.unwrap_err().status(), Status::Interrupted);
    assert_eq!(runtime.open_requests().len(), 0);
}

#[tokio::test(start_paused = true)]
async fn code_that_watches_for_cancellation_gets_time_to_react() {
    let tidied = Arc::new(Mutex::new(Vec::new()));
    let seen = tidied.clone();
    let careful = FunctionTool::new("careful", move |_, call| {
        let seen = seen.clone();
        async move {
            call.cancellation().cancelled().await;
            tokio::time::sleep(Duration::from_secs(1)).await;
            seen.lock().unwrap().push("tidied");
            Ok(Output::text("stopped in order"))
        }
    });
    let runtime = TestProject::new()
        .agent(AgentSpec::new("main", "x").tool("careful"))
        .tool(careful.define(|tool| tool.approval = Approval::PreApproved))
        .model_replies([asks("careful", json!({})), says("never")])
        .build();
    let run = runtime.run("main", "go").start();
    let mut events = run.events();
    while !matches!(events.next().await.unwrap().body, EventBody::CallExecuting { .. }) {}
    // The tool runs up to its first wait before the run is cancelled.
    tokio::time::sleep(Duration::from_millis(1)).await;
    run.cancel();
    let error = run.await.unwrap_err();
    assert_eq!(*tidied.lock().unwrap(), ["tidied"]);
    let trace = error.report.trace();
    assert_eq!(
        trace.calls[0].calls[0].output,
        Some(Output::text("stopped in order")),
        "what was done is recorded"
    );
}

#[tokio::test]
async fn blocking_code_that_outlives_its_limit_is_answered_and_listed() {
    let (release, wait) = mpsc::channel::<()>();
    let wait = Arc::new(Mutex::new(wait));
    let blocking = FunctionTool::new("blocking", move |_, call| {
        let wait = wait.clone();
        async move {
            call.blocking(move || {
                let _ = wait.lock().unwrap().recv();
                Ok(Output::text("late"))
            })
            .await
        }
    })
    .define(|tool| {
        tool.approval = Approval::PreApproved;
        tool.time_limit = Some(Duration::from_millis(20));
    });
    let runtime = TestProject::new()
        .agent(AgentSpec::new("main", "x").tool("blocking"))
        .tool(blocking)
        .model_replies([asks("blocking", json!({})), says("went on")])
        .build();
    let run = TestRun::of(runtime.run("main", "go").await);
    assert_eq!(&*run.answer(), "went on");
    assert!(run.tool_results()[0].contains("took longer than its time limit"), "{:?}", run.tool_results());
    assert_eq!(runtime.still_running(), ["main > blocking"]);
    release.send(()).unwrap();
    runtime.shutdown().await;
}

#[tokio::test]
async fn a_panic_in_blocking_code_is_a_result() {
    let blocking =
        FunctionTool::new("blocking", |_, call| async move { call.blocking(|| panic!("deep inside")).await })
            .define(|tool| tool.approval = Approval::PreApproved);
    let run = TestProject::new()
        .agent(AgentSpec::new("main", "x").tool("blocking"))
        .tool(blocking)
        .model_replies([asks("blocking", json!({})), says("went on")])
        .run("go")
        .await;
    assert_eq!(run.tool_results(), ["`blocking` panicked: deep inside"]);
}

#[tokio::test]
async fn a_context_that_outlives_its_call_can_do_nothing_more() {
    let kept = Arc::new(Mutex::new(None));
    let keep = kept.clone();
    let keeper = FunctionTool::new("keeper", move |_, call| {
        *keep.lock().unwrap() = Some(call);
        async { Ok(Output::text("kept")) }
    });
    let secret = FunctionTool::new("secret", |_, _| async { panic!("ran") });
    let runtime = TestProject::new()
        .agent(AgentSpec::new("main", "x").tool("keeper").tool("secret"))
        .tool(keeper.define(|tool| tool.approval = Approval::PreApproved))
        .tool(secret.define(|tool| tool.approval = Approval::PreApproved))
        .model_replies([asks("keeper", json!({})), says("done")])
        .build();
    runtime.run("main", "go").await.unwrap();
    let call = kept.lock().unwrap().take().unwrap();
    let failure = call.call("secret", json!({})).await.unwrap_err();
    assert_eq!(failure.message, "the call of `keeper` has ended");
    assert!(call.approve("x", json!({}), "y").await.is_err());
}
