//! The document's `my_tool`, and its block "Example Usage" line by line. Offline: a script answers for both models.

#![allow(unused_variables, reason = "the tools of the document do not use all of their parameters")]

// begin: example
use llm_do::prelude::*;
use serde_json::json;
// end: example

use llm_do::testing::Script;

// begin: example
/// Search for documents.
#[tool(approval = "pre_approved")]
async fn search(query: String) -> Vec<String> {
    vec!["doc1.pdf".into(), "doc2.pdf".into()]
}
// end: example

// begin: my_tool
/// Finds documents with another tool.
#[tool(approval = "pre_approved")]
async fn my_tool(call: CallContext, query: String, #[default(10)] limit: u32) -> Result<Output, ToolError> {
    Ok(call.call("other_tool", json!({"q": query})).await?)
}
// end: my_tool

/// Another tool.
#[tool(approval = "pre_approved")]
async fn other_tool(q: String) -> Vec<String> {
    vec![format!("{q}.pdf")]
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let script = Script::from_yaml(include_str!("offline.yaml"))?;
    example(script.clone(), script.clone()).await?;
    let caller =
        AgentSpec::new("caller", "You call a tool that calls another.").tool("my_tool").tool("other_tool");
    let project = Project::builder().agent(caller).tool(my_tool).tool(other_tool).build()?;
    let report = Runtime::standard(project).model(script).build()?.run("caller", "Find the tides.").await?;
    println!("{}", report.text());
    for t in report.trace() {
        println!("{} ({}) depth={}", t.name, t.kind, t.depth);
    }
    Ok(())
}

async fn example(haiku: Script, sonnet: Script) -> Result<(), Box<dyn std::error::Error>> {
    // begin: example
    let researcher = AgentSpec::new("researcher", "Research the topic using available tools.")
        .model(haiku) // "anthropic:claude-haiku"; without it, the model of the runtime
        .tool("search");

    let project = Project::builder().agent(researcher).tool(search).build()?;
    let runtime = Runtime::standard(project).model(sonnet).build()?; // "anthropic:claude-sonnet"
    let report = runtime.run("researcher", json!({"topic": "AI safety"})).await?;

    for t in report.trace() {
        println!("{} ({}) depth={}", t.name, t.kind, t.depth);
    }
    println!("{}", report.usage);
    // end: example
    println!("{}", report.text());
    Ok(())
}
