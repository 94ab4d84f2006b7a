//! Toolset instances: fresh per agent call, closed exactly once on every way out. Sessions keep theirs.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use futures::future::BoxFuture;
use llm_do_core::{
    AgentSpec, Approval, Effect, FailureKind, Name, Opening, Output, Schema, Status, Tool, ToolDefinition,
    ToolError, Toolset, ToolsetInstance,
};
use llm_do_models::{Script, asks, contains, instructed, says};
use llm_do_runtime::Runtime;
use llm_do_testing::{FunctionTool, TestProject, TestRun};
use serde_json::{Value, json};

/// Counts what happens to its instances.
#[derive(Clone, Default)]
struct Ledger {
    opened: Arc<AtomicU32>,
    closed: Arc<AtomicU32>,
    twice: Arc<AtomicU32>,
}

impl Ledger {
    fn counts(&self) -> (u32, u32, u32) {
        let read = |count: &AtomicU32| count.load(Ordering::SeqCst);
        (read(&self.opened), read(&self.closed), read(&self.twice))
    }
}

/// A toolset with a counter per instance.
struct Counters {
    name: Name,
    ledger: Ledger,
    fails_to_open: bool,
}

struct Counter {
    tools: Vec<Arc<dyn Tool>>,
    ledger: Ledger,
    closings: AtomicU32,
}

fn definition(name: &str) -> ToolDefinition {
    let mut definition = ToolDefinition::new(name, "Counts", Schema::new(json!({"type": "object"})).unwrap());
    definition.toolset = Some("counters".into());
    definition.approval = Approval::PreApproved;
    definition.effect = Effect::Pure;
    definition
}

impl Toolset for Counters {
    fn name(&self) -> &Name {
        &self.name
    }

    fn definitions(&self) -> Vec<Arc<ToolDefinition>> {
        ["count", "fail", "panic", "hang"].map(|name| Arc::new(definition(name))).into()
    }

    fn open<'a>(
        &'a self,
        opening: Opening<'a>,
    ) -> BoxFuture<'a, Result<Arc<dyn ToolsetInstance>, ToolError>> {
        let start = opening.settings["start"].as_u64().unwrap_or(0);
        Box::pin(async move {
            if self.fails_to_open {
                return Err(ToolError::new("no port is free"));
            }
            self.ledger.opened.fetch_add(1, Ordering::SeqCst);
            let count = Arc::new(std::sync::atomic::AtomicU64::new(start));
            let counting = FunctionTool::new("count", move |_, _| {
                let next = count.fetch_add(1, Ordering::SeqCst) + 1;
                async move { Ok(Output::json(json!(next))) }
            });
            let failing = FunctionTool::new("fail", |_, _| async { Err(ToolError::new("failed")) });
            let panicking = FunctionTool::new("panic", |_, _| async { panic!("in a tool") });
            let hanging = FunctionTool::new("hang", |_, _| std::future::pending());
            let tools = [("count", counting), ("fail", failing), ("panic", panicking), ("hang", hanging)];
            let tools =
                tools.map(|(name, tool)| tool.define(|other| *other = definition(name)).shared()).into();
            Ok(Arc::new(Counter { tools, ledger: self.ledger.clone(), closings: AtomicU32::new(0) })
                as Arc<dyn ToolsetInstance>)
        })
    }
}

impl ToolsetInstance for Counter {
    fn tools(&self) -> &[Arc<dyn Tool>] {
        &self.tools
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {
            tokio::task::yield_now().await;
            self.ledger.closed.fetch_add(1, Ordering::SeqCst);
            if self.closings.fetch_add(1, Ordering::SeqCst) > 0 {
                self.ledger.twice.fetch_add(1, Ordering::SeqCst);
            }
        })
    }
}

fn counters(ledger: &Ledger) -> Counters {
    Counters { name: "counters".into(), ledger: ledger.clone(), fails_to_open: false }
}

fn main_agent() -> AgentSpec {
    AgentSpec::new("main", "You are main.").toolset("counters")
}

#[tokio::test]
async fn recursive_calls_of_one_agent_have_instances_of_their_own() {
    let ledger = Ledger::default();
    let count = || asks("count", json!({}));
    let run = TestProject::new()
        .agent(main_agent().toolset("main"))
        .toolset(counters(&ledger))
        .model(Script::new([
            count(),
            asks("main", json!({"input": "inner"})),
            count(), // the inner call counts from its own start
            says("inner counted"),
            count(),
            says("done"),
        ]))
        .run("outer")
        .await;
    assert_eq!(run.tool_results(), ["1", "inner counted", "2"]);
    let trace = run.report().trace();
    let inner = &trace.calls[0].calls[1].calls[0];
    assert_eq!(inner.output, Some(Output::json(json!(1))));
    assert_eq!(ledger.counts(), (2, 2, 0));
}

