//! Toolsets: an instance for each agent call, opened and closed, and those that are made here.

use std::sync::Arc;

use llm_do_core::{
    CallInfo, Context, Key, Name, NoticeSink, Opening, RunId, ToolError, Toolset, ToolsetInstance,
};
use llm_do_testing::{TestCall, needs};
use serde_json::{Value, json};

use crate::printing::recording;
use crate::support::{Folder, Named};

pub(crate) async fn open(toolset: &dyn Toolset) -> Result<Arc<dyn ToolsetInstance>, ToolError> {
    open_with(toolset, &Value::Null, &NoticeSink::none()).await
}

async fn open_with(
    toolset: &dyn Toolset,
    settings: &Value,
    notices: &NoticeSink,
) -> Result<Arc<dyn ToolsetInstance>, ToolError> {
    let info = CallInfo {
        run: RunId(uuid::Uuid::nil()),
        id: Key::from("1"),
        parent: None,
        depth: 1,
        path: "main".into(),
        agent: Name::from("main"),
    };
    toolset.open(Opening { call: &info, settings, context: &Context::default(), notices }).await
}

async fn call(instance: &Arc<dyn ToolsetInstance>, name: &str) -> String {
    let tool = instance.tools().iter().find(|tool| tool.definition().name == name).unwrap().clone();
    let reply = TestCall::new().run(tool, json!({})).await;
    match reply.reply() {
        Ok(output) => output.to_text().to_string(),
        Err(error) => format!("error: {error}"),
    }
}

const COUNTING: &str = r#"
import os, pathlib
from pydantic_ai.toolsets import FunctionToolset
log = pathlib.Path(__file__).with_name("log")
def say(text):
    with log.open("a") as file: file.write(text + "\n")
def counting(ctx):
    state = {"count": 0}
    kit = FunctionToolset()
    @kit.tool_plain
    def count() -> int:
        state["count"] += 1
        return state["count"]
    @kit.tool_plain
    def crash(): os._exit(1)
    kit.cleanup = lambda: say("closed at " + str(state["count"]))
    return kit
TOOLSETS = {"counting": counting}
"#;

#[needs(python)]
#[tokio::test]
async fn each_agent_call_has_an_instance_of_its_own_that_is_closed() {
    let folder = Folder::of(COUNTING);
    let code = folder.load();
    let toolset = code.toolset("counting");
    let names: Vec<String> =
        toolset.definitions().iter().map(|definition| definition.name.to_string()).collect();
    assert_eq!(names, ["count", "crash"]);
    let (first, second) = (open(&*toolset).await.unwrap(), open(&*toolset).await.unwrap());
    assert_eq!(call(&first, "count").await, "1");
    assert_eq!(call(&first, "count").await, "2");
    assert_eq!(call(&second, "count").await, "1");
    std::fs::write(folder.path().join("log"), "").unwrap();
    first.close().await;
    second.close().await;
    let log = std::fs::read_to_string(folder.path().join("log")).unwrap();
    assert_eq!(log, "closed at 2\nclosed at 1\n");
}

#[needs(python)]
#[tokio::test]
async fn what_goes_wrong_when_a_toolset_is_closed_is_a_notice_of_its_agent() {
    let folder = Folder::of(
        r#"
import os
from pydantic_ai.toolsets import FunctionToolset
class Own(FunctionToolset):
    def __init__(self, how):
        super().__init__()
        self.how = how
    async def __aenter__(self):
        print("entering")
        return self
    async def __aexit__(self, *problem):
        print("leaving")
        if self.how == "raise": raise OSError("commit failed: data not saved")
        if self.how == "exit": raise SystemExit(3)
        if self.how == "crash": os._exit(4)
    def cleanup(self):
        if self.how == "cleanup": raise ValueError("cleanup is broken")
TOOLSETS = {how: (lambda how=how: Own(how)) for how in ["raise", "exit", "crash", "cleanup"]}
"#,
    );
    let code = folder.load();
    for (name, last) in [
        ("raise", "__aexit__ failed: OSError: commit failed: data not saved"),
        ("exit", "SystemExit: 3"),
        ("cleanup", "cleanup failed: ValueError: cleanup is broken"),
        ("crash", "exit code 4"),
    ] {
        let (notices, seen) = recording();
        let instance = open_with(&*code.toolset(name), &Value::Null, &notices).await.unwrap();
        instance.close().await;
        let seen = seen.lock().unwrap().clone();
        assert!(seen.contains(&"entering".to_owned()) && seen.contains(&"leaving".to_owned()), "{seen:?}");
        assert!(seen.last().unwrap().contains(last), "{name}: {seen:?}");
    }
}

#[needs(python)]
#[tokio::test]
async fn after_a_crash_an_instance_is_opened_again() {
    let folder = Folder::of(COUNTING);
    let code = folder.load();
    let instance = open(&*code.toolset("counting")).await.unwrap();
    assert_eq!(call(&instance, "count").await, "1");
    assert!(call(&instance, "crash").await.contains("exit code 1"));
    assert_eq!(call(&instance, "count").await, "1");
    assert_eq!(call(&instance, "count").await, "2");
    instance.close().await;
}

#[needs(python)]
#[tokio::test]
async fn settings_for_python_code_are_refused() {
    let folder = Folder::of(COUNTING);
    let code = folder.load();
    let error =
        open_with(&*code.toolset("counting"), &json!({"x": 1}), &NoticeSink::none()).await.err().unwrap();
    assert!(error.to_string().contains("takes no settings"), "{error}");
    // The mapping form without a key (`toolsets: {counting: {}}`) gives no settings.
    open_with(&*code.toolset("counting"), &json!({}), &NoticeSink::none()).await.unwrap().close().await;
}

#[needs(python)]
#[tokio::test]
async fn toolsets_for_files_and_commands_are_made_here() {
    let folder = Folder::of(
        r#"
from llm_do.toolsets.filesystem import FileSystemToolset, ReadOnlyFileSystemToolset
from llm_do.toolsets.shell import ShellToolset
TOOLSETS = {
    "docs": FileSystemToolset(config={"base_path": "docs"}),
    "looking": ReadOnlyFileSystemToolset(config={"base_path": "."}),
    "commands": ShellToolset(config={"rules": [{"pattern": "ls", "approval_required": False}]}),
}
"#,
    );
    std::fs::create_dir(folder.path().join("docs")).unwrap();
    let code = folder.load();
    let names = |name: &str| -> Vec<String> {
        code.toolset(name).definitions().iter().map(|definition| definition.name.to_string()).collect()
    };
    assert!(names("docs").contains(&"write_file".to_owned()), "{:?}", names("docs"));
    assert!(!names("looking").contains(&"write_file".to_owned()), "{:?}", names("looking"));
    assert_eq!(names("commands"), ["shell"]);
}

#[needs(python)]
#[tokio::test]
async fn a_base_outside_the_project_is_a_problem_with_its_place() {
    for base in ["..", "/etc", "docs/../.."] {
        let folder = Folder::of(&format!(
            "from llm_do.toolsets.filesystem import FileSystemToolset\nfiles = FileSystemToolset(config={{'base_path': {base:?}}})\n"
        ));
        std::fs::create_dir(folder.path().join("docs")).unwrap();
        let problems = folder.try_load().err().expect("a problem");
        assert!(problems[0].message.contains("lies outside"), "{base}: {problems:?}");
        assert!(problems[0].location.as_ref().unwrap().file.ends_with("tools.py"));
        folder.assert_no_processes();
    }
}
