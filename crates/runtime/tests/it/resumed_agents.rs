//! Agents that a run created, after a restart.

use std::sync::Arc;

use llm_do_core::{AgentSpec, Approval, Effect, Event, EventBody, Output};
use llm_do_models::{Script, asks, says};
use llm_do_runtime::{MemoryStore, Runtime};
use llm_do_testing::{FunctionTool, TestProject, TestRun};
use serde_json::json;

use crate::resume::cut_after;

fn made(generated: bool) -> AgentSpec {
    let script = Script::by_turn([asks("look", json!({})), says("verses")]);
    let mut spec = AgentSpec::new("made", "You make verses.").tool("look").model(script);
    spec.generated = generated;
    spec
}

/// A project whose agent creates another one. What an earlier process created was loaded again, as its file was.
fn runtime(store: &MemoryStore, loaded: Option<AgentSpec>) -> Runtime {
    let script = Script::by_turn([
        asks("create", json!({})),
        asks("made", json!({"input": "spring"})),
        asks("made", json!({"input": "autumn"})),
        says("done"),
    ]);
    let create = FunctionTool::new("create", |_, call| async move {
        call.add_agent(made(true))?;
        Ok(Output::text("created"))
    });
    let look = FunctionTool::new("look", |_, _| async { Ok(Output::text("seen")) });
    let pure = |tool: FunctionTool| {
        tool.define(|tool| {
            tool.effect = Effect::Pure;
            tool.approval = Approval::PreApproved;
        })
    };
    let store = Arc::new(store.clone());
    let project = TestProject::new()
        .agent(AgentSpec::new("main", "x").tool("create").tool("look").model(script))
        .tool(pure(create))
        .tool(pure(look))
        .runtime(move |runtime| runtime.store(store));
    match loaded {
        Some(spec) => project.agent(spec).build(),
        None => project.build(),
    }
}

/// The results of the two calls of the created agent, of a run that was cut off in the middle of the first one.
async fn resumed(loaded: Option<AgentSpec>) -> Vec<String> {
    let kept = MemoryStore::default();
    let first = TestRun::of(runtime(&kept, None).run("main", "go").await);
    assert_eq!(first.tool_results(), ["created", "verses", "verses"]);
    let looked = |event: &Event| {
        event.key == "1/t2/tool/0/t1/tool/0" && matches!(event.body, EventBody::CallFinished { .. })
    };
    let run = first.report().id;
    let cut = cut_after(&kept, run, looked).await;
    let again = TestRun::of(runtime(&cut, loaded).resume(run).await.unwrap().await);
    assert_eq!(&*again.answer(), "done");
    again.tool_results().split_off(1)
}

#[tokio::test]
async fn an_agent_can_name_what_it_created_before_a_restart() {
    assert_eq!(resumed(Some(made(true))).await, ["verses", "verses"]);
}

#[tokio::test]
async fn a_name_that_now_belongs_to_an_agent_of_a_person_is_not_the_creators() {
    for result in resumed(Some(made(false))).await {
        assert!(result.contains("there is no tool or agent `made`"), "{result}");
    }
}
