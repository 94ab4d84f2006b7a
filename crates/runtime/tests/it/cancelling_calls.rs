//! Cancelling one call: its branch ends with an answer, and everything beside it goes on.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use futures::future::BoxFuture;
use llm_do_core::{
    AgentSpec, Answer, Approval, ApprovalRequest, CallResult, Effect, Event, EventBody, FailureKind, Key,
    Limits, Name, Opening, Output, Status, Tool, ToolDefinition, ToolError, Toolset, ToolsetInstance,
};
use llm_do_models::{Script, asks, asks_all, instructed, says};
use llm_do_runtime::{EventReader, MemoryStore, Run, Runtime};
use llm_do_testing::{FunctionTool, TestProject, TestRun};
use serde_json::json;
use tokio::sync::Notify;

const FOREVER: Duration = Duration::from_secs(86_400);

/// A tool that never answers, and how many of its calls are alive.
fn hanging(alive: &Arc<AtomicUsize>) -> FunctionTool {
    struct Alive(Arc<AtomicUsize>);
    impl Drop for Alive {
        fn drop(&mut self) {
            self.0.fetch_sub(1, Ordering::SeqCst);
        }
    }
    let alive = alive.clone();
    FunctionTool::new("hang", move |_, _| {
        alive.fetch_add(1, Ordering::SeqCst);
        let guard = Alive(alive.clone());
        async move {
            let _guard = guard;
            std::future::pending().await
        }
    })
    .define(|tool| tool.approval = Approval::PreApproved)
}

fn quick() -> FunctionTool {
    FunctionTool::new("quick", |_, _| async { Ok(Output::text("quick")) })
        .define(|tool| tool.approval = Approval::PreApproved)
}

async fn until(events: &mut EventReader, is_it: impl Fn(&Event) -> bool) -> Arc<Event> {
    loop {
        let event = events.next().await.expect("the run ended too soon");
        if is_it(&event) {
            return event;
        }
    }
}

fn executes(event: &Event) -> bool {
    matches!(event.body, EventBody::CallExecuting { .. })
}

/// Waits until a call gets so far, and cancels it.
async fn cancel_at(runtime: &Runtime, run: &Run, call: &str, is_there: impl Fn(&Event) -> bool) {
    let key = Key::from(call);
    let mut events = run.events();
    until(&mut events, |event| event.call.id == key && is_there(event)).await;
    assert!(runtime.cancel_call(run.id(), &key), "`{call}` was not running");
}

/// How the calls of a run ended, by key.
fn ends(events: &[Arc<Event>]) -> Vec<(String, Option<FailureKind>)> {
    let end = |event: &Arc<Event>| match &event.body {
        EventBody::CallFinished { result: CallResult::Error(failure), .. } => {
            Some((event.key.to_string(), Some(failure.kind)))
        }
        EventBody::CallFinished { .. } => Some((event.key.to_string(), None)),
        _ => None,
    };
    let mut ends: Vec<_> = events.iter().filter_map(end).collect();
    ends.sort_by(|one, other| one.0.cmp(&other.0));
    ends
}

