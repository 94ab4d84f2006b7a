//! Manual-only tools: for people and code, never for a model.

use llm_do_core::{AgentSpec, Approval, Effect, FailureKind, Output, StatelessToolset};
use llm_do_models::{Script, TestModel, asks, asks_raw, replies, says};
use llm_do_runtime::{EntrySpec, Project, PromptInput};
use llm_do_testing::{Approvals, EffectRecorder, FunctionTool, TestProject, TestRun, deny, once};
use serde_json::json;

/// A tool that leaves a mark when it runs.
fn deploy(recorder: &EffectRecorder, approval: Approval) -> FunctionTool {
    let seen = recorder.clone();
    let act = move |input, call| {
        seen.happened(&call, "deploy", &input);
        async { Ok(Output::text("deployed")) }
    };
    FunctionTool::new("deploy", act).define(|tool| tool.approval = approval)
}

fn manual(recorder: &EffectRecorder) -> FunctionTool {
    deploy(recorder, Approval::PreApproved).define(|tool| tool.manual_only = true)
}

/// A tool whose code calls what it is told to.
fn calling() -> FunctionTool {
    let call = |input: serde_json::Value, call: llm_do_core::CallContext| async move {
        let name = input["name"].as_str().unwrap_or("deploy").to_owned();
        Ok(call.call(name.as_str(), json!({})).await?)
    };
    FunctionTool::new("release", call).define(|tool| {
        tool.approval = Approval::PreApproved;
        tool.effect = Effect::Calls;
    })
}

const REFUSED: &str = "blocked: `deploy` is manual-only: only a person or code may call it";

#[tokio::test]
async fn a_model_is_not_offered_it_and_is_refused_when_it_names_it() {
    let recorder = EffectRecorder::default();
    let model = Script::new([
        replies(|request| {
            assert!(request.tools.iter().all(|tool| tool.name != "deploy"), "it was offered");
            asks("deploy", json!({}))
        }),
        asks_raw("deploy", "{"),
        asks("deplyo", json!({})),
        says("done"),
    ]);
    let approvals = Approvals::new([]);
    let run = TestProject::new()
        .agent(AgentSpec::new("main", "x").tool("deploy").tool("release"))
        .tool(manual(&recorder))
        .tool(calling())
        .model(model)
        .approver(approvals.clone())
        .run("go")
        .await;
    assert_eq!(&*run.answer(), "done");
    let results = run.tool_results();
    assert!(results[0].starts_with(REFUSED) && results[1].starts_with(REFUSED), "{results:?}");
    assert!(
        !results[2].contains("`deploy`") && !results[2].contains("deploy,"),
        "it is proposed: {results:?}"
    );
    assert_eq!(run.failure_of("deploy").kind, FailureKind::Blocked);
    assert_eq!((recorder.effects().len(), approvals.requests().len()), (0, 0));
}

#[tokio::test]
async fn neither_a_mode_that_allows_everything_nor_a_rule_opens_it_to_a_model() {
    let recorder = EffectRecorder::default();
    let run = TestProject::new()
        .agent(AgentSpec::new("main", "x").tool("deploy").rule("deploy", Approval::PreApproved))
        .tool(manual(&recorder))
        .model_replies([asks("deploy", json!({})), says("done")])
        .runtime(|runtime| runtime.approval_mode(llm_do_core::ApprovalMode::ApproveAll))
        .run("go")
        .await;
    assert!(run.tool_results()[0].starts_with(REFUSED), "{:?}", run.tool_results());
    assert_eq!(recorder.effects(), []);
}

#[tokio::test]
async fn a_model_in_a_nested_agent_is_refused_too() {
    let recorder = EffectRecorder::default();
    let child = Script::new([asks("deploy", json!({})), says("could not")]);
    let run = TestProject::new()
        .agent(AgentSpec::new("main", "x").toolset("child"))
        .agent(AgentSpec::new("child", "You are child.").tool("deploy").model(child))
        .tool(manual(&recorder))
        .model_replies([asks("child", json!({"input": "deploy it"})), says("done")])
        .run("go")
        .await;
    assert_eq!(run.tool_results(), ["could not"]);
    assert_eq!(run.failure_of("deploy").kind, FailureKind::Blocked);
    assert_eq!(recorder.effects(), []);
}

