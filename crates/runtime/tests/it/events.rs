//! Events, trace, usage: the only way out, gapless and in causal order.

use std::collections::HashSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use llm_do_core::{
    AgentSpec, Approval, CallKind, Event, EventBody, Message, Money, Output, Prices, Status, ToolError, Usage,
};
use llm_do_models::{Script, asks, asks_all, fails, instructed, says, thinks};
use llm_do_runtime::{Project, Runtime};
use llm_do_testing::{FunctionTool, TestProject, TestRun, deny};
use serde_json::{Value, json};

/// A nested run with parallel calls, a refusal, a failure and an unknown name.
async fn nested() -> TestRun {
    let free = |name: &str| {
        FunctionTool::new(name, |_, call| async move {
            call.progress().report("half way");
            call.stderr("a line");
            call.notice("look");
            Ok(Output::text("ok"))
        })
        .define(|tool| tool.approval = Approval::PreApproved)
    };
    let calls = FunctionTool::new("calls", |_, call| async move { Ok(call.call("child", "by code").await?) })
        .define(|tool| tool.approval = Approval::PreApproved);
    let broken = FunctionTool::new("broken", |_, _| async { Err(ToolError::new("broken")) })
        .define(|tool| tool.approval = Approval::PreApproved);
    TestProject::new()
        .agent(
            AgentSpec::new("main", "You are main.")
                .toolset("child")
                .tool("free")
                .tool("gated")
                .tool("calls")
                .tool("broken"),
        )
        .agent(AgentSpec::new("child", "You are child."))
        .tool(free("free"))
        .tool(free("gated").define(|tool| tool.approval = Approval::Ask))
        .tool(calls)
        .tool(broken)
        .model(Script::new([
            thinks("so").and(says("child says hello")).when(instructed("You are child")).tokens(10, 5),
            asks_all([
                ("free", json!({})),
                ("child", json!({"input": "x"})),
                ("gated", json!({})),
                ("calls", json!({})),
                ("broken", json!({})),
                ("nothing", json!({})),
            ])
            .tokens(100, 50),
            says("done").tokens(200, 20),
        ]))
        .approvals([deny("no")])
        .run("go")
        .await
}

#[tokio::test(flavor = "multi_thread")]
async fn the_sequence_is_gapless_and_every_start_precedes_what_it_starts() {
    let run = nested().await;
    let events = run.events();
    let mut started: HashSet<&str> = HashSet::new();
    let mut finished: HashSet<&str> = HashSet::new();
    for (index, event) in events.iter().enumerate() {
        assert_eq!(event.seq, Some(index as u64));
        let parent = event.call.parent.as_deref().unwrap_or_default();
        assert!(parent.is_empty() || started.contains(parent), "{event:?}");
        assert!(!finished.contains(&*event.call.id), "after its end: {event:?}");
        match &event.body {
            EventBody::CallStarted { .. } => assert!(started.insert(&event.call.id)),
            EventBody::CallFinished { .. } => assert!(finished.insert(&event.call.id)),
            _ => {}
        }
    }
    assert_eq!(started, finished);
    assert!(matches!(events[0].body, EventBody::RunStarted { .. }));
    assert!(matches!(events[events.len() - 1].body, EventBody::RunFinished { status: Status::Done, .. }));
}

#[tokio::test]
async fn every_call_stands_in_the_trace_once_refused_ones_included() {
    let run = nested().await;
    let trace = run.report().trace();
    let mut names: Vec<(CallKind, String, bool)> =
        trace.iter().map(|call| (call.kind, call.name.clone(), call.error.is_some())).collect();
    names.sort_by(|a, b| a.1.cmp(&b.1));
    let expected = [
        (CallKind::Tool, "broken", true),
        (CallKind::Tool, "calls", false),
        (CallKind::Agent, "child", false),
        (CallKind::Agent, "child", false),
        (CallKind::Tool, "free", false),
        (CallKind::Tool, "gated", true),
        (CallKind::Agent, "main", false),
        (CallKind::Unknown, "nothing", true),
    ];
    assert_eq!(names, expected.map(|(kind, name, failed)| (kind, name.to_owned(), failed)));
}

