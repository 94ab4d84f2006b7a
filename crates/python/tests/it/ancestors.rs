//! Names of the Python ancestors of llm-do in project files: they work, or say what to write instead.

use llm_do_core::{AgentSpec, Answer, Approval};
use llm_do_models::{ScriptedReply, asks, instructed, says};
use llm_do_project::Code;
use llm_do_testing::{TestProject, TestRun, deny, needs, once};
use serde_json::{Value, json};

use crate::support::{Folder, Named};

/// A project with everything of some code, and an agent `main` that lists its tools and toolsets.
fn project(code: &Code, main: AgentSpec) -> TestProject {
    let main = code.tools.iter().fold(main, |main, tool| main.tool(tool.value.definition().name.as_str()));
    let main = code.toolsets.iter().fold(main, |main, toolset| main.toolset(toolset.value.name().as_str()));
    let project = TestProject::new().agent(main);
    let project = code.tools.iter().fold(project, |project, tool| project.tool(tool.value.clone()));
    let toolsets = code.toolsets.iter();
    let project = toolsets.fold(project, |project, toolset| project.shared_toolset(toolset.value.clone()));
    code.agents.iter().fold(project, |project, agent| project.agent(agent.value.clone()))
}

fn free(name: &str) -> AgentSpec {
    AgentSpec::new(name, "Work.").rule("*", Approval::PreApproved)
}

async fn answer_of(source: &str, tool: &str, replies: impl IntoIterator<Item = ScriptedReply>) -> String {
    let folder = Folder::of(source);
    let code = folder.load();
    let first = asks(tool, json!({}));
    let run = project(&code, free("main"))
        .agent(AgentSpec::new("helper", "Help."))
        .model_replies(std::iter::once(first).chain(replies))
        .run("start")
        .await;
    assert_eq!(&*run.answer(), "done", "{}", run.report().trace());
    run.tool_results()[0].clone()
}

#[needs(python)]
#[tokio::test(flavor = "multi_thread")]
async fn call_worker_calls_an_agent_in_the_name_of_the_tool() {
    let source = r#"
from llm_do import call_worker, CallError
from llm_do.runtime import call_worker_async
def in_thread():
    return call_worker(registry=None, worker="helper", input_data="hi")
async def in_loop():
    return await call_worker_async(registry=None, worker="helper", input_data="hi", caller_context=None)
def unknown():
    try:
        return call_worker(worker="nobody", input_data="hi")
    except CallError as problem:
        return str(problem)
TOOLS = [in_thread, in_loop, unknown]
"#;
    for tool in ["in_thread", "in_loop"] {
        let replies = [says("helped").when(instructed("Help.")), says("done")];
        assert_eq!(answer_of(source, tool, replies).await, "helped");
    }
    assert!(answer_of(source, "unknown", [says("done")]).await.contains("no agent `nobody`"));
}

#[needs(python)]
#[tokio::test(flavor = "multi_thread")]
async fn an_approval_controller_puts_what_must_ask_to_the_gate() {
    let source = r#"
from llm_do import ApprovalController, ApprovalDecision, approve_all_callback, strict_mode_callback
RULES = {"sandbox.read": {"approval_required": False}, "sandbox.burn": {"allowed": False},
         "sandbox.write": {"approval_required": True, "description": "writes a file"}}
def use(name: str, callback: str):
    callbacks = {"all": approve_all_callback, "strict": strict_mode_callback}
    controller = ApprovalController(tool_rules=RULES, approval_callback=callbacks.get(callback))
    try:
        return controller.maybe_run(tool_name=name, payload={"path": "a"}, func=lambda: "ran")
    except PermissionError as problem:
        return f"denied: {problem}"
TOOLS = [use]
assert ApprovalDecision(approved=True, approve_for_session=True).remember == "session"
"#;
    let folder = Folder::of(source);
    let code = folder.load();
    let used = async |name: &str, callback: &str, answers: Vec<Answer>| -> TestRun {
        let input = json!({"name": name, "callback": callback});
        project(&code, AgentSpec::new("main", "Work.").rule("use", Approval::PreApproved))
            .model_replies([asks("use", input), says("done")])
            .approvals(answers)
            .run("start")
            .await
    };
    assert_eq!(used("sandbox.read", "", vec![]).await.tool_results()[0], "ran");
    assert!(used("sandbox.burn", "all", vec![]).await.tool_results()[0].contains("disallowed"));
    assert!(used("sandbox.write", "strict", vec![]).await.tool_results()[0].contains("Strict mode"));
    assert_eq!(used("sandbox.write", "all", vec![once()]).await.tool_results()[0], "ran");
    let denied = used("sandbox.write", "all", vec![deny("not today")]).await;
    assert!(denied.tool_results()[0].contains("not today"), "{:?}", denied.tool_results());
}

