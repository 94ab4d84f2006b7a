//! Toolset instances after a restart: what they kept is gone, and the model is told.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures::future::BoxFuture;
use llm_do_core::{
    AgentSpec, Approval, Effect, Event, EventBody, Name, Opening, Output, Survival, Tool, ToolDefinition,
    ToolError, Toolset, ToolsetInstance,
};
use llm_do_models::{Script, asks, says};
use llm_do_runtime::{MemoryStore, Runtime, ToolsetSubset};
use llm_do_testing::{FunctionTool, TestProject, TestRun};
use serde_json::json;

use crate::resume::cut_after;

/// Counts the calls of each agent call.
struct Counter {
    name: Name,
    survives: Survival,
}

fn count() -> FunctionTool {
    let counted = AtomicUsize::new(0);
    FunctionTool::new("count", move |_, _| {
        let count = counted.fetch_add(1, Ordering::SeqCst) + 1;
        async move { Ok(Output::text(count.to_string())) }
    })
    .define(|tool| {
        tool.effect = Effect::Once;
        tool.approval = Approval::PreApproved;
    })
}

impl Toolset for Counter {
    fn name(&self) -> &Name {
        &self.name
    }

    fn definitions(&self) -> Vec<Arc<ToolDefinition>> {
        vec![count().definition().clone()]
    }

    fn survives(&self) -> Survival {
        self.survives
    }

    fn open<'a>(&'a self, _: Opening<'a>) -> BoxFuture<'a, Result<Arc<dyn ToolsetInstance>, ToolError>> {
        Box::pin(async { Ok(Arc::new(Counting([Arc::new(count())])) as Arc<dyn ToolsetInstance>) })
    }
}

struct Counting([Arc<dyn Tool>; 1]);

impl ToolsetInstance for Counting {
    fn tools(&self) -> &[Arc<dyn Tool>] {
        &self.0
    }
}

fn runtime(store: &MemoryStore, survives: Survival) -> Runtime {
    let counter = Counter { name: "counter".into(), survives };
    let counter = ToolsetSubset::new(Arc::new(counter), vec!["count".into()]);
    let replies = [asks("count", json!({"n": 1})), asks("look", json!({})), asks("count", json!({"n": 2}))];
    let replies = replies.into_iter().chain([asks("count", json!({"n": 3})), says("done")]);
    let look = FunctionTool::new("look", |_, _| async { Ok(Output::text("seen")) });
    let store = Arc::new(store.clone());
    TestProject::new()
        .agent(AgentSpec::new("main", "x").toolset("counter").tool("look").model(Script::by_turn(replies)))
        .toolset(counter)
        .tool(look.define(|tool| {
            tool.effect = Effect::Pure;
            tool.approval = Approval::PreApproved;
        }))
        .runtime(move |runtime| runtime.store(store))
        .build()
}

/// The results of a run that was broken off after an event of a step, and how many instances were lost.
async fn resumed(survives: Survival, key: &str) -> (Vec<String>, usize) {
    let kept = MemoryStore::default();
    let first = runtime(&kept, survives).run("main", "go").await.unwrap();
    let last = |event: &Event| {
        let is_end = matches!(event.body, EventBody::CallFinished { .. } | EventBody::ModelResponse { .. });
        event.key == key && is_end
    };
    let cut = cut_after(&kept, first.id, last).await;
    let again = TestRun::of(runtime(&cut, survives).resume(first.id).await.unwrap().await);
    assert_eq!(&*again.answer(), "done");
    let is_lost = |event: &&Arc<Event>| matches!(event.body, EventBody::InstanceLost { .. });
    (again.tool_results(), again.events().iter().filter(is_lost).count())
}

#[tokio::test]
async fn a_model_is_told_once_that_the_state_of_a_toolset_is_gone() {
    let (results, lost) = resumed(Survival::Lost, "1/t1/tool/0").await;
    let note = "note: the program was restarted: what `counter` kept from earlier calls is gone\n1";
    assert_eq!((results, lost), (["1", "seen", note, "2"].map(str::to_owned).to_vec(), 1));
    // What was never used has nothing to lose, and a toolset may keep nothing, or restore it.
    let nothing = (["1", "seen", "2", "3"].map(str::to_owned).to_vec(), 0);
    assert_eq!(resumed(Survival::Lost, "1/t1/model").await, nothing);
    let anew = (["1", "seen", "1", "2"].map(str::to_owned).to_vec(), 0);
    assert_eq!(resumed(Survival::Stateless, "1/t1/tool/0").await, anew);
    assert_eq!(resumed(Survival::Restorable, "1/t1/tool/0").await, anew);
}
