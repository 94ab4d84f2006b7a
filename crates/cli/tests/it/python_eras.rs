//! The examples of the Python ancestors (llm-do in its several forms, and LLMProc) as whole projects.

use llm_do_testing::needs;
use serde_json::Value;

use crate::support::Sandbox;

const MANIFEST: &str =
    "version: 1\nentry: {agent: main}\nagent_files: ['*.agent']\npython_files: [tools.py]\n";

/// One toolset object that several agents share.
const SHARED: &str = r#"
from pydantic_ai.toolsets import FunctionToolset
shared = FunctionToolset()
@shared.tool_plain
def look() -> str:
    "Looks."
    return "looked"
@shared.tool_plain
def burn() -> str:
    "Burns."
    return "burned"
"#;

fn agent(name: &str, header: &str) -> String {
    format!("---\nname: {name}\nmodel: script:{name}.yaml\n{header}\n---\nWork.\n")
}

/// A project with the shared toolset, in which `main` calls agents in an order.
fn shared_toolset(order: [&str; 2], free: &str, strict: &str) -> Sandbox {
    let both = "mode: by_turn\nreplies:\n  - ask: {look: {}}\n  - ask: {burn: {}}\n  - say: done\n";
    let [first, second] = order;
    let main = format!(
        "mode: by_turn\nreplies:\n  - ask: {{{first}: {{input: go}}}}\n  - ask: {{{second}: {{input: go}}}}\n  - say: end\n"
    );
    Sandbox::new()
        .file("project.yaml", MANIFEST)
        .file("tools.py", SHARED)
        .file("main.agent", &agent("main", "toolsets: [free, strict]"))
        .file("free.agent", &agent("free", free))
        .file("strict.agent", &agent("strict", strict))
        .file("main.yaml", &main)
        .file("free.yaml", both)
        .file("strict.yaml", both)
}

#[needs(python)]
#[test]
fn agents_that_share_a_python_toolset_each_keep_their_own_approval_rules() {
    let free =
        "toolsets:\n  shared: {_approval_config: {look: {pre_approved: true}, burn: {pre_approved: true}}}";
    let strict =
        "toolsets:\n  - shared: {_approval_config: {look: {pre_approved: true}, burn: {blocked: true}}}";
    for order in [["free", "strict"], ["strict", "free"]] {
        let project = shared_toolset(order, free, strict);
        project.run(&["check", "."]).ended(0);
        let ran = project.run(&["run", ".", "go", "--output", "jsonl"]).ended(0);
        let finished = |agent: &str, tool: &str| {
            let calls: Vec<String> = ran
                .lines()
                .into_iter()
                .filter(|line| line["type"] == "call_finished" && line["name"] == tool)
                .filter(|line| line["path"].to_string().contains(agent))
                .map(|line| line.to_string())
                .collect();
            assert_eq!(calls.len(), 1, "{agent} {tool}: {calls:?} of {}", ran.stdout);
            calls.concat()
        };
        for agent in ["free", "strict"] {
            assert!(finished(agent, "look").contains("looked"), "{order:?} {agent}");
        }
        assert!(finished("free", "burn").contains("burned"), "{order:?}");
        assert!(finished("strict", "burn").contains("blocked"), "{order:?}");
    }
}

#[needs(python)]
#[test]
fn a_python_toolset_may_be_listed_as_a_mapping_without_settings() {
    for header in ["toolsets: {shared: {}}", "toolsets: {shared: }", "toolsets:\n  - shared: {}"] {
        let project = Sandbox::new()
            .file("project.yaml", MANIFEST)
            .file("tools.py", SHARED)
            .file("main.agent", &agent("main", header))
            .file("main.yaml", "replies:\n  - ask: {look: {}}\n  - say: done\n");
        project.run(&["check", "."]).ended(0);
        let ran = project.run(&["run", ".", "go", "--approve", "all"]).ended(0);
        assert_eq!(ran.stdout, "done\n", "{header}: {ran:#?}");
    }
}

#[needs(python)]
#[test]
fn settings_of_a_python_toolset_are_refused_by_check() {
    for header in [
        "toolsets: {shared: {root: docs}}",
        "toolsets:\n  - shared: {root: docs, _approval_config: {look: {}}}",
    ] {
        let project = Sandbox::new()
            .file("project.yaml", MANIFEST)
            .file("tools.py", SHARED)
            .file("main.agent", &agent("main", header))
            .file("main.yaml", "replies:\n  - say: done\n");
        for arguments in [&["check", "."][..], &["check", ".", "--static"]] {
            let ran = project.run(arguments).ended(2);
            assert!(ran.stderr.contains("takes no settings") && ran.stderr.contains("`root`"), "{ran:#?}");
        }
    }
}