fn assert_cancelled(result: &str, name: &str) {
    assert!(result.starts_with(&format!("the call of `{name}` was cancelled by a person")), "{result}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_in_a_model_request_is_cancelled_and_its_caller_reads_so() {
    let runtime = TestProject::new()
        .agent(AgentSpec::new("main", "You are main.").toolset("child"))
        .agent(AgentSpec::new("child", "You are child."))
        .model(Script::new([
            says("never").after(FOREVER).when(instructed("You are child")),
            asks("child", json!({"input": "x"})).once(),
            says("went on"),
        ]))
        .runtime(|runtime| runtime.limits(Limits { tokens: Some(100_000), ..Limits::default() }))
        .build();
    let run = runtime.run("main", "go").start();
    let asked = |event: &Event| matches!(event.body, EventBody::ModelRequest { .. });
    cancel_at(&runtime, &run, "1/t1/tool/0", asked).await;
    let run = TestRun::of(run.await);
    assert_eq!(&*run.answer(), "went on");
    assert_cancelled(&run.tool_results()[0], "child");
    assert!(run.tool_results()[0].contains("may remain"), "{}", run.tool_results()[0]);
    assert!(run.results()[0].is_error);
    assert_eq!(ends(&run.events())[1], ("1/t1/tool/0".to_owned(), Some(FailureKind::Cancelled)));
    let used = run.report().usage.total();
    assert_eq!(used.requests, 3, "the request that was given up is counted");
    runtime.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_of_several_parallel_calls_is_cancelled_and_the_others_answer() {
    let alive = Arc::default();
    let runtime = TestProject::new()
        .agent(AgentSpec::new("main", "You are main.").toolset("child").tool("hang").tool("quick"))
        .agent(AgentSpec::new("child", "You are child.").tool("quick"))
        .tool(hanging(&alive))
        .tool(quick())
        .model(Script::new([
            asks("quick", json!({})).when(instructed("You are child")).once(),
            says("child is done").when(instructed("You are child")),
            asks_all([("quick", json!({})), ("hang", json!({})), ("child", json!({"input": "x"}))]).once(),
            says("went on"),
        ]))
        .build();
    let run = runtime.run("main", "go").start();
    cancel_at(&runtime, &run, "1/t1/tool/1", executes).await;
    let run = TestRun::of(run.await);
    assert_eq!(&*run.answer(), "went on");
    let results = run.tool_results();
    assert_eq!((results[0].as_str(), results[2].as_str()), ("quick", "child is done"));
    assert_cancelled(&results[1], "hang");
    assert_eq!(alive.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn a_call_that_waits_for_an_approval_is_cancelled_and_its_question_is_withdrawn() {
    let runtime = TestProject::new()
        .agent(AgentSpec::new("main", "x").tool("write"))
        .tool(FunctionTool::new("write", |_, _| async { panic!("ran") }))
        .model_replies([asks("write", json!({})), says("went on")])
        .runtime(|runtime| runtime.approver(|_: ApprovalRequest| std::future::pending::<Answer>()))
        .build();
    let run = runtime.run("main", "go").start();
    let mut events = run.events();
    until(&mut events, |event| matches!(event.body, EventBody::ApprovalRequested(_))).await;
    while runtime.open_requests().is_empty() {
        tokio::task::yield_now().await;
    }
    let key = runtime.open_requests()[0].id.clone();
    assert!(runtime.cancel_call(run.id(), &key));
    let run = TestRun::of(run.await);
    assert_eq!(&*run.answer(), "went on");
    assert_cancelled(&run.tool_results()[0], "write");
    assert!(run.tool_results()[0].ends_with("it had not begun"), "{}", run.tool_results()[0]);
    assert_eq!(runtime.open_requests().len(), 0);
}

/// main > middle > deep > hang, cancelled at one of them.
async fn nested(cancelled: &str) -> (TestRun, usize) {
    let alive = Arc::default();
    let runtime = TestProject::new()
        .agent(AgentSpec::new("main", "You are main.").toolset("middle"))
        .agent(AgentSpec::new("middle", "You are middle.").toolset("deep"))
        .agent(AgentSpec::new("deep", "You are deep.").tool("hang"))
        .tool(hanging(&alive))
        .model(Script::new([
            asks("hang", json!({})).when(instructed("You are deep")).once(),
            says("deep went on").when(instructed("You are deep")),
            asks("deep", json!({"input": "x"})).when(instructed("You are middle")).once(),
            says("middle went on").when(instructed("You are middle")),
            asks("middle", json!({"input": "x"})).once(),
            says("main went on"),
        ]))
        .build();
    let run = runtime.run("main", "go").start();
    let mut events = run.events();
    until(&mut events, executes).await;
    assert!(runtime.cancel_call(run.id(), &Key::from(cancelled)));
    let run = TestRun::of(run.await);
    (run, alive.load(Ordering::SeqCst))
}

#[tokio::test(flavor = "multi_thread")]
async fn everything_below_a_cancelled_call_ends_and_has_an_end_in_the_record() {
    let (middle, deep) = ("1/t1/tool/0", "1/t1/tool/0/t1/tool/0");
    let hang = "1/t1/tool/0/t1/tool/0/t1/tool/0";
    let ended = |key: &str, kind: Option<FailureKind>| (key.to_owned(), kind);
    let cancelled = Some(FailureKind::Cancelled);

    let (run, alive) = nested(middle).await;
    assert_eq!((&*run.answer(), alive), ("main went on", 0));
    assert_cancelled(&run.tool_results()[0], "middle");
    let all = [ended("1", None), ended(middle, cancelled), ended(deep, cancelled), ended(hang, cancelled)];
    assert_eq!(ends(&run.events()), all);
    assert_eq!(run.failure_of("hang").message, "the call was ended, as a person cancelled `middle`");

    let (run, alive) = nested(deep).await;
    assert_eq!((&*run.answer(), alive), ("main went on", 0));
    assert_eq!(run.tool_results(), ["middle went on"]);
    assert_cancelled(&run.failure_of("deep").message, "deep");

    let (run, _) = nested(hang).await;
    assert_eq!(run.tool_results(), ["middle went on"]);
    assert_eq!(ends(&run.events()).iter().filter(|end| end.1.is_some()).count(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn code_reads_the_cancellation_of_its_call_as_a_failure_and_forks_are_calls_too() {
    let kinds = Arc::new(Mutex::new(Vec::new()));
    let seen = kinds.clone();
    let forking = FunctionTool::new("forking", move |_, call| {
        let seen = seen.clone();
        async move {
            let mut answers = call.fork(["left", "right"]).await?;
            let right = answers.pop().unwrap()?.to_text();
            seen.lock().unwrap().push(answers.pop().unwrap().unwrap_err().kind);
            let failure = call.call("hang", json!({})).await.unwrap_err();
            seen.lock().unwrap().push(failure.kind);
            Ok(Output::text(right))
        }
    })
    .define(|tool| {
        tool.approval = Approval::PreApproved;
        tool.sequential = true;
    });
    let runtime = TestProject::new()
        .agent(AgentSpec::new("main", "x").tool("forking").tool("hang"))
        .tool(forking)
        .tool(hanging(&Arc::default()))
        .model(Script::new([
            says("never").after(FOREVER).when(llm_do_models::contains("left")),
            says("did right").when(llm_do_models::contains("right")),
            asks("forking", json!({})).once(),
            says("went on"),
        ]))
        .build();
    let run = runtime.run("main", "go").start();
    let mut events = run.events();
    let is_left = |event: &Event| match &event.body {
        EventBody::ModelRequest { messages, .. } => {
            messages.iter().any(|message| message.text().contains("left"))
        }
        _ => false,
    };
    let left = until(&mut events, is_left).await;
    assert!(runtime.cancel_call(run.id(), &left.call.id));
    let hang = until(&mut events, |event| executes(event) && event.key.as_str().contains("hang#")).await;
    assert!(runtime.cancel_call(run.id(), &hang.call.id));
    let run = TestRun::of(run.await);
    assert_eq!(run.tool_results(), ["did right"]);
    assert_eq!(*kinds.lock().unwrap(), [FailureKind::Cancelled, FailureKind::Cancelled]);
}

#[tokio::test]
async fn blocking_code_is_answered_for_and_listed() {
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
    .define(|tool| tool.approval = Approval::PreApproved);
    let runtime = TestProject::new()
        .agent(AgentSpec::new("main", "x").tool("blocking"))
        .tool(blocking)
        .model_replies([asks("blocking", json!({})), says("went on")])
        .build();
    let run = runtime.run("main", "go").start();
    cancel_at(&runtime, &run, "1/t1/tool/0", executes).await;
    let run = TestRun::of(run.await);
    assert_cancelled(&run.tool_results()[0], "blocking");
    assert_eq!(runtime.still_running(), ["main > blocking"]);
    release.send(()).unwrap();
    runtime.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn what_code_answers_while_it_is_cancelled_is_told() {
    let careful = FunctionTool::new("careful", |_, call| async move {
        call.cancellation().cancelled().await;
        Ok(Output::text("stopped half-way"))
    });
    let runtime = TestProject::new()
        .agent(AgentSpec::new("main", "x").tool("careful"))
        .tool(careful.define(|tool| tool.approval = Approval::PreApproved))
        .model_replies([asks("careful", json!({})), says("went on")])
        .build();
    let run = runtime.run("main", "go").start();
    let mut events = run.events();
    until(&mut events, executes).await;
    // The tool runs up to its first wait before it is cancelled.
    tokio::time::sleep(Duration::from_millis(1)).await;
    assert!(runtime.cancel_call(run.id(), &Key::from("1/t1/tool/0")));
    let run = TestRun::of(run.await);
    assert_cancelled(&run.tool_results()[0], "careful");
    assert!(run.tool_results()[0].contains("stopped half-way"), "{:?}", run.tool_results());
}

#[tokio::test]
async fn what_does_not_run_is_not_cancelled() {
    let runtime = TestProject::new()
        .agent(AgentSpec::new("main", "x").tool("quick").tool("hang"))
        .tool(quick())
        .tool(hanging(&Arc::default()))
        .model_replies([asks("quick", json!({})), asks("hang", json!({})), says("went on")])
        .build();
    let run = runtime.run("main", "go").start();
    let (id, quick, hang) = (run.id(), Key::from("1/t1/tool/0"), Key::from("1/t2/tool/0"));
    let mut events = run.events();
    until(&mut events, |event| executes(event) && event.key == hang).await;
    assert!(!runtime.cancel_call(id, &quick), "it has ended");
    assert!(!runtime.cancel_call(id, &Key::from("1/t9/tool/0")), "it was never made");
    assert!(runtime.cancel_call(id, &hang));
    let run = TestRun::of(run.await);
    assert_eq!(run.tool_results()[0], "quick");
    assert!(!runtime.cancel_call(id, &hang), "its run has ended");
}

#[tokio::test]
async fn cancelling_the_call_that_a_run_was_started_for_cancels_the_run() {
    let runtime = TestProject::new()
        .agent(AgentSpec::new("main", "x").tool("hang"))
        .tool(hanging(&Arc::default()))
        .model_replies([asks("hang", json!({})), says("never")])
        .build();
    let run = runtime.run("main", "go").start();
    let mut events = run.events();
    until(&mut events, executes).await;
    assert!(runtime.cancel_call(run.id(), &Key::from("1")));
    assert_eq!(run.await.unwrap_err().status(), Status::Interrupted);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_that_ends_while_it_is_cancelled_does_one_of_both_and_says_which() {
    let (mut cancelled, mut answered) = (0, 0);
    for round in 0..400_u32 {
        let brief = FunctionTool::new("brief", move |_, _| async move {
            for _ in 0..round % 40 {
                tokio::task::yield_now().await;
            }
            // On a loaded machine every other call may have ended before it can be cancelled.
            if round % 40 == 39 {
                std::future::pending::<()>().await;
            }
            Ok(Output::text("answered"))
        })
        .define(|tool| tool.approval = Approval::PreApproved);
        let runtime = TestProject::new()
            .agent(AgentSpec::new("main", "x").tool("brief"))
            .tool(brief)
            .model_replies([asks("brief", json!({})), says("went on")])
            .build();
        let run = runtime.run("main", "go").start();
        let (id, key) = (run.id(), Key::from("1/t1/tool/0"));
        let mut events = run.events();
        until(&mut events, |event| executes(event) && event.key == key).await;
        for _ in 0..round / 40 {
            tokio::task::yield_now().await;
        }
        let was_cancelled = runtime.cancel_call(id, &key);
        let run = TestRun::of(run.await);
        assert_eq!(&*run.answer(), "went on", "round {round}");
        let result = &run.tool_results()[0];
        if was_cancelled {
            cancelled += 1;
            assert_cancelled(result, "brief");
        } else {
            answered += 1;
            assert_eq!(result, "answered", "round {round}");
        }
        assert_eq!(ends(&run.events()).len(), 2, "round {round}");
    }
    println!("{cancelled} cancelled, {answered} answered before");
    assert!(cancelled >= 10, "the calls that wait");
}

/// A toolset that opens when it is told to, and panics when it is closed.
struct LateKit {
    name: Name,
    opens: Arc<Notify>,
    closing: Arc<Notify>,
}

struct LateInstance(Arc<Notify>);

impl Toolset for LateKit {
    fn name(&self) -> &Name {
        &self.name
    }

    fn definitions(&self) -> Vec<Arc<ToolDefinition>> {
        Vec::new()
    }

    fn open<'a>(
        &'a self,
        _opening: Opening<'a>,
    ) -> BoxFuture<'a, Result<Arc<dyn ToolsetInstance>, ToolError>> {
        Box::pin(async {
            self.opens.notified().await;
            Ok(Arc::new(LateInstance(self.closing.clone())) as Arc<dyn ToolsetInstance>)
        })
    }
}

impl ToolsetInstance for LateInstance {
    fn tools(&self) -> &[Arc<dyn Tool>] {
        &[]
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        self.0.notify_one();
        Box::pin(async { panic!("cannot be closed") })
    }
}

#[tokio::test]
async fn a_toolset_that_opens_after_its_call_was_cancelled_tells_the_run_and_not_the_ended_call() {
    let (opens, closing) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let kit = LateKit { name: "kit".into(), opens: opens.clone(), closing: closing.clone() };
    let waits = FunctionTool::new("waits", move |_, _| {
        let closing = closing.clone();
        async move {
            closing.notified().await;
            // The notice follows the panic in the same poll of its task.
            tokio::task::yield_now().await;
            Ok(Output::text("closed"))
        }
    })
    .define(|tool| tool.approval = Approval::PreApproved);
    let runtime = TestProject::new()
        .agent(AgentSpec::new("main", "You are main.").toolset("child").tool("waits"))
        .agent(AgentSpec::new("child", "You are child.").toolset("kit"))
        .toolset(kit)
        .tool(waits)
        .model_replies([asks("child", json!({"input": "x"})), asks("waits", json!({})), says("done")])
        .build();
    let run = runtime.run("main", "go").start();
    let child = "1/t1/tool/0";
    cancel_at(&runtime, &run, child, |event| matches!(event.body, EventBody::ApprovalDecided { .. })).await;
    let mut events = run.events();
    until(&mut events, |event| {
        event.call.id == child && matches!(event.body, EventBody::CallFinished { .. })
    })
    .await;
    opens.notify_one();
    let run = TestRun::of(run.await);
    assert_eq!(&*run.answer(), "done");
    let notices: Vec<_> = run
        .events()
        .iter()
        .filter_map(|event| match &event.body {
            EventBody::Notice { text } => Some((event.call.id.to_string(), text.clone())),
            _ => None,
        })
        .collect();
    assert_eq!(notices, [(String::new(), "the toolset `kit` panicked while it was closed".to_owned())]);
}

#[tokio::test]
async fn a_recorded_cancellation_is_read_back_and_the_call_is_not_made_again() {
    let (store, made) = (Arc::new(MemoryStore::default()), Arc::new(AtomicUsize::new(0)));
    let build = |replies: Vec<llm_do_models::ScriptedReply>| {
        let (store, made) = (store.clone(), made.clone());
        let slow = FunctionTool::new("slow", move |_, _| {
            made.fetch_add(1, Ordering::SeqCst);
            std::future::pending()
        });
        TestProject::new()
            .agent(AgentSpec::new("main", "x").tool("slow"))
            .tool(slow.define(|tool| {
                tool.approval = Approval::PreApproved;
                tool.effect = Effect::Once;
            }))
            .model(Script::by_turn(replies))
            .runtime(move |runtime| runtime.store(store))
            .build()
    };
    let replies = |last: llm_do_models::ScriptedReply| vec![asks("slow", json!({})), last];
    let runtime = build(replies(says("never").after(FOREVER)));
    let run = runtime.run("main", "go").start();
    let id = run.id();
    cancel_at(&runtime, &run, "1/t1/tool/0", executes).await;
    let mut events = run.events();
    until(&mut events, |event| matches!(event.body, EventBody::ModelRequest { turn: 2, .. })).await;
    run.cancel();
    assert_eq!(run.await.unwrap_err().status(), Status::Interrupted);

    let resumed = TestRun::of(build(replies(says("went on"))).resume(id).await.unwrap().await);
    assert_eq!(&*resumed.answer(), "went on");
    assert_cancelled(&resumed.tool_results()[0], "slow");
    assert_eq!(made.load(Ordering::SeqCst), 1);
}
