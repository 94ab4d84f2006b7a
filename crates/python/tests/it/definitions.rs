//! What files define: tools with their facts, entries, inputs, agents, providers.

use std::time::Duration;

use llm_do_core::{Access, Approval, ApprovalMode, Effect, InputPart, Payload};
use llm_do_project::{ClassPurpose, WantedClass, WantedFunction};
use llm_do_runtime::{Project, Runtime};
use llm_do_testing::{TestRun, needs};
use serde_json::json;

use crate::support::{Folder, Named};

#[needs(python)]
#[test]
fn a_tool_that_says_nothing_writes_asks_and_acts_once() {
    let folder = Folder::of("def act(path: str): ...\nTOOLS = [act]\n");
    let code = folder.load();
    let definition = code.tool("act").definition().clone();
    assert_eq!(
        (definition.access, definition.approval, definition.effect, definition.time_limit),
        (Access::Write, Approval::Ask, Effect::Once, Some(Duration::from_secs(600)))
    );
    assert_eq!(definition.input.source()["required"], json!(["path"]));
    assert_eq!(code.tools[0].location.file, folder.path().join("tools.py"));
    assert_eq!(code.tools[0].location.line, Some(1));
}

#[needs(python)]
#[tokio::test]
async fn the_entry_of_a_project_runs() {
    let mut folder = Folder::of(
        "async def main(args, ctx):\n    'Starts.'\n    return f'{args.input} at depth {ctx.depth}'\ndef other(args, ctx): ...\n",
    );
    folder.entry = Some(WantedFunction { file: folder.path().join("tools.py"), name: "main".to_owned() });
    let code = folder.load();
    assert_eq!(code.entries.len(), 1);
    let entry = code.entries[0].value.clone();
    let project = Project::builder().entry(entry).build().unwrap();
    let runtime = Runtime::builder(project).build().unwrap();
    let run = TestRun::of(runtime.run("main", "hello").approval_mode(ApprovalMode::RejectAll).await);
    assert_eq!(run.answer().as_ref(), "hello at depth 0");
}

#[needs(python)]
#[tokio::test]
async fn a_class_gives_the_schema_of_an_input_and_makes_its_prompt() {
    let mut folder = Folder::of("");
    folder.file(
        "schemas.py",
        r#"
from llm_do.runtime import AgentArgs
class Topic(AgentArgs):
    topic: str
    depth: int = 1
    def prompt_messages(self):
        return [f"Write about {self.topic}.", f"Depth {self.depth}."]
"#,
    );
    let file = folder.path().join("schemas.py");
    folder.classes = vec![WantedClass { file, name: "Topic".to_owned(), purpose: ClassPurpose::Input }];
    let code = folder.load();
    let class = &code.classes[0];
    assert!(class.schema.fits(&json!({"topic": "rust"})) && !class.schema.fits(&json!({"topic": 1})));
    let prompt = class.prompt.as_ref().unwrap();
    let parts = prompt.parts(&Payload::new(json!({"topic": "rust", "depth": 3}))).await.unwrap();
    assert_eq!(parts, [InputPart::from("Write about rust."), InputPart::from("Depth 3.")]);
    assert!(prompt.parts(&Payload::new(json!({"depth": 3}))).await.is_err());
}

#[needs(python)]
#[tokio::test]
async fn a_provider_of_code_says_how_its_models_are_reached() {
    let folder = Folder::of(
        r#"
import time
from llm_do import register_model_factory
class Model:
    def __init__(self, name):
        self.base_url, self.api_key, self.model_name = "http://localhost:1/v1", "k", name + "-1"
register_model_factory("acme", Model)
def broken(name): raise ValueError("no such model")
register_model_factory("broken", broken)
"#,
    );
    let code = folder.load();
    let provider = |name: &str| code.providers.iter().find(|provider| provider.name == name).unwrap().clone();
    let model = (provider("acme").reach)("small").unwrap();
    assert_eq!((model.api.as_str(), model.model.as_str()), ("openai-chat", "small-1"));
    assert_eq!((model.base_url.as_str(), model.key.as_deref()), ("http://localhost:1/v1", Some("k")));
    let failure = (provider("broken").reach)("small").err().unwrap();
    assert!(failure.message.contains("no such model"), "{failure}");
}

#[needs(python)]
#[test]
fn agents_of_code_name_their_tools() {
    let folder = Folder::of(
        r#"
from llm_do.runtime import AgentSpec
helper = AgentSpec(name="helper", instructions="Help.", description="Helps.", model="test", tools=["add"])
def add(a: int) -> int: return a
TOOLS = [add]
"#,
    );
    let code = folder.load();
    let agent = &code.agents[0].value;
    assert_eq!(
        (agent.name.as_str(), &*agent.instructions, agent.description.as_str()),
        ("helper", "Help.", "Helps.")
    );
    assert_eq!(agent.tools, ["add"]);
    assert_eq!(agent.model.as_ref().unwrap().name().as_str(), "test");
}
