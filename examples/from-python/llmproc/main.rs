//! The tools of the document: what a tool takes from the running call are parameters that no model sees.

#![allow(unused_variables, reason = "the tools of the document do not use all of their parameters")]

// begin: example
use llm_do::{call::LinkedPrograms, prelude::*};
use serde_json::json;
// end: example

use llm_do::testing::Script;

// begin: example
/// Names the model of the process.
#[tool]
fn example_tool(call: CallContext, param1: String, param2: i64) -> String {
    format!("Process model: {}", call.model().map_or("none", |model| model.as_str()))
}

/// Runs a linked program.
#[tool]
async fn spawn_tool(
    linked_programs: Need<LinkedPrograms>,
    call: CallContext,
    program_name: String,
    prompt: String,
) -> Result<Output, ToolError> {
    // end: example
    let program = linked_programs.get(&program_name);
    let program = program.ok_or_else(|| ToolError::new(format!("`{program_name}` is not linked")))?;
    let result = call.call(program.agent.clone(), prompt).await?;
    // begin: example
    Ok(result)
}
// end: example

/// A value of the program that only some runs have, as a key of `required_context_keys` may be missing.
struct Region(&'static str);

/// Tells the region.
#[tool]
fn located(region: Need<Region>) -> String {
    region.0.to_owned()
}

/// Writes to the log of the process and reads it.
#[tool]
async fn step(call: CallContext) -> Result<(), ToolError> {
    // begin: example
    call.call("write_stderr", json!({"message": "starting step"})).await?;
    println!("{:?}", call.stderr_log());
    // end: example
    Ok(())
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let main = AgentSpec::new("main", "You try the tools.")
        .program("helper", "helper", "Sums up.")
        .tool("example_tool")
        .tool("spawn_tool")
        .tool("step")
        .tool("write_stderr");
    let project = Project::builder()
        .agent(main)
        .agent(AgentSpec::new("helper", "You sum up."))
        .agent(AgentSpec::new("alone", "You have no linked programs.").tool("spawn_tool"))
        .tool(example_tool)
        .tool(spawn_tool)
        .tool(step)
        .tool(located)
        .builtins(".")
        .build()?;
    let script = Script::from_yaml(include_str!("offline.yaml"))?;
    let runtime = Runtime::standard(project).model(script).approval_mode(ApprovalMode::ApproveAll);
    let runtime = runtime.provided_per_run::<Region>().build()?;
    let report = runtime.run("main", "Try the tools.").await?;
    println!("{}", report.text());
    for call in report.trace() {
        println!("{} -> {}", call.name, call.output.map(|output| output.to_string()).unwrap_or_default());
    }
    let alone = runtime.run("alone", "go").await?;
    for failure in alone.trace().into_iter().filter_map(|call| call.error) {
        println!("error: {}", failure.message);
    }
    println!("{}", runtime.run("located", json!({})).provide(Region("north")).await?.text());
    if let Err(error) = runtime.run("located", json!({})).await {
        println!("error: {error}");
    }
    runtime.shutdown().await;
    Ok(())
}