#[tokio::test]
async fn usage_is_summed_per_call_subtree_model_and_runtime() {
    let run = nested().await;
    let trace = run.report().trace();
    let main = &trace.calls[0];
    assert_eq!((main.usage.requests, main.usage.tokens()), (4, 100 + 50 + 200 + 20 + 2 * 15));
    let calls = main.calls.iter().find(|call| call.name == "calls").unwrap();
    assert_eq!(calls.usage.tokens(), 15);
    assert_eq!(run.report().usage.for_model("script").tokens(), main.usage.tokens());
    assert_eq!(run.report().usage.total().cost.unpriced, 4, "an unknown price is not a price of 0");
}

#[tokio::test]
async fn a_trace_can_be_iterated_and_printed_without_helpers() {
    let run = nested().await;
    let mut lines = Vec::new();
    for call in run.report().trace() {
        lines.push(format!("{} ({}) depth={}", call.name, call.kind, call.depth));
    }
    assert_eq!(lines[0], "main (agent) depth=1");
    assert!(lines.contains(&"free (tool) depth=1".to_owned()), "{lines:?}");
    assert!(lines.contains(&"child (agent) depth=2".to_owned()), "{lines:?}");
    let trace = run.report().trace();
    let names: Vec<_> = (&trace).into_iter().map(|call| call.name.as_str()).collect();
    assert_eq!(names, trace.clone().into_iter().map(|call| call.name).collect::<Vec<_>>());
    assert_eq!(trace.calls[0].input.to_string(), r#"{"input":"go"}"#);
    assert_eq!(trace.calls[0].output.as_ref().map(ToString::to_string).as_deref(), Some("done"));
    let usage = "script: 4 requests, 320 input and 80 output tokens, price unknown";
    assert_eq!(run.report().usage.to_string(), usage);
}

#[tokio::test]
async fn tool_code_sees_the_trace_and_the_usage_of_the_whole_run() {
    let looks = FunctionTool::new("looks", |_, call| async move {
        let inner = call.call("child", "by code").await?;
        let trace: Vec<_> =
            call.trace().into_iter().map(|call| format!("{} {}", call.kind, call.name)).collect();
        let below: Vec<_> = call.inspect().trace.iter().map(|call| call.name.clone()).collect();
        let (run, own) = (call.run_usage().total().tokens(), call.inspect().usage.total().tokens());
        Ok(Output::json(
            json!({"inner": inner.to_string(), "trace": trace, "below": below, "run": run, "own": own}),
        ))
    });
    let run = TestProject::new()
        .agent(AgentSpec::new("main", "You are main.").tool("looks").rule("looks", Approval::PreApproved))
        .agent(AgentSpec::new("child", "You are child."))
        .tool(looks)
        .model(Script::new([
            says("hello").when(instructed("You are child")).tokens(10, 5),
            asks("looks", json!({})).tokens(100, 50),
            says("done").tokens(1, 1),
        ]))
        .run("go")
        .await;
    let seen: Value = serde_json::from_str(&run.tool_results()[0]).unwrap();
    assert_eq!(
        seen,
        json!({
            "inner": "hello",
            "trace": ["agent main", "tool looks", "agent child"],
            "below": ["child"],
            "run": 165,
            "own": 15,
        })
    );
}

#[tokio::test]
async fn the_messages_of_nested_calls_are_in_the_report_and_in_the_log_of_the_runtime() {
    let project = Project::builder()
        .agent(AgentSpec::new("main", "You are main.").toolset("child"))
        .agent(AgentSpec::new("child", "You are child."))
        .build()
        .unwrap();
    let script = Script::new([
        says("hello").when(instructed("You are child")),
        asks("child", json!({"input": "greet"})),
        says("done"),
    ]);
    let runtime = Runtime::builder(project).model(script.clone()).keep_messages(7).build().unwrap();
    let report = runtime.run("main", "go").await.unwrap();
    let texts = |messages: &[Arc<Message>]| -> Vec<String> {
        messages.iter().map(|message| format!("{:?}: {}", message.role, message.text())).collect()
    };
    let trace = report.trace();
    let child = trace.iter().find(|call| call.name == "child").unwrap();
    assert_eq!(texts(&report.messages_of(&child.key)), ["User: greet", "Assistant: hello"]);
    assert_eq!(report.messages_of(&trace.calls[0].key), report.messages);
    let logged = runtime.messages();
    let agents: Vec<_> = logged.iter().map(|logged| logged.call.agent.as_str()).collect();
    assert_eq!(agents, ["main", "main", "main", "main", "child", "child"]);
    let _second = runtime.run("main", "again").await;
    assert_eq!(runtime.messages().len(), 7, "the oldest messages are dropped");
}

#[tokio::test]
async fn remarks_of_tools_are_events_and_the_error_log_is_in_the_report() {
    let run = nested().await;
    assert_eq!(run.report().stderr_log(), ["a line"]);
    assert!(
        run.events().iter().any(|event| matches!(&event.body, EventBody::Notice { text } if text == "look"))
    );
}

#[tokio::test]
async fn an_event_in_json_has_its_call_and_is_read_back_as_it_was() {
    let run = nested().await;
    for event in run.events() {
        let text = serde_json::to_string(&*event).unwrap();
        let value: Value = serde_json::from_str(&text).unwrap();
        for field in ["seq", "key", "time", "run", "call", "depth", "path", "agent", "type"] {
            assert!(value.get(field).is_some(), "{field} is missing in {text}");
        }
        assert_eq!(serde_json::from_str::<Event>(&text).unwrap(), *event, "{text}");
    }
}

#[tokio::test]
async fn a_reader_sees_deltas_in_their_place_and_every_recorded_event() {
    let runtime = TestProject::new()
        .agent(AgentSpec::new("main", "x"))
        .model_replies([thinks("let me see").and(says("one two"))])
        .build();
    let run = runtime.run("main", "go").start();
    let mut reader = run.events();
    let mut types = Vec::new();
    while let Some(event) = reader.next().await {
        let value = serde_json::to_value(&*event).unwrap();
        types.push(value["type"].as_str().unwrap().to_owned());
        assert_eq!(event.seq.is_none(), types.last().unwrap().ends_with("_delta"));
    }
    types.dedup();
    let expected = [
        "run_started",
        "call_started",
        "approval_decided",
        "model_request",
        "thinking_delta",
        "text_delta",
        "model_response",
        "call_finished",
        "run_finished",
    ];
    assert_eq!(types, expected);
    assert_eq!(reader.dropped(), 0);
    assert_eq!(&*run.await.unwrap().text(), "one two");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slow_and_a_panicking_subscriber_harm_nobody() {
    let seen: Arc<Mutex<Vec<u64>>> = Arc::default();
    let all = seen.clone();
    let panicked = Arc::new(AtomicUsize::new(0));
    let count = panicked.clone();
    let runtime = TestProject::new()
        .agent(AgentSpec::new("main", "x"))
        .model_replies([says("done")])
        .runtime(move |runtime| {
            runtime
                .on_event(move |_| {
                    count.fetch_add(1, Ordering::SeqCst);
                    panic!("subscriber");
                })
                .on_event(move |event| {
                    std::thread::sleep(Duration::from_millis(5));
                    all.lock().unwrap().extend(event.seq);
                })
        })
        .build();
    let report = runtime.run("main", "go").await.unwrap();
    let recorded = report.events().len() as u64;
    runtime.shutdown().await;
    assert_eq!(*seen.lock().unwrap(), (0..recorded).collect::<Vec<_>>());
    assert_eq!(panicked.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn a_slow_reader_loses_deltas_but_no_recorded_event_and_knows_how_many() {
    let talk = "word ".repeat(9_000);
    let runtime = TestProject::new().agent(AgentSpec::new("main", "x")).model_replies([says(talk)]).build();
    let run = runtime.run("main", "go").start();
    let mut reader = run.events();
    let report = run.await.unwrap();
    let (mut recorded, mut deltas) = (0, 0);
    while let Some(event) = reader.next().await {
        if event.seq.is_some() { recorded += 1 } else { deltas += 1 }
    }
    assert_eq!(recorded, report.events().len());
    assert_eq!(deltas + reader.dropped(), 9_000);
    assert!(reader.dropped() > 0);
}

struct Dear;

impl Prices for Dear {
    fn price(&self, _model: &str, usage: &Usage) -> Option<Money> {
        Some(Money(usage.tokens() * 1_000))
    }
}

#[tokio::test]
async fn cost_comes_from_the_price_list() {
    let run = TestProject::new()
        .agent(AgentSpec::new("main", "x"))
        .model_replies([says("done").tokens(100, 10)])
        .runtime(|runtime| runtime.prices(Dear))
        .run("go")
        .await;
    assert_eq!(run.report().usage.total().cost.known, Money(110_000));
    assert_eq!(run.report().usage.total().cost.unpriced, 0);
}

#[tokio::test]
async fn a_model_that_is_down_is_replaced_and_one_that_stays_down_ends_the_run() {
    let down = || Script::new([fails(llm_do_core::ModelErrorKind::Overloaded, "busy")]).named("first");
    let agent = |second: Script| AgentSpec::new("main", "x").model(down()).fallback_model(second);
    let run = TestProject::new()
        .agent(agent(Script::new([says("from the second")]).named("second")))
        .run("go")
        .await;
    assert_eq!(&*run.answer(), "from the second");
    let models: Vec<_> = run
        .events()
        .iter()
        .filter_map(|event| match &event.body {
            EventBody::ModelResponse { model, .. } => Some((model.to_string(), event.key.to_string())),
            _ => None,
        })
        .collect();
    assert_eq!(models, [("first".into(), "1/t1/model".into()), ("second".into(), "1/t1/model".into())]);

    let run = TestProject::new().agent(agent(down())).run("go").await;
    assert_eq!(run.status(), Status::Provider);
    assert!(run.error().contains("busy"), "{}", run.error());
}

#[tokio::test]
async fn a_request_that_a_child_s_provider_refuses_is_an_answer_for_its_caller() {
    let run = TestProject::new()
        .agent(AgentSpec::new("main", "You are main.").toolset("child"))
        .agent(
            AgentSpec::new("child", "You are child.")
                .model(Script::new([fails(llm_do_core::ModelErrorKind::Invalid, "bad image")])),
        )
        .model_replies([asks("child", json!({"input": "x"})), says("went on")])
        .run("go")
        .await;
    assert_eq!(&*run.answer(), "went on");
    assert_eq!(run.tool_results(), ["invalid request: bad image (model `script`)"]);
}

#[tokio::test]
async fn the_printed_tree_shows_calls_results_and_usage_and_hides_no_control_signs() {
    let tool = FunctionTool::new("look", |_, _| async { Ok(Output::text("a\u{1b}[2Jb\u{202e}c")) });
    let run = TestProject::new()
        .agent(AgentSpec::new("main", "x").tool("look"))
        .tool(tool.define(|tool| tool.approval = Approval::PreApproved))
        .model_replies([asks("look", json!({"at": 1})).tokens(10, 5), says("done").tokens(20, 5)])
        .run("go")
        .await;
    let tree = run.report().trace().to_string();
    let without_time: Vec<&str> =
        tree.lines().filter_map(|line| line.rsplit_once("  ").map(|(line, _)| line)).collect();
    assert_eq!(
        without_time,
        [
            r#"agent main {"input":"go"}  -> done  [2 requests, 40 tokens]"#,
            r#"└─ tool look {"at":1}  -> a\u{1b}[2Jb\u{202e}c"#
        ]
    );
}
