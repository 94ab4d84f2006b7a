//! What code reads of the whole run: usage, trace and registry, at the moment it reads them.

use llm_do_core::{AgentSpec, Approval};
use llm_do_models::{asks, instructed, says};
use llm_do_testing::{TestProject, needs};
use serde_json::{Value, json};

use crate::support::Folder;

const SOURCE: &str = r#"
from pydantic_ai.tools import RunContext
from llm_do.runtime.deps import CallContext

def entry(t):
    return [t.name, t.kind, t.depth, t.input_data, t.output_data, t.error]

def state(deps):
    usage = deps.usage
    return {
        "trace": [entry(t) for t in deps.trace],
        "requests": {name: used.requests for name, used in usage.items()},
        "totals": all(u.total_tokens == u.input_tokens + u.output_tokens for u in usage.values()),
        "registry": sorted(deps.registry),
        "has": ["helper" in deps.registry, "nobody" in deps.registry, len(deps.registry) > 0],
        "helper": [deps.registry["helper"].name, deps.registry.get("helper").kind,
                   deps.registry["helper"].description],
        "tool": [deps.registry["fail"].kind, deps.registry["fail"].description],
        "nobody": deps.registry.get("nobody"),
        "model": deps.model,
        "depth": [deps.frame.depth, deps.depth],
    }

def fail():
    "Fails."
    raise ValueError("no luck")

async def in_loop(ctx: RunContext[CallContext], query: str):
    before = len(deps_trace(ctx))
    await ctx.deps.call_agent("helper", "help")
    try:
        await ctx.deps.call("fail")
    except Exception:
        pass
    return {"before": before, **state(ctx.deps)}

def in_thread(ctx: RunContext[CallContext], query: str):
    before = len(deps_trace(ctx))
    ctx.deps.call_sync("helper", "help")
    try:
        ctx.deps.call_sync("fail")
    except Exception:
        pass
    return {"before": before, **state(ctx.deps)}

def deps_trace(ctx):
    return ctx.deps.trace

TOOLS = [fail, in_loop, in_thread]
"#;

#[needs(python)]
#[tokio::test(flavor = "multi_thread")]
async fn code_reads_the_usage_trace_and_registry_of_the_run_as_they_are() {
    let folder = Folder::of(SOURCE);
    let code = folder.load();
    for tool in ["in_loop", "in_thread"] {
        let main = AgentSpec::new("main", "Work.").tool(tool).tool("fail").toolset("helper");
        let project = code
            .tools
            .iter()
            .fold(TestProject::new().agent(main.rule("*", Approval::PreApproved)), |project, tool| {
                project.tool(tool.value.clone())
            });
        let run = project
            .agent(AgentSpec::new("helper", "Help.").description("Helps."))
            .model_replies([
                asks(tool, json!({"query": "x"})),
                says("helped").when(instructed("Help.")),
                says("done"),
            ])
            .run("start")
            .await;
        assert_eq!(&*run.answer(), "done", "{}", run.report().trace());
        let seen: Value = serde_json::from_str(&run.tool_results()[0]).unwrap();
        assert_eq!(seen["before"], 2, "{seen}");
        let trace = seen["trace"].as_array().unwrap();
        assert_eq!(trace[0], json!(["main", "agent", 1, {"input": "start"}, null, null]), "{seen:#}");
        assert_eq!(trace[1], json!([tool, "tool", 1, {"query": "x"}, null, null]), "{seen:#}");
        assert_eq!(trace[2], json!(["helper", "agent", 2, {"input": "help"}, "helped", null]), "{seen:#}");
        assert_eq!(
            json!([trace[3][0], trace[3][1], trace[3][2], trace[3][4]]),
            json!(["fail", "tool", 1, null])
        );
        assert!(trace[3][5].as_str().unwrap().contains("no luck"), "{seen:#}");
        assert_eq!(trace.len(), 4);
        // The request of `main` and that of `helper`, which is another call.
        let requests: u64 =
            seen["requests"].as_object().unwrap().values().map(|count| count.as_u64().unwrap()).sum();
        assert_eq!((requests, &seen["totals"]), (2, &json!(true)), "{seen:#}");
        assert_eq!(seen["has"], json!([true, false, true]));
        assert_eq!(seen["helper"], json!(["helper", "agent", "Helps."]));
        assert_eq!(seen["tool"], json!(["tool", "Fails."]));
        assert_eq!(seen["nobody"], Value::Null);
        assert!(seen["registry"].as_array().unwrap().contains(&json!(tool)), "{seen:#}");
        assert_eq!(seen["depth"], json!([1, 1]));
        assert!(seen["model"].is_string(), "{seen:#}");
    }
}
