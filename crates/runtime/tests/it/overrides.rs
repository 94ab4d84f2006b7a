//! Tools that an agent is offered under another name, in other words: a copy for that agent, behind the same gate.

use std::sync::Arc;

use futures::future::BoxFuture;
use llm_do_core::{
    Access, AgentSpec, Approval, Effect, FailureKind, Name, Opening, Scope, StatelessToolset, ToolDefinition,
    ToolError, ToolOverride, Toolset, ToolsetInstance,
};
use llm_do_models::{asks, says};
use llm_do_runtime::{LinkError, NameKind, Project};
use llm_do_testing::{Approvals, FunctionTool, TestProject, for_session, once};
use serde_json::json;

fn writer() -> FunctionTool {
    FunctionTool::new("write_file", |input, _| async move { Ok(format!("wrote {}", input["path"]).into()) })
        .takes(json!({"type": "object", "properties": {"path": {"type": "string", "description": "a path"}}}))
        .define(|definition| definition.description = "Writes a file.".into())
}

fn files() -> StatelessToolset {
    StatelessToolset::new("files", [writer().shared()])
}

/// An agent that is offered `write_file` as `put`.
fn renaming() -> AgentSpec {
    let mut spec = AgentSpec::new("main", "Do it.").toolset("files");
    spec.overrides.push(ToolOverride {
        alias: Some("put".into()),
        description: Some("Puts something.".into()),
        parameters: vec![("path".into(), "where to".into())],
        ..ToolOverride::new("write_file")
    });
    spec
}

fn put() -> llm_do_models::ScriptedReply {
    asks("put", json!({"path": "a"}))
}

#[tokio::test]
async fn a_model_calls_the_alias_and_not_the_name_behind_it() {
    let run = TestProject::new()
        .agent(renaming().rule("put", Approval::PreApproved))
        .toolset(files())
        .model_replies([asks("write_file", json!({"path": "a"})), put(), says("done")])
        .run("go")
        .await;
    assert_eq!(run.failure_of("write_file").kind, FailureKind::Unknown);
    assert_eq!(run.tool_results()[1], "wrote \"a\"");
}

#[test]
fn no_other_agent_sees_the_change() {
    let project = Project::builder()
        .agent(renaming())
        .agent(AgentSpec::new("other", "Do it.").toolset("files"))
        .toolset(files())
        .build()
        .unwrap();
    let offered = |agent: usize| {
        let outline = project.outline();
        let definition = outline[agent].callables[0].definition.clone();
        let words = definition.input.source()["properties"]["path"]["description"].clone();
        (definition.name.to_string(), definition.description.clone(), words)
    };
    assert_eq!(offered(0), ("put".into(), "Puts something.".into(), json!("where to")));
    assert_eq!(offered(1), ("write_file".into(), "Writes a file.".into(), json!("a path")));
}

#[tokio::test]
async fn rules_go_by_the_alias_and_by_the_toolset_with_the_own_name() {
    for pattern in ["put", "files.write_file", "files.*"] {
        let run = TestProject::new()
            .agent(renaming().rule(pattern, Approval::Blocked))
            .toolset(files())
            .model_replies([put(), says("done")])
            .run("go")
            .await;
        assert_eq!(run.failure_of("put").kind, FailureKind::Blocked, "{pattern}");
    }
    let errors = Project::builder()
        .agent(renaming().rule("write_file", Approval::Blocked))
        .toolset(files())
        .build()
        .err()
        .unwrap();
    assert!(matches!(&errors.0[..], [LinkError::Unknown { kind: NameKind::ApprovalRule, .. }]), "{errors}");
}

#[tokio::test]
async fn code_may_use_both_names_under_the_rules_and_grants_of_the_alias() {
    let code = |_input, call: llm_do_core::CallContext| async move {
        call.call("put", json!({"path": "a"})).await?;
        Ok(call.call("write_file", json!({"path": "b"})).await?)
    };
    let helper = FunctionTool::new("helper", code).define(|definition| {
        definition.approval = Approval::PreApproved;
        definition.effect = Effect::Calls;
    });
    let approvals = Approvals::new([for_session(Scope::Tool)]);
    let run = TestProject::new()
        .agent(renaming().tool("helper"))
        .tool(helper)
        .toolset(files())
        .approver(approvals.clone())
        .model_replies([asks("helper", json!({})), says("done")])
        .run("go")
        .await;
    assert_eq!(run.tool_results(), ["wrote \"b\""]);
    let asked: Vec<String> = approvals.requests().iter().map(|request| request.name.to_string()).collect();
    assert_eq!(asked, ["put"]);
}

