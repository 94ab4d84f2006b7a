//! What LLMProc's functions are given: the process, its descriptors, linked programs, the error log.

use llm_do_core::{AgentSpec, CallResult, EventBody};
use llm_do_models::{asks, contains, says};
use llm_do_runtime::{Project, Runtime};
use llm_do_testing::{TestProject, needs};
use llm_do_tools::FileDescriptors;
use serde_json::json;

use crate::support::{Folder, Named};

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
    fd = manager.create_fd_content(text, page_size=10, source="tool_result")
    part = manager.read_fd_content(fd, extract_to_new_fd=True, mode="char", start=1, count=6)
    return manager.read_fd_content(part, read_all=True)


@register_tool(requires_context=True, required_context_keys=["linked_programs", "linked_program_descriptions"])
async def delegate(prompt: str, runtime_context=None):
    """Has a program do it."""
    process = await runtime_context["linked_programs"]["helper"].start()
    assert await process.run(prompt) == process.get_last_message()
    return f"{runtime_context['linked_program_descriptions']['helper']}: {process.get_last_message()}"


@register_tool(requires_context=True, required_context_keys=["process", "database", "region"])
def lost(runtime_context=None):
    """Is never called."""
    open("called", "w").close()


@register_tool(requires_context=True, required_context_keys=["budget", "project_root"])
def look(runtime_context=None):
    """Tells what it sees."""
    budget = runtime_context["budget"]
    try:
        budget["tool_calls"] = 5
    except TypeError:
        pass
    level = runtime_context["process"].access_level
    return f"{level} {budget['tool_calls']} {budget['tokens']} {runtime_context['project_root'].is_dir()}"


@register_tool()
def fails_at_length() -> str:
    """Fails."""
    raise ValueError("e" * 20_000)


@register_tool()
def says_at_length_that_it_failed():
    """Fails."""
    return ToolResult.from_error("f" * 20_000)


TOOLS = [keep, keep_in_thread, delegate, lost, look, fails_at_length, says_at_length_that_it_failed]
"#;

#[needs(python)]
#[tokio::test(flavor = "multi_thread")]
async fn functions_of_llmproc_are_given_what_they_ask_for() {
    let folder = Folder::of(SOURCE);
    let code = folder.load();
    let main = ["keep", "keep_in_thread", "delegate"].into_iter().fold(
        AgentSpec::new("main", "Work.").toolset("file_descriptors").program("helper", "assistant", "Helps"),
        AgentSpec::tool,
    );
    let main = main.rule("*", llm_do_core::Approval::PreApproved);
    let project = ["keep", "keep_in_thread", "delegate"]
        .into_iter()
        .fold(TestProject::new().agent(main), |project, name| project.tool(code.tool(name)));
    let run = project
        .agent(AgentSpec::new("assistant", "Assist."))
        .toolset(FileDescriptors::read_only("file_descriptors").unwrap())
        .model_replies([
            asks("keep", json!({"text": "abc"})),
            asks("keep_in_thread", json!({"text": "threads"})),
            asks("delegate", json!({"prompt": "help me"})),
            says("helped").when(contains("help me")),
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
    assert!(results[3].contains("abcabcabc"), "{}", results[3]);
    assert_eq!(run.report().stderr_log(), ["kept fd:1.0"]);
}

#[needs(python)]
#[test]
fn a_key_that_nobody_provides_is_found_before_the_run() {
    let code = Folder::of(SOURCE).load();
    let project =
        Project::builder().agent(AgentSpec::new("main", "Work.").tool("lost")).tool(code.tool("lost"));
    let errors = Runtime::builder(project.build().unwrap()).build().err().unwrap().to_string();
    for key in ["database", "region"] {
        let message = format!("the tool `lost` needs the context value `{key}`, which nobody provides");
        assert!(errors.contains(&message), "{errors}");
    }
    assert!(!errors.contains("`process`"), "{errors}");
}

#[needs(python)]
#[tokio::test(flavor = "multi_thread")]
async fn a_built_in_key_that_a_call_does_not_have_fails_the_call_and_is_named() {
    let code = Folder::of(SOURCE).load();
    let main = AgentSpec::new("main", "Work.").tool("delegate").rule("*", llm_do_core::Approval::PreApproved);
    let run = TestProject::new()
        .agent(main)
        .tool(code.tool("delegate"))
        .model_replies([asks("delegate", json!({"prompt": "x"})), says("done")])
        .run("start")
        .await;
    let result = &run.tool_results()[0];
    let message = "Runtime context missing required keys: linked_programs, linked_program_descriptions";
    assert!(result.contains(message), "{result}");
}

#[needs(python)]
#[tokio::test(flavor = "multi_thread")]
async fn functions_see_what_is_left_and_what_their_agent_may_do_here() {
    let folder = Folder::of(SOURCE);
    let code = folder.load();
    let agent = |name: &str| AgentSpec::new(name, "Work.").rule("*", llm_do_core::Approval::PreApproved);
    let run = TestProject::new()
        .agent(agent("main").toolset("helper").access(llm_do_core::Access::Write))
        .agent(agent("helper").tool("look").access(llm_do_core::Access::Admin))
        .tool(code.tool("look"))
        .model_replies([
            asks("helper", json!({"input": "look"})),
            asks("look", json!({})),
            says("looked"),
            says("done"),
        ])
        .runtime(|runtime| {
            runtime.limits(llm_do_core::Limits { tool_calls: Some(10), ..llm_do_core::Limits::default() })
        })
        .run("start")
        .await;
    assert_eq!(&*run.answer(), "done", "{}", run.report().trace());
    let seen = run.events().into_iter().find_map(|event| match &event.body {
        EventBody::CallFinished { name, result: CallResult::Output(output), .. } if name == "look" => {
            Some(output.to_text())
        }
        _ => None,
    });
    assert_eq!(seen.as_deref(), Some("write 8 None True"));
}

#[needs(python)]
#[tokio::test(flavor = "multi_thread")]
async fn long_errors_of_functions_are_read_in_pages() {
    let folder = Folder::of(SOURCE);
    let code = folder.load();
    let names = ["fails_at_length", "says_at_length_that_it_failed"];
    let main =
        names.into_iter().fold(AgentSpec::new("main", "Work.").toolset("file_descriptors"), AgentSpec::tool);
    let project = TestProject::new().agent(main.rule("*", llm_do_core::Approval::PreApproved));
    let run = names
        .into_iter()
        .fold(project, |project, name| project.tool(code.tool(name)))
        .toolset(FileDescriptors::read_only("file_descriptors").unwrap())
        .model_replies([asks(names[0], json!({})), asks(names[1], json!({})), says("done")])
        .run("start")
        .await;
    for (result, c) in run.results().iter().zip(["e", "f"]) {
        assert!(result.is_error && result.text.contains("<fd_result"), "{:.300}", result.text);
        assert!(result.text.contains(&c.repeat(3_000)), "{:.300}", result.text);
        assert!(result.text.contains("total_chars=\"20"), "{:.300}", result.text);
    }
}
