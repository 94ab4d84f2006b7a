//! What is known before the first token is checked before it, all of it, with a hint.

use llm_do_core::{
    AgentSpec, Approval, Limits, Money, NeedSpec, Output, Prices, Schema, StatelessToolset, Tool, Usage,
};
use llm_do_models::{asks, says};
use llm_do_runtime::{LinkError, Project, Runtime};
use llm_do_testing::{FunctionTool, TestProject};
use serde_json::json;
use std::sync::Arc;

fn tool(name: &str) -> Arc<dyn Tool> {
    FunctionTool::new(name, |_, _| async { Ok(Output::text("ok")) })
        .define(|tool| tool.approval = Approval::PreApproved)
        .shared()
}

#[test]
fn every_problem_is_found_in_one_pass_with_a_hint() {
    let main = AgentSpec::new("main", "x")
        .tool("read")
        .tool("raed")
        .toolset("filse")
        .toolset("helper")
        .rule("wirte", Approval::Ask)
        .rule("[", Approval::Ask);
    let errors = Project::builder()
        .agent(main)
        .agent(AgentSpec::new("helper", "x"))
        .agent(AgentSpec::new("bad name", "x"))
        .agent(AgentSpec::new("read", "x"))
        .tool(tool("read"))
        .tool(tool("write"))
        .toolset(StatelessToolset::new("files", []))
        .build()
        .err()
        .unwrap();
    let text = errors.to_string();
    for expected in [
        "the agent name `bad name` is not valid\nhint: use 1 to 64 letters",
        "the name `read` is used by both an agent and a tool\nhint: rename one of them",
        "agent `main` names the tool `raed`, which does not exist\nhint: did you mean `read`?",
        "agent `main` names the toolset `filse`, which does not exist\nhint: did you mean `files`?",
        "agent `main` has an approval rule, agent name or manual-only tool that cannot be read",
    ] {
        assert!(text.contains(expected), "{expected:?} is missing in:\n{text}");
    }
    assert!(
        errors.0.iter().all(|error| error.hint().is_some() || matches!(error, LinkError::Unknown { .. }))
    );
}

#[test]
fn a_misspelt_rule_is_an_error_and_a_glob_or_inner_effect_is_not() {
    let build = |pattern: &str| {
        let main = AgentSpec::new("main", "x").tool("write").rule(pattern, Approval::Blocked);
        Project::builder().agent(main).tool(tool("write")).build().map(drop)
    };
    let error = build("wirte").unwrap_err().to_string();
    assert!(
        error.contains("names the approval rule `wirte`") && error.contains("did you mean `write`?"),
        "{error}"
    );
    for fine in ["write", "wri*", "nothing_*", "deploy.push", "main"] {
        assert_eq!(build(fine), Ok(()), "{fine}");
    }
}

#[test]
fn two_tools_of_one_name_and_a_reserved_name_are_errors() {
    let twice = Project::builder()
        .agent(AgentSpec::new("main", "x").tool("read").toolset("files"))
        .tool(tool("read"))
        .toolset(StatelessToolset::new("files", [tool("read")]))
        .build();
    let error = twice.err().unwrap().to_string();
    let both = "agent `main` lists two tools with the name `read`: the tool `read`, and `read` of the toolset `files`";
    assert!(error.contains(both), "{error}");
    let reserved = AgentSpec::new("main", "x").tool("final_answer").output(Schema::empty());
    let error = Project::builder().agent(reserved).tool(tool("final_answer")).build().err().unwrap();
    assert!(error.to_string().contains("reserved name `final_answer`"), "{error}");
}

#[test]
fn self_and_mutual_references_link() {
    let project = Project::builder()
        .agent(AgentSpec::new("a", "x").toolset("a").toolset("b"))
        .agent(AgentSpec::new("b", "x").toolset("a"))
        .build();
    assert!(project.is_ok());
}