#[tokio::test]
async fn access_can_be_raised_and_never_lowered() {
    let offered = |access| {
        let mut spec = AgentSpec::new("main", "Do it.").toolset("files").rule("*", Approval::PreApproved);
        spec.access = Access::Write;
        spec.overrides.push(ToolOverride { access: Some(access), ..ToolOverride::new("write_file") });
        TestProject::new()
            .agent(spec)
            .toolset(files())
            .model_replies([asks("write_file", json!({"path": "a"})), says("done")])
    };
    let raised = offered(Access::Admin).run("go").await;
    assert_eq!(raised.failure_of("write_file").kind, FailureKind::Access);
    let project = Project::builder().agent({
        let mut spec = AgentSpec::new("main", "Do it.").toolset("files");
        spec.overrides.push(ToolOverride { access: Some(Access::Read), ..ToolOverride::new("write_file") });
        spec
    });
    let outline = project.toolset(files()).build().unwrap().outline();
    assert_eq!(outline[0].callables[0].definition.access, Access::Write);
    assert_eq!(offered(Access::Read).run("go").await.tool_results(), ["wrote \"a\""]);
}

#[test]
fn what_cannot_be_offered_is_said_when_a_project_is_linked() {
    let linked = |change: ToolOverride| {
        let mut spec = AgentSpec::new("main", "Do it.").toolset("files").tool("read_file");
        spec.overrides.push(change);
        let tool: Arc<dyn llm_do_core::Tool> =
            Arc::new(FunctionTool::new("read_file", |_, _| async { Ok("".into()) }));
        Project::builder().agent(spec).tool(tool).toolset(files()).build().err().unwrap().to_string()
    };
    let alias = |alias: &str| ToolOverride { alias: Some(alias.into()), ..ToolOverride::new("write_file") };
    assert!(linked(alias("read_file")).contains("two tools with the name `read_file`"));
    assert!(linked(alias("a b")).contains("the tool name `a b` is not valid"));
    assert!(linked(ToolOverride::new("write_fil")).contains("did you mean `write_file`?"));
    let parameters = vec![("pfad".to_owned(), "x".to_owned())];
    let wrong = linked(ToolOverride { parameters, ..ToolOverride::new("write_file") });
    assert!(wrong.contains("names the parameter `pfad`, which does not exist"), "{wrong}");
}

/// A toolset that adds the agent's name to what it describes.
struct Signing(StatelessToolset);

impl Toolset for Signing {
    fn name(&self) -> &Name {
        self.0.name()
    }

    fn definitions(&self) -> Vec<Arc<ToolDefinition>> {
        self.0.definitions()
    }

    fn described_for(&self, definition: &Arc<ToolDefinition>, agent: &AgentSpec) -> Arc<ToolDefinition> {
        let description = format!("{} For {}.", definition.description, agent.name);
        Arc::new(ToolDefinition { description, ..ToolDefinition::clone(definition) })
    }

    fn open<'a>(
        &'a self,
        opening: Opening<'a>,
    ) -> BoxFuture<'a, Result<Arc<dyn ToolsetInstance>, ToolError>> {
        self.0.open(opening)
    }
}

#[tokio::test]
async fn what_a_toolset_says_to_one_agent_is_added_to_the_other_words() {
    let toolset = || Signing(files());
    let project = Project::builder().agent(renaming()).toolset(toolset()).build().unwrap();
    let description = project.outline()[0].callables[0].definition.description.clone();
    assert_eq!(description, "Puts something. For main.");
    let run = TestProject::new()
        .agent(renaming().rule("put", Approval::PreApproved))
        .toolset(toolset())
        .model_replies([put(), says("done")])
        .run("go")
        .await;
    assert_eq!(run.tool_results(), ["wrote \"a\""]);
}

#[tokio::test]
async fn two_tools_may_change_their_names() {
    let tool = |name: &'static str| {
        FunctionTool::new(name, move |_, _| async move { Ok(name.into()) })
            .define(|definition| definition.approval = Approval::PreApproved)
    };
    let mut spec = AgentSpec::new("main", "Do it.").tool("left").tool("right");
    for (own, alias) in [("left", "right"), ("right", "left")] {
        spec.overrides.push(ToolOverride { alias: Some(alias.into()), ..ToolOverride::new(own) });
    }
    let run = TestProject::new()
        .agent(spec)
        .tool(tool("left"))
        .tool(tool("right"))
        .model_replies([asks("left", json!({})), says("done")])
        .run("go")
        .await;
    assert_eq!(run.tool_results(), ["right"]);
}

#[tokio::test]
async fn a_question_shows_the_own_name_of_a_tool_beside_its_alias() {
    let approvals = Approvals::new([once()]);
    let run = TestProject::new()
        .agent(renaming().rule("put", Approval::Ask))
        .toolset(files())
        .approver(approvals.clone())
        .model_replies([put(), says("done")])
        .run("go")
        .await;
    assert_eq!(&*run.answer(), "done", "{run:?}");
    let [request] = &approvals.requests()[..] else { panic!("{:?}", approvals.requests()) };
    assert_eq!(request.path, "main > put (write_file)");
    assert_eq!(request.reason, "`put (write_file)` must ask before it runs");
    let shown = serde_json::to_value(request).unwrap();
    assert_eq!((&shown["tool"], &shown["own_name"]), (&json!("put"), &json!("write_file")));
    assert_eq!(shown["chain"], "main > put (write_file)");
}
