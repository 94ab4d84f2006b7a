//! `process` of LLMProc: calls of other tools, and the error log.

use llm_do_core::{AgentSpec, Approval};
use llm_do_models::{asks, instructed, result_of, says};
use llm_do_testing::{TestProject, deny, needs};
use llm_do_tools::Stderr;
use serde_json::json;

use crate::support::{Folder, Named};

/// The example of LLMProc's documentation, in a synchronous and an asynchronous tool.
const SOURCE: &str = r#"
from llmproc import register_tool
from llmproc.common.results import ToolResult

def shown(result):
    assert isinstance(result, ToolResult), type(result)
    return {"content": result.content, "is_error": result.is_error}


@register_tool(requires_context=True, required_context_keys=["process", "stderr"])
def log_in_thread(runtime_context=None):
    process, stderr = runtime_context["process"], runtime_context["stderr"]
    before = len(stderr)
    result = process.call_tool("write_stderr", {"message": "starting step"})
    stderr.append("appended")
    print("printed")
    return {"result": shown(result), "log": process.get_stderr_log(), "view": list(stderr),
            "added": len(stderr) - before, "last": stderr[-1], "has": "starting step" in stderr}


@register_tool(requires_context=True, required_context_keys=["process", "stderr"])
async def log_in_loop(runtime_context=None):
    process, stderr = runtime_context["process"], runtime_context["stderr"]
    before = len(stderr)
    result = await process.call_tool("write_stderr", {"message": "starting step"})
    stderr.append("appended")
    print("printed")
    return {"result": shown(result), "log": process.get_stderr_log(), "view": list(stderr),
            "added": len(stderr) - before, "last": stderr[-1], "has": "starting step" in stderr}


@register_tool()
def fail():
    raise ValueError("no luck")


@register_tool(requires_context=True)
def errors_in_thread(runtime_context=None):
    call = runtime_context["process"].call_tool
    return [shown(call(name, {})) for name in ("fail", "forbidden", "missing")]


@register_tool(requires_context=True)
async def errors_in_loop(runtime_context=None):
    call = runtime_context["process"].call_tool
    return [shown(await call(name, {})) for name in ("fail", "forbidden", "missing")]


@register_tool()
def forbidden():
    open("ran", "w").close()


@register_tool(requires_context=True)
async def after_child(runtime_context=None):
    process = runtime_context["process"]
    await runtime_context["linked_programs"]["helper"].run("help")
    return process.get_stderr_log()
"#;

/// What one tool answers when `main` calls it.
async fn answer_of(tool: &str) -> serde_json::Value {
    let folder = Folder::of(SOURCE);
    let code = folder.load();
    let names: Vec<String> = code.tools.iter().map(|tool| tool.value.definition().name.to_string()).collect();
    let main = names.iter().fold(AgentSpec::new("main", "Work."), |agent, name| agent.tool(name.as_str()));
    let main = main
        .toolset("stderr")
        .program("helper", "helper", "Helps")
        .rule("forbidden", Approval::Blocked)
        .rule("*", Approval::PreApproved);
    let project = code
        .tools
        .iter()
        .fold(TestProject::new().agent(main), |project, tool| project.tool(tool.value.clone()));
    let run = project
        .agent(AgentSpec::new("helper", "Help.").toolset("stderr").rule("*", Approval::PreApproved))
        .toolset(Stderr::new("stderr").unwrap())
        .model_replies([
            asks("write_stderr", json!({"message": "of the agent"})),
            asks(tool, json!({})),
            says("helped").when(instructed("Help.").and(result_of("write_stderr"))),
            asks("write_stderr", json!({"message": "of the child"})).when(instructed("Help.")),
            says("done"),
        ])
        .run("start")
        .await;
    assert_eq!(&*run.answer(), "done", "{}", run.report().trace());
    assert!(!folder.path().join("ran").exists());
    let results = run.tool_results();
    serde_json::from_str(&results[1]).unwrap_or_else(|error| panic!("{error}: {}", results[1]))
}

#[needs(python)]
#[tokio::test(flavor = "multi_thread")]
async fn a_line_that_a_tool_writes_is_in_the_log_of_its_process() {
    for tool in ["log_in_thread", "log_in_loop"] {
        let answer = answer_of(tool).await;
        let log = json!(["of the agent", "starting step", "appended", "printed"]);
        assert_eq!(
            answer,
            json!({
                "result": {"content": "written", "is_error": false},
                "log": log, "view": log, "added": 3, "last": "printed", "has": true,
            }),
            "{tool}"
        );
    }
}

#[needs(python)]
#[tokio::test(flavor = "multi_thread")]
async fn the_log_of_a_process_has_the_lines_of_the_agents_below_it() {
    assert_eq!(answer_of("after_child").await, json!(["of the agent", "of the child"]));
}

#[needs(python)]
#[tokio::test(flavor = "multi_thread")]
async fn a_tool_that_fails_or_may_not_run_gives_an_error_result() {
    for tool in ["errors_in_thread", "errors_in_loop"] {
        let answer = answer_of(tool).await;
        let results = answer.as_array().unwrap();
        assert!(results.iter().all(|result| result["is_error"] == true), "{tool}: {answer}");
        for (result, part) in results.iter().zip(["no luck", "forbidden", "missing"]) {
            assert!(result["content"].as_str().unwrap().contains(part), "{tool}: {answer}");
        }
    }
}

#[needs(python)]
#[tokio::test(flavor = "multi_thread")]
async fn a_denied_tool_gives_an_error_result() {
    let source = SOURCE.replace(r#"("fail", "forbidden", "missing")"#, r#"("forbidden",)"#);
    let folder = Folder::of(&source);
    let code = folder.load();
    for tool in ["errors_in_thread", "errors_in_loop"] {
        let main = AgentSpec::new("main", "Work.").tool(tool).tool("forbidden");
        let run = TestProject::new()
            .agent(main.rule(tool, Approval::PreApproved))
            .tool(code.tool(tool))
            .tool(code.tool("forbidden"))
            .model_replies([asks(tool, json!({})), says("done")])
            .approvals([deny("not today")])
            .run("start")
            .await;
        assert_eq!(&*run.answer(), "done", "{}", run.report().trace());
        let result = &run.tool_results()[0];
        assert!(result.contains(r#""is_error":true"#) && result.contains("not today"), "{result}");
        assert!(!folder.path().join("ran").exists());
    }
}
