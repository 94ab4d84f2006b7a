//! Calls in the name of an agent, what the gate would say, and runs that end at a denial.

use llm_do_core::{
    Access, AgentSpec, Approval, ApprovalMode, Assessment, EventBody, Failure, FailureKind, Limits, Output,
    Status, Template,
};
use llm_do_models::{Script, asks, says};
use llm_do_runtime::{Project, Runtime, RuntimeBuilder, VerdictKind};
use llm_do_testing::{EffectRecorder, FunctionTool};
use serde_json::json;

fn write(recorder: &EffectRecorder) -> FunctionTool {
    let recorder = recorder.clone();
    FunctionTool::new("write", move |input, call| {
        recorder.happened(&call, "write", &input);
        async move { Ok(Output::text("written")) }
    })
    .takes(json!({"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}))
}

/// An agent that may write, one that must not, and one that only reads.
fn runtime(recorder: &EffectRecorder) -> RuntimeBuilder {
    let free = AgentSpec::new("free", "x").tool("write").rule("write", Approval::PreApproved);
    let strict = AgentSpec::new("strict", "x").tool("write").rule("write", Approval::Blocked);
    let reader = AgentSpec::new("reader", "x").tool("write").access(Access::Read);
    let project =
        Project::builder().agent(free).agent(strict).agent(reader).tool(write(recorder)).build().unwrap();
    Runtime::builder(project)
}

#[tokio::test]
async fn a_verdict_says_what_the_gate_would_say_and_runs_nothing() {
    let recorder = EffectRecorder::default();
    let runtime = runtime(&recorder).build().unwrap();
    let cases = [
        (None, json!({"path": "a"}), VerdictKind::Ask, "must ask"),
        (Some("free"), json!({"path": "a"}), VerdictKind::Allow, "a rule of the agent"),
        (Some("strict"), json!({"path": "a"}), VerdictKind::Block, "a rule blocks it"),
        (Some("reader"), json!({"path": "a"}), VerdictKind::Block, "read access"),
        (Some("nobody"), json!({"path": "a"}), VerdictKind::CannotBeDone, "there is no agent `nobody`"),
        (None, json!({"pth": "a"}), VerdictKind::CannotBeDone, "missing required field `path`"),
    ];
    for (agent, input, decision, words) in cases {
        let call = runtime.run("write", input);
        let call = if let Some(agent) = agent { call.as_agent(agent) } else { call };
        let verdict = call.judge().await;
        assert_eq!(verdict.decision, decision, "{agent:?}: {verdict:?}");
        assert!(verdict.reason.contains(words), "{agent:?}: {verdict:?}");
    }
    let all =
        runtime.run("write", json!({"path": "a"})).approval_mode(ApprovalMode::ApproveAll).judge().await;
    assert_eq!(all.decision, VerdictKind::Allow);
    assert_eq!(recorder.effects().len(), 0);
}

#[tokio::test]
async fn a_call_that_would_fail_is_neither_allowed_nor_asked_about() {
    let fails = |_: &_| Assessment::cannot(Failure::new(FailureKind::Tool, "there is no such file"));
    let tool = || FunctionTool::new("edit", |_, _| async { Ok(Output::text("edited")) }).assessed(fails);
    let agent = |name: &str, rule: Approval| AgentSpec::new(name, "x").tool("edit").rule("edit", rule);
    let project = Project::builder()
        .agent(agent("asking", Approval::Ask))
        .agent(agent("strict", Approval::Blocked))
        .tool(tool())
        .build()
        .unwrap();
    let runtime = Runtime::builder(project).build().unwrap();
    let edit = || runtime.run("edit", json!({}));
    for call in [edit(), edit().as_agent("asking"), edit().approval_mode(ApprovalMode::ApproveAll)] {
        let verdict = call.judge().await;
        assert_eq!((verdict.decision, verdict.failure), (VerdictKind::CannotBeDone, Some(FailureKind::Tool)));
        assert_eq!(verdict.reason, "there is no such file");
    }
    // A block would come first.
    assert_eq!(edit().as_agent("strict").judge().await.decision, VerdictKind::Block);
    let deep =
        runtime.run("asking", "x").limits(Limits { depth: Some(0), ..Limits::default() }).judge().await;
    assert_eq!((deep.decision, deep.failure), (VerdictKind::CannotBeDone, Some(FailureKind::Depth)));
}

#[tokio::test]
async fn a_call_in_the_name_of_an_agent_keeps_to_its_rules() {
    let recorder = EffectRecorder::default();
    let runtime = runtime(&recorder).approval_mode(ApprovalMode::ApproveAll).build().unwrap();
    let write = || runtime.run("write", json!({"path": "a"}));
    assert_eq!(write().as_agent("free").await.unwrap().text().as_ref(), "written");
    for agent in ["strict", "reader", "nobody"] {
        assert!(write().as_agent(agent).await.is_err(), "{agent}");
    }
    assert_eq!(recorder.effects().len(), 1);
}

#[tokio::test]
async fn a_run_can_end_at_its_first_denial() {
    let recorder = EffectRecorder::default();
    let script = Script::by_turn([asks("write", json!({"path": "a"})), says("went on")]);
    let main = AgentSpec::new("main", "x").tool("write").model(script);
    let project = || Project::builder().agent(main.clone()).tool(write(&recorder)).build().unwrap();
    let goes_on = Runtime::builder(project()).build().unwrap();
    assert_eq!(goes_on.run("main", "x").await.unwrap().text().as_ref(), "went on");
    let ends = Runtime::builder(project()).denials_end_runs(true).build().unwrap();
    let error = ends.run("main", "x").await.unwrap_err();
    assert_eq!(error.status(), Status::Denied);
    assert_eq!(error.report.failure.as_ref().map(|failure| failure.kind), Some(FailureKind::Unasked));
    let requests = error
        .report
        .events()
        .iter()
        .filter(|event| matches!(event.body, EventBody::ModelRequest { .. }))
        .count();
    assert_eq!((requests, recorder.effects().len()), (1, 0));
}

#[tokio::test]
async fn instructions_made_from_the_first_input_stay_over_a_chat() {
    let mut main = AgentSpec::new("main", "").model(Script::by_turn([says("one"), says("two")]));
    main.template = Some(Template::new("template", |input| {
        let text = input.value()["input"].as_str().unwrap_or_default().to_owned();
        if text == "bad" {
            Err(Failure::new(FailureKind::Arguments, "no such thing"))
        } else {
            Ok(format!("Do {text}."))
        }
    }));
    let runtime = Runtime::builder(Project::builder().agent(main).build().unwrap()).build().unwrap();
    let mut session = runtime.session("main");
    let mut instructions = Vec::new();
    for input in ["first", "second"] {
        let report = session.send(input).await.unwrap();
        instructions.extend(report.events().iter().filter_map(|event| match &event.body {
            EventBody::ModelRequest { instructions, .. } => instructions.clone(),
            _ => None,
        }));
    }
    assert_eq!(instructions.iter().map(AsRef::as_ref).collect::<Vec<&str>>(), ["Do first."]);
    let error = runtime.run("main", "bad").await.unwrap_err();
    assert!(error.to_string().contains("no such thing"), "{error}");
}
