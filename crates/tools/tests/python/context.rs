//! What LLMProc's functions are given: the process, its descriptors, linked programs, the error log.

use llm_do_core::AgentSpec;
use llm_do_models::{asks, contains, says};
use llm_do_testing::TestProject;
use llm_do_tools::FileDescriptors;
use serde_json::json;

use crate::support::{Folder, Named, needs_python};

const SOURCE: &str = r#"
from llmproc import register_tool
from llmproc.common.results import ToolResult


@register_tool(requires_context=True, required_context_keys=["process", "fd_manager", "stderr"])
async def keep(text: str, runtime_context=None):
    """Keeps a long text."""
    manager = runtime_context["fd_manager"]
    fd = await manager.create(text * 3)
    runtime_context["stderr"].append(f"kept {fd}")
    return ToolResult.from_success(f"{fd}: {await manager.read(fd, mode='char', start=2, count=3)}")


@register_tool(requires_context=True, required_context_keys=["fd_manager"])
def keep_in_thread(text: str, runtime_context=None):
    """Keeps a text from a thread."""
    manager = runtime_context["fd_manager"]
    return manager.read_fd_content(manager.create_fd_content(text), read_all=True)


@register_tool(requires_context=True, required_context_keys=["linked_programs", "linked_program_descriptions"])
async def delegate(prompt: str, runtime_context=None):
    """Has a program do it."""
    answer = await runtime_context["linked_programs"]["helper"].run(prompt)
    return f"{runtime_context['linked_program_descriptions']['helper']}: {answer}"


@register_tool(requires_context=True, required_context_keys=["process", "database", "region"])
def lost(runtime_context=None):
    """Is never called."""
    open("called", "w").close()


TOOLS = [keep, keep_in_thread, delegate, lost]
"#;

#[tokio::test(flavor = "multi_thread")]
async fn functions_of_llmproc_are_given_what_they_ask_for() {
    needs_python!();
    let folder = Folder::of(SOURCE);
    let code = folder.load();
    let main = ["keep", "keep_in_thread", "delegate", "lost"].into_iter().fold(
        AgentSpec::new("main", "Work.").toolset("file_descriptors").program("helper", "assistant", "Helps"),
        AgentSpec::tool,
    );
    let main = main.rule("*", llm_do_core::Approval::PreApproved);
    let project = ["keep", "keep_in_thread", "delegate", "lost"]
        .into_iter()
        .fold(TestProject::new().agent(main), |project, name| project.tool(code.tool(name)));
    let run = project
        .agent(AgentSpec::new("assistant", "Assist."))
        .toolset(FileDescriptors::read_only("file_descriptors".into()).unwrap())
        .model_replies([
            asks("keep", json!({"text": "abc"})),
            asks("keep_in_thread", json!({"text": "thread"})),
            asks("delegate", json!({"prompt": "help me"})),
            says("helped").when(contains("help me")),
            asks("lost", json!({})),
            asks("read_fd", json!({"fd": "fd:1.0"})),
            says("done"),
        ])
        .run("start")
        .await;
    assert_eq!(&*run.answer(), "done", "{}", run.report().trace());
    let results = run.tool_results();
    assert_eq!(results[0], "fd:1.0: bca");
    assert_eq!(results[1], "thread");
    assert_eq!(results[2], "Helps: helped");
    assert!(results[3].contains("Runtime context missing required keys: database, region"), "{}", results[3]);
    assert!(results[4].contains("abcabcabc"), "{}", results[4]);
    assert_eq!(run.report().stderr_log(), ["kept fd:1.0"]);
    assert!(!folder.path().join("called").exists());
}