#[tokio::test]
async fn instances_are_closed_once_on_success_error_and_panic() {
    for tool in ["count", "fail", "panic"] {
        let ledger = Ledger::default();
        let run = TestProject::new()
            .agent(main_agent())
            .toolset(counters(&ledger))
            .model_replies([asks(tool, json!({})), says("done")])
            .run("go")
            .await;
        assert_eq!(run.status(), Status::Done);
        assert_eq!(ledger.counts(), (1, 1, 0), "{tool}");
    }
}

#[tokio::test]
async fn instances_are_closed_once_when_the_run_is_cancelled_dropped_or_out_of_time() {
    for way in ["cancel", "drop", "timeout", "user's timeout"] {
        let ledger = Ledger::default();
        let runtime: Runtime = TestProject::new()
            .agent(main_agent())
            .toolset(counters(&ledger))
            .model_replies([asks("hang", json!({}))])
            .build();
        let run = runtime.run("main", "go");
        match way {
            "timeout" => {
                let error = run.timeout(Duration::from_millis(30)).await.unwrap_err();
                assert_eq!(error.status(), Status::TimedOut);
            }
            "user's timeout" => {
                assert!(tokio::time::timeout(Duration::from_millis(30), run.into_future()).await.is_err());
            }
            _ => {
                let run = run.start();
                let mut events = run.events();
                while !matches!(
                    events.next().await.unwrap().body,
                    llm_do_core::EventBody::CallExecuting { .. }
                ) {}
                if way == "cancel" {
                    run.cancel();
                    let error = run.await.unwrap_err();
                    assert_eq!(error.status(), Status::Interrupted);
                } else {
                    drop(run);
                }
            }
        }
        runtime.shutdown().await;
        assert_eq!(ledger.counts(), (1, 1, 0), "{way}");
    }
}

#[tokio::test]
async fn a_toolset_that_cannot_be_opened_fails_its_agent_and_nothing_else() {
    let ledger = Ledger::default();
    let broken = Counters { name: "broken".into(), ledger: ledger.clone(), fails_to_open: true };
    let run = TestProject::new()
        .agent(AgentSpec::new("main", "You are main.").toolset("child"))
        .agent(AgentSpec::new("child", "You are child.").toolset("broken"))
        .toolset(broken)
        .model_replies([asks("child", json!({"input": "x"})), says("went on")])
        .run("go")
        .await;
    assert_eq!(&*run.answer(), "went on");
    assert_eq!(run.failure_of("child").kind, FailureKind::Toolset);
    assert_eq!(run.tool_results(), ["the toolset `broken` could not be opened: no port is free"]);
}

#[tokio::test]
async fn settings_of_one_agent_are_not_those_of_another() {
    let ledger = Ledger::default();
    let run = TestProject::new()
        .agent(
            AgentSpec::new("main", "You are main.")
                .toolset_with("counters", json!({"start": 10}))
                .toolset("child"),
        )
        .agent(AgentSpec::new("child", "You are child.").toolset("counters"))
        .toolset(counters(&ledger))
        .model(Script::new([
            asks("count", json!({})).when(instructed("You are child").and(contains("x"))),
            says("counted").when(instructed("You are child")),
            asks("child", json!({"input": "x"})),
            asks("count", json!({})),
            says("done"),
        ]))
        .run("go")
        .await;
    assert_eq!(run.tool_results(), ["counted", "11"]);
    let trace = run.report().trace();
    assert_eq!(trace.calls[0].calls[0].calls[0].output, Some(Output::json(json!(1))));
}

