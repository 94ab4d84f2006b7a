//! The gate before Python tools: nothing runs that may not, however it is declared.

use std::sync::Arc;

use llm_do_core::{AgentSpec, Approval, ApprovalMode, FailureKind, Tool};
use llm_do_models::{asks, says};
use llm_do_project::Code;
use llm_do_runtime::{EntrySpec, Project, PromptInput, Runtime};
use llm_do_testing::{TestCall, TestRun, needs};
use serde_json::json;

use crate::support::{Folder, Named};

/// A project with everything of some code, and agents that list it.
fn runtime(
    code: &Code,
    agents: impl IntoIterator<Item = AgentSpec>,
    replies: Vec<llm_do_models::ScriptedReply>,
) -> Runtime {
    let mut project = Project::builder().model(llm_do_models::Script::new(replies));
    for tool in &code.tools {
        project = project.tool(tool.value.clone());
    }
    for toolset in &code.toolsets {
        project = project.shared_toolset(toolset.value.clone());
    }
    for agent in agents {
        project = project.agent(agent);
    }
    let project = project.build().unwrap_or_else(|errors| panic!("{errors}"));
    Runtime::builder(project).build().unwrap_or_else(|errors| panic!("{errors}"))
}

const MARKS: &str = r#"
import pathlib
def mark(): pathlib.Path(__file__).with_name("ran").write_text("x")
"#;

#[needs(python)]
#[tokio::test]
async fn under_reject_all_no_tool_runs_however_it_is_declared() {
    let function = "def act():\n    'Acts.'\n    mark()\n";
    let toolset =
        "from pydantic_ai.tools import RunContext\nfrom pydantic_ai.toolsets import FunctionToolset\n";
    for (way, declared) in [
        ("a list", format!("{function}TOOLS = [act]\n")),
        ("a mapping", format!("{function}TOOLS = {{'act': act}}\n")),
        ("__all__", format!("{function}__all__ = ['act']\n")),
        ("register_tool", format!("from llmproc import register_tool\n@register_tool()\n{function}")),
        (
            "an instance",
            format!(
                "{toolset}kit = FunctionToolset()\n@kit.tool\n{}",
                function.replace("act()", "act(ctx: RunContext)")
            ),
        ),
        (
            "a factory",
            format!(
                "{toolset}{function}def kit(ctx):\n    t = FunctionToolset()\n    t.add_function(act, takes_ctx=False)\n    return t\nTOOLSETS = {{'kit': kit}}\n"
            ),
        ),
    ] {
        let folder = Folder::of(&format!("{MARKS}{declared}"));
        let code = folder.load();
        let mut agent = AgentSpec::new("main", "Act.");
        agent = if code.tools.is_empty() { agent.toolset("kit") } else { agent.tool("act") };
        let runtime = runtime(&code, [agent], vec![asks("act", json!({})), says("Left it.")]);
        let run = TestRun::of(runtime.run("main", "go").approval_mode(ApprovalMode::RejectAll).await);
        assert_eq!(run.failure_of("act").kind, FailureKind::Denied, "{way}");
        assert!(!folder.path().join("ran").exists(), "{way}");
        runtime.shutdown().await;

        let runtime = self::runtime(
            &code,
            [if code.tools.is_empty() {
                AgentSpec::new("main", "").toolset("kit")
            } else {
                AgentSpec::new("main", "").tool("act")
            }],
            vec![asks("act", json!({})), says("Done.")],
        );
        let run = TestRun::of(runtime.run("main", "go").approval_mode(ApprovalMode::ApproveAll).await);
        assert_eq!(run.answer().as_ref(), "Done.", "{way}");
        assert!(folder.path().join("ran").exists(), "{way}: the test can fail");
    }
}

#[needs(python)]
#[tokio::test]
async fn two_agents_with_opposite_rules_share_an_instance_and_no_rule() {
    let source = r#"
from pydantic_ai.tools import RunContext
from pydantic_ai.toolsets import FunctionToolset
kit = FunctionToolset()
@kit.tool
def act(ctx: RunContext) -> str: return "acted"
"#;
    for order in [["free", "closed"], ["closed", "free"]] {
        let folder = Folder::of(source);
        let code = folder.load();
        let agents = [
            AgentSpec::new("free", "").toolset("kit").rule("act", Approval::PreApproved),
            AgentSpec::new("closed", "").toolset("kit").rule("act", Approval::Blocked),
        ];
        let replies = (0..2).flat_map(|_| [asks("act", json!({})), says("Done.")]).collect();
        let runtime = runtime(&code, agents, replies);
        for agent in order {
            let run = TestRun::of(runtime.run(agent, "go").await);
            match agent {
                "free" => assert_eq!(run.tool_results(), ["acted"], "{order:?}"),
                _ => assert_eq!(run.failure_of("act").kind, FailureKind::Blocked, "{order:?}"),
            }
        }
        runtime.shutdown().await;
    }
}