/// A project with one agent whose model calls one tool of `tools.py`.
fn one_tool(tools: &str, header: &str, tool: &str, input: &str) -> Sandbox {
    let replies = format!("mode: by_turn\nreplies:\n  - ask: {{{tool}: {input}}}\n  - say: done\n");
    Sandbox::new()
        .file("project.yaml", MANIFEST)
        .file("tools.py", tools)
        .file("main.agent", &agent("main", header))
        .file("main.yaml", &replies)
}

/// What the tool answered in a run of such a project.
fn result_of(project: &Sandbox, tool: &str) -> Value {
    project.run(&["check", "."]).ended(0);
    let ran = project.run(&["run", ".", "go", "--approve", "all", "--output", "jsonl"]).ended(0);
    let lines = ran.lines();
    let finished = lines.iter().find(|line| line["type"] == "call_finished" && line["name"] == tool);
    let finished = finished.unwrap_or_else(|| panic!("`{tool}` was not called: {}", ran.stdout));
    assert!(finished["error"].is_null(), "{finished}");
    finished["output"].clone()
}

/// The example of seed 004, with and without `async`.
#[needs(python)]
#[test]
fn the_log_example_of_llmproc_prints_the_line() {
    for (define, call) in [("def", "process.call_tool"), ("async def", "await process.call_tool")] {
        let tools = format!(
            r#"
from llmproc.tools.function_tools import register_tool

@register_tool(requires_context=True, required_context_keys=["process"])
{define} step(runtime_context=None):
    process = runtime_context["process"]
    {call}("write_stderr", {{"message": "starting step"}})
    return process.get_stderr_log()
"#
        );
        let project = one_tool(&tools, "tools: [step, write_stderr]", "step", "{}");
        assert_eq!(result_of(&project, "step"), serde_json::json!(["starting step"]), "{define}");
    }
}

/// The example of seed 003, as far as it is inside a project: `Inspect` is read in a tool.
#[needs(python)]
#[test]
fn the_context_example_inspects_the_run_from_a_tool() {
    let tools = r#"
from pydantic_ai.tools import RunContext, Tool
from ctx import Context
from entries import ToolEntry, WorkerEntry

async def search(ctx: RunContext[Context], query: str) -> list[str]:
    """Search for documents."""
    return ["doc1.pdf", "doc2.pdf"]

search_tool = ToolEntry(tool=Tool(search, name="search"))

researcher = WorkerEntry(
    name="researcher",
    instructions="Research the topic using available tools.",
    model="script:researcher.yaml",
    tools=[search_tool],
)

async def inspect(ctx: RunContext[Context]) -> dict:
    result = await ctx.deps.call("researcher", {"input": "AI safety"})
    lines = [f"{t.name} ({t.kind}) depth={t.depth}" for t in ctx.deps.trace]
    return {"result": result, "lines": lines, "usage": sorted(ctx.deps.usage),
            "has": "search" in ctx.deps.registry or "researcher" in ctx.deps.registry}

inspect_tool = ToolEntry(tool=Tool(inspect))
"#;
    let replies = "mode: by_turn\nreplies:\n  - ask: {search: {query: safety}}\n  - say: two documents\n";
    let project = one_tool(tools, "tools: [inspect]\ntoolsets: [researcher]", "inspect", "{}")
        .file("researcher.yaml", replies);
    let seen = result_of(&project, "inspect");
    assert_eq!(seen["result"], "two documents");
    assert_eq!(
        seen["lines"],
        serde_json::json!([
            "main (agent) depth=1",
            "inspect (tool) depth=1",
            "researcher (agent) depth=2",
            "search (tool) depth=2"
        ])
    );
    assert_eq!(seen["usage"], serde_json::json!(["script:main.yaml", "script:researcher.yaml"]));
    assert_eq!(seen["has"], true);
}