#[needs(python)]
#[tokio::test(flavor = "multi_thread")]
async fn a_frame_has_its_depth_and_the_toolsets_of_the_agent() {
    let source = r#"
from pydantic_ai.tools import RunContext
from pydantic_ai.toolsets import FunctionToolset
from llm_do.runtime import AgentSpec, ToolsetSpec
from llm_do.runtime.deps import CallContext, ToolsProxy

class Notes(FunctionToolset):
    pass

def make_notes():
    made = Notes()
    made.tool_plain(lambda: "noted", name="note")
    return made

notes = ToolsetSpec(factory=make_notes)
writer = AgentSpec(name="writer", instructions="Write.", toolset_specs=[notes])
assert writer.toolset_specs == [notes]

def look(ctx: RunContext[CallContext]):
    frame = ctx.deps.frame
    (active,) = frame.active_toolsets
    assert isinstance(ctx.deps.tools, ToolsProxy)
    return [frame.depth, frame.config.depth, active, active.name, type(active.toolset).__name__]
TOOLS = [look]
"#;
    let seen = answer_of(source, "look", [says("done")]).await;
    assert_eq!(seen, r#"[1,1,"notes","notes","Notes"]"#);
    let code = Folder::of(source).load();
    let names: Vec<&str> = code.agents[0].value.toolsets.iter().map(|choice| choice.name.as_str()).collect();
    assert_eq!((code.agents[0].value.name.as_str(), names), ("writer", vec!["notes"]));
}

#[needs(python)]
#[tokio::test(flavor = "multi_thread")]
async fn setup_runtime_context_returns_the_context_of_the_tool() {
    let source = r#"
from llmproc import register_tool
from llmproc.program_exec import setup_runtime_context
@register_tool(requires_context=True)
def look(runtime_context=None):
    context = setup_runtime_context(runtime_context["process"])
    return [context["process"].model_name == runtime_context["process"].model_name, "stderr" in context]
"#;
    assert_eq!(answer_of(source, "look", [says("done")]).await, "[true,true]");
}

#[needs(python)]
#[test]
fn entries_at_the_top_level_declare_tools_and_agents() {
    let code = Folder::of(ENTRIES).load();
    let tools: Vec<&str> = code.tools.iter().map(|tool| tool.value.definition().name.as_str()).collect();
    assert_eq!(tools, ["search", "burn"]);
    assert_eq!(code.tool("search").definition().description, "Search for documents.");
    let agent = |name: &str| {
        let found = code.agents.iter().find(|agent| agent.value.name == name);
        found.unwrap_or_else(|| panic!("no agent `{name}`")).value.clone()
    };
    let researcher = agent("researcher");
    assert_eq!(researcher.model.as_ref().map(|model| model.name().as_str()), Some("anthropic:claude-haiku"));
    assert_eq!(researcher.tools, [llm_do_core::Name::from("search")]);
    let editor = agent("editor");
    assert_eq!(editor.toolsets[0].name, "researcher");
}

const ENTRIES: &str = r#"
from __future__ import annotations
from pydantic_ai.tools import RunContext, Tool
from ctx import Context
from entries import ToolEntry, WorkerEntry

async def search(ctx: RunContext[Context], query: str) -> list[str]:
    """Search for documents."""
    return ["doc1.pdf", "doc2.pdf"]

def burn() -> None:
    """Burns."""

search_tool = ToolEntry(tool=Tool(search, name="search"))
burn_tool = ToolEntry(tool=Tool(burn), requires_approval=True)
researcher = WorkerEntry(
    name="researcher",
    instructions="Research the topic using available tools.",
    model="anthropic:claude-haiku",
    tools=[search_tool],
)
editor = WorkerEntry(name="editor", instructions="Edit.", tools=[researcher, burn_tool])
"#;

#[needs(python)]
#[test]
fn modules_of_the_project_take_precedence_over_ours() {
    let folder = Folder::of(
        "import ctx, entries\ndef tool() -> str:\n    return ctx.MINE\nTOOLS = [tool]\nassert entries.MINE\n",
    );
    folder.file("ctx.py", "MINE = 'mine'\n").file("entries.py", "MINE = 'mine'\n");
    folder.load();
    folder.try_load_files(&["ctx.py", "entries.py", "tools.py"]).unwrap();
}

#[needs(python)]
#[test]
fn a_name_that_does_not_exist_here_says_what_replaces_it() {
    for (source, parts) in [
        ("from llm_do import run_worker\n", &["cannot import name 'run_worker'", "llm-do run"][..]),
        ("from llm_do import AgentSpce\n", &["did you mean `AgentSpec`?"]),
        ("from llm_do.runtime import run_worker_async\n", &["llm-do run"]),
        ("from llmproc import LLMProgram\n", &["agent file"]),
        ("from llmproc.common.results import ToolResutl\n", &["did you mean `ToolResult`?"]),
        ("import llm_do\nllm_do.run_worker()\n", &["has no attribute 'run_worker'", "llm-do run"]),
        ("from ctx import Contxt\n", &["did you mean `Context`?"]),
        (
            "from ctx import Context\nContext.from_worker(None, model='x')\n",
            &["llm-do run PATH", "ctx.deps.call"],
        ),
        ("from ctx import Context\nContext(registry={}, model='x')\n", &["llm-do run PATH"]),
        ("from llm_do.runtime.shared import Runtime\nRuntime()\n", &["llm-do run PATH"]),
        ("from llm_do import call_worker\ncall_worker(worker='x')\n", &["inside a tool", "AgentSpec"]),
        (
            "from llmproc.program_exec import setup_runtime_context\nsetup_runtime_context(None)\n",
            &["requires_context=True"],
        ),
        ("from llm_do.runtime.toolsets import cleanup_toolsets\n", &["`cleanup()`"]),
    ] {
        let problems = Folder::of(source).try_load().err().unwrap();
        let message = &problems[0].message;
        assert!(parts.iter().all(|part| message.contains(part)), "{source}: {message}");
    }
    let problems = Folder::of("import llm_do.execution\n").try_load().err().unwrap();
    let hint = problems[0].hint.as_deref().unwrap();
    assert!(hint.contains("has no module `llm_do.execution`; now part of the runtime"), "{hint}");
}

#[needs(python)]
#[test]
fn a_missing_name_is_an_attribute_error_where_no_import_asks() {
    Folder::of("import llm_do, llmproc.common\nassert not hasattr(llm_do, 'run_worker')\nassert getattr(llmproc.common, 'x', 1) == 1\n").load();
}

#[needs(python)]
#[tokio::test(flavor = "multi_thread")]
async fn a_missing_attribute_of_a_context_says_what_replaces_it() {
    let source = r#"
from pydantic_ai.tools import RunContext
from llm_do import WorkerContext
from llmproc import register_tool
def of_deps(ctx: RunContext[WorkerContext]):
    return [message_of(lambda: ctx.deps.sandbox_toolset), message_of(lambda: ctx.deps.call_agnt),
            message_of(lambda: ctx.deps.frame.prompts)]
def message_of(action):
    try:
        action()
    except AttributeError as problem:
        return str(problem)
@register_tool(requires_context=True)
def of_process(runtime_context=None):
    process = runtime_context["process"]
    return [message_of(lambda: process.tool_manager), message_of(lambda: process.call_tol)]
TOOLS = [of_deps, of_process]
"#;
    let seen: Value = serde_json::from_str(&answer_of(source, "of_deps", [says("done")]).await).unwrap();
    assert!(seen[0].as_str().unwrap().contains("ctx.deps.tools.read_file"), "{seen}");
    assert!(seen[1].as_str().unwrap().contains("did you mean `call_agent`?"), "{seen}");
    assert!(seen[2].as_str().unwrap().contains("did you mean `prompt`?"), "{seen}");
    let seen: Value = serde_json::from_str(&answer_of(source, "of_process", [says("done")]).await).unwrap();
    assert!(seen[0].as_str().unwrap().contains("process.call_tool"), "{seen}");
    assert!(seen[1].as_str().unwrap().contains("did you mean `call_tool`?"), "{seen}");
}