#[needs(python)]
#[tokio::test]
async fn what_code_calls_passes_the_gate_of_its_agent() {
    let folder = Folder::of(&format!(
        r#"{MARKS}
from pydantic_ai.tools import RunContext
def act():
    mark()
async def through(ctx: RunContext) -> str:
    try: return await ctx.deps.call("act", {{}})
    except PermissionError as error: return f"refused: {{error.kind}}"
TOOLS = [act, through]
"#
    ));
    let code = folder.load();
    let agent = AgentSpec::new("main", "").tool("through").tool("act").rule("through", Approval::PreApproved);
    let runtime = runtime(&code, [agent], vec![asks("through", json!({})), says("Done.")]);
    let run = TestRun::of(runtime.run("main", "go").await);
    assert_eq!(run.tool_results(), ["refused: unasked"]);
    assert!(!folder.path().join("ran").exists());
}

#[needs(python)]
#[tokio::test]
async fn a_toolset_judges_calls_of_its_tools() {
    let folder = Folder::of(
        r#"
from pydantic_ai.toolsets import FunctionToolset
from llm_do import ApprovalResult
class Judging(FunctionToolset):
    def needs_approval(self, name, args, ctx, config=None):
        if args["n"] > 10: return ApprovalResult.blocked("too many")
        if args["n"] > 5: return ApprovalResult.needs_approval()
        if args["n"] < 0: raise ValueError("negative")
        return ApprovalResult.pre_approved()
    def get_approval_description(self, name, args, ctx):
        return f"count to {args['n']}"
kit = Judging()
@kit.tool_plain
def count(n: int) -> int: return n
"#,
    );
    let code = folder.load();
    let tool = opened(&code, "kit").await;
    let assess = async |n: i64| TestCall::new().assess(tool.clone(), json!({"n": n})).await;
    assert_eq!(assess(1).await.approval, Approval::PreApproved);
    let ask = assess(6).await;
    assert_eq!((ask.approval, ask.description.as_str()), (Approval::Ask, "count to 6"));
    let blocked = assess(11).await;
    assert_eq!(blocked.approval, Approval::Blocked);
    assert!(blocked.reason.unwrap().contains("too many"));
    let broken = assess(-1).await;
    assert_eq!(broken.approval, Approval::Blocked);
    assert!(broken.reason.unwrap().contains("negative"));
}

/// The first tool of a toolset that is open.
async fn opened(code: &Code, name: &str) -> Arc<dyn Tool> {
    crate::toolsets::open(&*code.toolset(name)).await.unwrap().tools()[0].clone()
}

#[needs(python)]
#[tokio::test]
async fn an_entry_of_code_runs_tools_of_python_by_name() {
    let folder = Folder::of("def add(a: int, b: int) -> int: return a + b\nTOOLS = [add]\n");
    let code = folder.load();
    let entry = EntrySpec::new("go", "", |_: PromptInput, call| async move {
        call.call("add", json!({"a": 1, "b": 2})).await.map_err(llm_do_core::ToolError::from_failure)
    })
    .unwrap();
    let project = Project::builder().tool(code.tool("add")).entry(entry).build().unwrap();
    let runtime = Runtime::builder(project).build().unwrap();
    let run = TestRun::of(runtime.run("go", "x").approval_mode(ApprovalMode::ApproveAll).await);
    assert_eq!(run.answer().as_ref(), "3");
}

#[needs(python)]
#[tokio::test]
async fn code_sees_what_its_agent_was_given() {
    let folder = Folder::of(
        "from pydantic_ai.tools import RunContext\ndef given(ctx: RunContext) -> str: return f'{ctx.deps.agent}: {ctx.deps.prompt}'\nTOOLS = [given]\n",
    );
    let code = folder.load();
    let agent = AgentSpec::new("main", "").tool("given").rule("given", Approval::PreApproved);
    let runtime = runtime(&code, [agent], vec![asks("given", json!({})), says("Done.")]);
    let run = TestRun::of(runtime.run("main", "tell me").await);
    assert_eq!(run.tool_results(), ["main: tell me"]);
}