/// The model that the document names is replaced for one run.
#[needs(python)]
#[test]
fn set_changes_the_model_of_an_agent_that_code_defines() {
    let tools = r#"
from entries import WorkerEntry
researcher = WorkerEntry(name="researcher", instructions="Research.", model="anthropic:claude-haiku")
"#;
    let project = Sandbox::new()
        .file(
            "project.yaml",
            "version: 1\nentry: {agent: main}\nagent_files: [main.agent]\npython_files: [tools.py]\n",
        )
        .file("tools.py", tools)
        .file("main.agent", "---\nname: main\ntoolsets: [researcher]\n---\nWork.\n");
    let call = ["call", ".", "researcher", "--input-json", r#"{"input": "hello"}"#, "--set"];
    let run = |change: &str| project.run(&[&call[..], &[change]].concat());
    run("agents.researcher.model=test:echo").ended(0).said("hello\n");
    run("agents.researchr.model=test:echo")
        .ended(2)
        .told("there is no agent `researchr`")
        .told("`researcher`");
    run("agents.researcher.access=read").ended(2).told("only its `model` can be set");
    project.run(&["check", ".", "--static", "--set", "agents.researcher.model=test:echo"]).ended(0);
}

/// `create_worker` of seed 002, in a tool of an agent that may create agents.
#[needs(python)]
#[test]
fn create_worker_creates_an_agent_that_can_be_called() {
    let tools = r#"
from llm_do import call_worker, create_worker, WorkerSpec, WorkerCreationDefaults
from llmproc import register_tool

@register_tool(access="admin")
def make() -> str:
    spec = WorkerSpec(name="new-worker", instructions="You are a helpful assistant.", description="A simple worker")
    create_worker(registry=None, spec=spec, defaults=WorkerCreationDefaults(default_model="test:echo"), force=False)
    return call_worker(registry=None, worker="new-worker", input_data="hello")

TOOLS = [make]
"#;
    let header = "tools: [make]\ntoolsets: [dynamic_agents]\naccess: admin";
    let project = one_tool(tools, header, "make", "{}");
    assert_eq!(result_of(&project, "make"), "hello");
}

const NEEDY: &str = r#"
from llmproc.tools.function_tools import register_tool

@register_tool(requires_context=True, required_context_keys=["process", "region"])
def located(runtime_context=None) -> str:
    """Tells the region."""
    return runtime_context["region"]
"#;

#[needs(python)]
#[test]
fn list_shows_which_context_keys_a_python_tool_needs() {
    let manifest = format!("{MANIFEST}context: {{region: north}}\n");
    let project = one_tool(NEEDY, "tools: [located]", "located", "{}").file("project.yaml", &manifest);
    let listed = project.run(&["list", "."]).ended(0).stdout;
    assert!(listed.contains("    needs `process`: llm-do\n    needs `region`: the project\n"), "{listed}");
    let listed = project.run(&["list", ".", "--output", "json"]).ended(0).json();
    let tools = listed["tools"].as_array().unwrap();
    let tool = tools.iter().find(|tool| tool["name"] == "located").unwrap();
    let needs: Vec<_> =
        tool["needs"].as_array().unwrap().iter().map(|need| (&need["name"], &need["provided"])).collect();
    assert_eq!(serde_json::json!(needs), serde_json::json!([["process", true], ["region", true]]));
    assert_eq!(result_of(&project, "located"), "north");
}

#[needs(python)]
#[test]
fn check_refuses_a_context_key_that_nobody_provides() {
    let project = one_tool(NEEDY, "tools: [located]", "located", "{}");
    for arguments in [&["check", "."][..], &["run", ".", "go"]] {
        let ran = project.run(arguments).ended(2);
        let message = "the tool `located` needs the context value `region`, which nobody provides";
        assert!(ran.stderr.contains(message), "{ran:#?}");
        assert!(ran.stderr.contains("`context` of the manifest"), "{ran:#?}");
    }
    let ran = project.run(&["check", "."]);
    assert!(ran.stderr.contains("tools.py, line 4"), "{ran:#?}");
    let value = project.run(&["check", ".", "--output", "json"]).ended(2).json();
    assert_eq!(value["ok"], false);
}

/// Results of Python tools are checked against their return annotations, as those of Rust tools are.
#[needs(python)]
#[test]
fn return_annotations_of_python_tools_are_output_schemas() {
    let tools = r#"
import dataclasses
@dataclasses.dataclass
class Point:
    x: int
    y: int = 0

def point() -> Point:
    return Point(1)

def names() -> list[str]:
    return ["a"]

def liar() -> int:
    return "many"

def silent():
    return {"any": "thing"}

TOOLS = [point, names, liar, silent]
"#;
    let project = one_tool(tools, "tools: [point, names, liar, silent]", "point", "{}");
    let listed = project.run(&["list", "."]).ended(0).stdout;
    for line in ["    output x: integer\n    output y: integer, optional\n", "    output: array of string\n"]
    {
        assert!(listed.contains(line), "{listed}");
    }
    assert_eq!(listed.matches("output").count(), 4, "{listed}");
    assert_eq!(result_of(&project, "point"), serde_json::json!({"x": 1, "y": 0}));
    for (tool, answer) in [("names", "[\"a\"]\n"), ("silent", "{\"any\":\"thing\"}\n")] {
        let ran = project.run(&["call", ".", tool, "--approve", "all"]).ended(0);
        assert_eq!(ran.stdout.replace(char::is_whitespace, ""), answer.replace(char::is_whitespace, ""));
    }
    let ran = project.run(&["call", ".", "liar", "--approve", "all"]).ended(6);
    assert!(
        ran.stderr.contains("`liar` answered with a value that does not fit its own output schema"),
        "{ran:#?}"
    );
}