struct Database(&'static str);

fn needy() -> Arc<dyn Tool> {
    let query = FunctionTool::new("query", |_, call| async move {
        let database = call.context().get::<Database>().map_or("none", |database| database.0);
        Ok(Output::text(format!(
            "{database} in {}",
            call.context().named("region").cloned().unwrap_or_default()
        )))
    });
    query
        .define(|tool| {
            tool.approval = Approval::PreApproved;
            tool.needs = vec![NeedSpec::typed::<Database>(), NeedSpec::named("region")];
        })
        .shared()
}

fn needy_project() -> Project {
    Project::builder().agent(AgentSpec::new("main", "x").tool("query")).tool(needy()).build().unwrap()
}

#[tokio::test]
async fn a_missing_context_value_is_an_error_that_names_tool_value_and_provider() {
    let error = Runtime::builder(needy_project()).provide(7_u32).build().err().unwrap().to_string();
    assert!(
        error.contains(
            "the tool `query` needs the context value `it::linking::Database`, which nobody provides"
        ),
        "{error}"
    );
    assert!(
        error.contains(
            "add `.provide(value)` with a `it::linking::Database` to the runtime builder; provided now: u32"
        ),
        "{error}"
    );
    assert!(error.contains(r#"add `.provide_named("region", value)`"#), "{error}");

    let runtime = Runtime::builder(needy_project())
        .provide(Database("live"))
        .provide_named("region", json!("eu"))
        .build()
        .unwrap();
    assert_eq!(&*runtime.run("query", json!({})).await.unwrap().text(), "live in \"eu\"");
}

#[tokio::test]
async fn a_value_that_runs_bring_is_checked_at_the_call() {
    let runtime = Runtime::builder(needy_project())
        .provided_per_run::<Database>()
        .provided_per_run_named("region")
        .build()
        .unwrap();
    let error = runtime.run("query", json!({})).await.unwrap_err();
    assert!(
        error
            .to_string()
            .contains("needs the context value `it::linking::Database`, which this run does not provide"),
        "{error}"
    );
    let report = runtime
        .run("query", json!({}))
        .provide(Database("test"))
        .provide_named("region", json!(1))
        .await
        .unwrap();
    assert_eq!(&*report.text(), "test in 1");
}

#[test]
fn a_depth_that_would_not_fit_the_stack_is_refused() {
    for (depth, fine) in [(0, false), (1, true), (64, true), (65, false)] {
        let runtime = Runtime::builder(needy_project())
            .provided_per_run::<Database>()
            .provided_per_run_named("region")
            .limits(Limits { depth: Some(depth), ..Limits::default() })
            .build();
        assert_eq!(runtime.is_ok(), fine, "{depth}");
    }
}

struct OnlyScript;

impl Prices for OnlyScript {
    fn price(&self, model: &str, _usage: &Usage) -> Option<Money> {
        (model == "script").then_some(Money(1))
    }
}

#[test]
fn a_cost_limit_with_an_unknown_price_is_an_error() {
    let limits = Limits { cost: Some(Money(5)), ..Limits::default() };
    let build = |model: &str| {
        let project = Project::builder()
            .agent(AgentSpec::new("main", "x").limits(limits.clone()))
            .model(model)
            .build()
            .unwrap();
        Runtime::builder(project).prices(OnlyScript).build().map(drop)
    };
    assert!(build("script").is_ok());
    let error = build("acme:large").unwrap_err().to_string();
    assert!(error.contains("the price of its model `acme:large` is unknown\nhint: give a price"), "{error}");
}

#[tokio::test]
async fn an_agent_without_a_model_fails_when_it_is_called_and_not_before() {
    let run = TestProject::new().agent(AgentSpec::new("main", "x")).run("go").await;
    assert!(
        run.error().contains("no model is set: name one in the agent, in the run or in the project"),
        "{}",
        run.error()
    );
    let run = TestProject::new()
        .agent(AgentSpec::new("main", "x").toolset("child"))
        .agent(AgentSpec::new("child", "x").model("acme:none"))
        .model_replies([asks("child", json!({"input": "x"})), says("went on")])
        .run("go")
        .await;
    assert_eq!(&*run.answer(), "went on");
    assert!(run.tool_results()[0].contains("`acme:none`"), "{:?}", run.tool_results());
}

#[tokio::test]
async fn an_agent_says_which_models_of_the_run_it_works_with() {
    let agent = || AgentSpec::new("main", "x").compatible_model("script*").compatible_model("acme:*");
    let script = |name: &str| llm_do_models::Script::new([says("hi")]).named(name);
    let run = TestProject::new().agent(agent()).model(script("script:a")).run("go").await;
    assert_eq!(&*run.answer(), "hi");
    let run = TestProject::new().agent(agent()).model(script("other:a")).run("go").await;
    assert!(
        run.error().contains("agent `main` works with script*, acme:*, and the model is `other:a`"),
        "{}",
        run.error()
    );
    let run = TestProject::new().agent(agent().model(script("other:a"))).run("go").await;
    assert_eq!(&*run.answer(), "hi");
}