#[tokio::test]
async fn a_session_keeps_conversation_and_instances_over_its_turns() {
    let ledger = Ledger::default();
    let runtime = TestProject::new()
        .agent(main_agent())
        .toolset(counters(&ledger))
        .model_replies([asks("count", json!({})), says("one"), asks("count", json!({})), says("two")])
        .build();
    let mut session = runtime.session("main");
    assert_eq!(&*session.send("first").await.unwrap().text(), "one");
    let second = session.send("second").await.unwrap();
    assert_eq!(&*second.text(), "two");
    assert_eq!(second.trace().calls[0].calls[0].output, Some(Output::json(json!(2))));
    assert_eq!(second.trace().calls[0].key, "2");

    let texts: Vec<String> = session.messages().await.iter().map(|message| message.text()).collect();
    assert_eq!(texts, ["first", "", "", "one", "second", "", "", "two"]);
    assert_eq!(ledger.counts(), (1, 0, 0));
    let counted = session.call("counters.count", json!({})).await.unwrap();
    assert_eq!(counted, Output::json(json!(1)), "a call beside the conversation has instances of its own");
    assert_eq!(session.usage().total().requests, 4);
    session.close().await;
    assert_eq!(ledger.counts(), (2, 2, 0));
}

#[tokio::test]
async fn a_session_that_is_dropped_closes_its_instances() {
    let ledger = Ledger::default();
    let runtime = TestProject::new()
        .agent(main_agent())
        .toolset(counters(&ledger))
        .model_replies([says("one")])
        .build();
    let mut session = runtime.session("main");
    session.send("first").await.unwrap();
    drop(session);
    runtime.shutdown().await;
    assert_eq!(ledger.counts(), (1, 1, 0));
}

#[tokio::test]
async fn a_failed_turn_leaves_the_session_usable() {
    let runtime = TestProject::new()
        .agent(AgentSpec::new("main", "You are main."))
        .model_replies([
            says("one"),
            llm_do_models::fails(llm_do_core::ModelErrorKind::Overloaded, "busy"),
            says("three"),
        ])
        .build();
    let mut session = runtime.session("main");
    session.send("first").await.unwrap();
    let error = session.send("second").await.unwrap_err();
    assert_eq!(error.status(), Status::Provider);
    session.send("third").await.unwrap();
    let texts: Vec<String> = session.messages().await.iter().map(|message| message.text()).collect();
    assert_eq!(texts, ["first", "one", "third", "three"]);
}

#[tokio::test]
async fn children_start_empty_and_the_parent_sees_only_their_result() {
    let run = TestProject::new()
        .agent(AgentSpec::new("main", "You are main.").toolset("child"))
        .agent(AgentSpec::new("child", "You are child."))
        .model(Script::new([
            llm_do_models::replies(|request| {
                says(format!("I see {} messages", request.conversation.messages().len()))
            })
            .when(instructed("You are child")),
            asks("child", json!({"input": "x"})),
            asks("child", json!({"input": "y"})),
            says("done"),
        ]))
        .run("go")
        .await;
    assert_eq!(run.tool_results(), ["I see 1 messages", "I see 1 messages"]);
}

#[tokio::test]
async fn a_tool_of_a_toolset_is_called_from_outside_by_its_name_or_its_full_name() {
    let (first, second) = (Ledger::default(), Ledger::default());
    let other = Counters { name: "others".into(), ledger: second.clone(), fails_to_open: false };
    let runtime = TestProject::new().toolset(counters(&first)).build();
    assert_eq!(runtime.run("count", json!({})).await.unwrap().parse::<u64>().unwrap(), 1);
    assert_eq!(first.counts(), (1, 1, 0));

    let both = TestProject::new().toolset(counters(&first)).toolset(other).build();
    let run = TestRun::of(both.run("count", json!({})).await);
    assert!(
        run.error().contains("`count` is ambiguous") && run.error().contains("counters.count"),
        "{}",
        run.error()
    );
    assert_eq!(
        both.run("others.count", Value::Object(serde_json::Map::default()))
            .await
            .unwrap()
            .parse::<u64>()
            .unwrap(),
        1
    );
    assert_eq!(second.counts(), (1, 1, 0));
}

#[tokio::test]
async fn an_agent_keeps_its_name_where_a_tool_of_a_toolset_has_it_too() {
    let ledger = Ledger::default();
    let runtime = TestProject::new()
        .toolset(counters(&ledger))
        .agent(AgentSpec::new("count", "You count.").toolset("counters"))
        .model(Script::new([asks("count", json!({})), says("counted")]))
        .build();
    let report = runtime.run("count", json!({"input": "go"})).await.unwrap();
    assert_eq!(&*report.text(), "counted");
    assert_eq!(ledger.counts(), (1, 1, 0));
    assert_eq!(runtime.run("counters.count", json!({})).await.unwrap().parse::<u64>().unwrap(), 1);
}