#[tokio::test]
async fn the_test_model_does_not_reach_it() {
    let recorder = EffectRecorder::default();
    let run = TestProject::new()
        .agent(AgentSpec::new("main", "x").tool("deploy"))
        .tool(manual(&recorder))
        .model(TestModel::new())
        .run("go")
        .await;
    assert!(run.results().is_empty(), "{:?}", run.tool_results());
    assert_eq!(recorder.effects(), []);
}

#[tokio::test]
async fn a_person_calls_it_by_name_and_the_gate_still_asks() {
    let recorder = EffectRecorder::default();
    let runtime = |approvals: Approvals| {
        let asking = deploy(&recorder, Approval::Ask).define(|tool| tool.manual_only = true);
        TestProject::new()
            .agent(AgentSpec::new("main", "x").tool("deploy"))
            .tool(asking)
            .model_replies([])
            .approver(approvals)
            .build()
    };
    let denied = TestRun::of(runtime(Approvals::new([deny("not today")])).run("deploy", json!({})).await);
    assert!(denied.error().contains("not today"), "{}", denied.error());
    assert_eq!(recorder.effects(), []);
    let allowed = runtime(Approvals::new([once()])).run("deploy", json!({})).await.unwrap();
    assert_eq!(&*allowed.text(), "deployed");
    let in_its_name =
        runtime(Approvals::new([once()])).run("deploy", json!({})).as_agent("main").await.unwrap();
    assert_eq!(&*in_its_name.text(), "deployed");
}

#[tokio::test]
async fn the_code_of_a_tool_and_of_an_entry_call_it() {
    let recorder = EffectRecorder::default();
    let run = TestProject::new()
        .agent(AgentSpec::new("main", "x").tool("deploy").tool("release"))
        .tool(manual(&recorder))
        .tool(calling())
        .model_replies([asks("release", json!({"name": "deploy"})), says("done")])
        .run("go")
        .await;
    assert_eq!(run.tool_results(), ["deployed"]);

    let entry = EntrySpec::new("start", "Starts.", |_: PromptInput, call| async move {
        Ok(call.call("deploy", json!({})).await?)
    });
    let run = TestProject::new().entry(entry.unwrap()).tool(manual(&recorder)).run("go").await;
    assert_eq!(&*run.answer(), "deployed");
    assert_eq!(recorder.names(), ["deploy", "deploy"]);
}

#[tokio::test]
async fn an_agent_keeps_tools_of_a_toolset_from_its_model_and_others_do_not() {
    let recorder = EffectRecorder::default();
    let tools = || {
        let open = deploy(&recorder, Approval::PreApproved);
        StatelessToolset::new("ops", [open.shared(), calling().shared()])
    };
    for pattern in ["deploy", "ops.deploy", "dep*", "ops.*"] {
        let careful = Script::new([asks("deploy", json!({})), says("left")]);
        let careful = AgentSpec::new("careful", "Careful.").toolset("ops").model(careful);
        let run = TestProject::new()
            .agent(AgentSpec::new("main", "Free.").toolset("ops").toolset("careful"))
            .agent(careful.manual_only(pattern))
            .toolset(tools())
            .model_replies([asks("careful", json!({"input": "x"})), asks("deploy", json!({})), says("done")])
            .run("go")
            .await;
        assert_eq!(run.tool_results(), ["left", "deployed"], "{pattern}");
        assert_eq!(run.failure_of("deploy").kind, FailureKind::Blocked, "{pattern}");
    }
    assert_eq!(recorder.effects().len(), 4, "only the free agent reached it");
}

#[test]
fn a_misspelt_name_and_an_agent_keep_nothing_from_a_model_and_are_link_errors() {
    let link = |pattern: &str| {
        let agent = AgentSpec::new("main", "x").tool("deploy").toolset("child").manual_only(pattern);
        Project::builder()
            .agent(agent)
            .agent(AgentSpec::new("child", "x"))
            .tool(deploy(&EffectRecorder::default(), Approval::Ask))
            .build()
            .map(drop)
            .map_err(|errors| errors.to_string())
    };
    assert!(link("deploy").is_ok() && link("push_*").is_ok());
    let misspelt = link("deplyo").unwrap_err();
    assert!(
        misspelt.contains("manual-only tool `deplyo`") && misspelt.contains("did you mean `deploy`?"),
        "{misspelt}"
    );
    assert!(link("child").is_err(), "an agent is kept away by `agents`");
    assert!(link("{a").unwrap_err().contains("cannot be read"));
}
