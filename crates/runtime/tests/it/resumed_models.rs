//! Scripted models that go on where they were before a restart.

use std::sync::Arc;

use llm_do_core::{AgentSpec, Approval, Effect, Event, EventBody, Model, Output};
use llm_do_models::{Script, ScriptedReply, StandardModels, asks, says};
use llm_do_runtime::{MemoryStore, RuntimeBuilder, Store};
use llm_do_testing::{FunctionTool, TestProject, TestRun};
use serde_json::json;

use crate::resume::cut_after;

/// An agent that calls another one between two looks.
fn project(main: AgentSpec, child: AgentSpec) -> TestProject {
    let look =
        FunctionTool::new("look", |input, _| async move { Ok(Output::text(format!("seen {}", input["n"]))) });
    let look = look.define(|tool| {
        tool.effect = Effect::Pure;
        tool.approval = Approval::PreApproved;
    });
    TestProject::new().agent(main.tool("look").toolset("child")).agent(child.tool("look")).tool(look)
}

fn replies() -> [ScriptedReply; 7] {
    [
        asks("look", json!({"n": 1})),
        asks("child", json!({"input": "x"})),
        asks("look", json!({"n": 2})),
        asks("look", json!({"n": 3})),
        says("child is done"),
        asks("look", json!({"n": 4})),
        says("done"),
    ]
}

/// Runs a project, and resumes it after each of its events. The function makes the model of each process.
async fn resumes_anywhere(
    configure: impl Fn(TestProject) -> TestProject,
    make: impl Fn() -> (AgentSpec, AgentSpec),
) {
    let runtime = |store: &MemoryStore| {
        let (main, child) = make();
        let store: Arc<dyn Store> = Arc::new(store.clone());
        let with_store = move |runtime: RuntimeBuilder| runtime.store(store);
        configure(project(main, child)).runtime(with_store).build()
    };
    let kept = MemoryStore::default();
    let first = TestRun::of(runtime(&kept).run("main", "go").await);
    assert_eq!(&*first.answer(), "done");
    assert_eq!(first.tool_results(), ["seen 1", "child is done", "seen 4"]);
    let events = first.events();
    let run = first.report().id;
    // The end of the agent's call, and that of the run, leave nothing to say.
    for end in 0..events.len() as u64 - 2 {
        let cut = cut_after(&kept, run, |event: &Event| event.seq == Some(end)).await;
        let again = TestRun::of(runtime(&cut).resume(run).await.unwrap().await);
        assert_eq!(&*again.answer(), "done", "after {end}");
        assert_eq!(again.tool_results(), first.tool_results(), "after {end}");
        // The second process is broken off, too.
        let later = (end + 7).min(again.events().len() as u64 - 3);
        let cut = cut_after(&cut, run, |event: &Event| event.seq == Some(later)).await;
        let again = TestRun::of(runtime(&cut).resume(run).await.unwrap().await);
        assert_eq!(&*again.answer(), "done", "after {end} and {later}");
        assert_eq!(again.tool_results(), first.tool_results(), "after {end} and {later}");
    }
    assert!(events.iter().filter(|event| matches!(event.body, EventBody::ModelResponse { .. })).count() == 7);
}

#[tokio::test]
async fn a_script_in_order_goes_on_after_the_last_answer_that_is_recorded() {
    let agents = || {
        let script: Arc<dyn Model> = Arc::new(Script::new(replies()));
        (AgentSpec::new("main", "x").model(script.clone()), AgentSpec::new("child", "y").model(script))
    };
    resumes_anywhere(|project| project, agents).await;
}

#[tokio::test]
async fn a_script_for_each_call_goes_on_in_the_call_that_was_broken_off() {
    let agents = || {
        let [look, child, .., four, done] = replies();
        let [.., two, three, child_done, _, _] = replies();
        let main = Script::each_call([look, child, four, done]);
        let below = Script::each_call([two, three, child_done]);
        (AgentSpec::new("main", "x").model(main), AgentSpec::new("child", "y").model(below))
    };
    resumes_anywhere(|project| project, agents).await;
}

#[tokio::test]
async fn a_script_that_the_catalog_has_goes_on_too() {
    let agents =
        || (AgentSpec::new("main", "x").model("play:it"), AgentSpec::new("child", "y").model("play:it"));
    let with_catalog = |project: TestProject| {
        let models = StandardModels::new("/").with("play:it", Script::new(replies()).named("play:it"));
        project.runtime(move |runtime| runtime.models(models))
    };
    resumes_anywhere(with_catalog, agents).await;
}
