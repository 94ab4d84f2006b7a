//! The agent of the document with its typed input and its entry, in both approval modes.

// begin: example
use llm_do::prelude::*;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
// end: example

use llm_do::testing::Script;

// begin: example
#[derive(Deserialize, Serialize, JsonSchema)]
struct PitchInput {
    company: String,
    deck: Option<String>,
}

impl AgentArgs for PitchInput {
    fn prompt_messages(&self) -> Vec<InputPart> {
        let deck = self.deck.iter().map(|deck| Attachment::path(deck).into());
        [format!("Evaluate the pitch of {}.", self.company).into()].into_iter().chain(deck).collect()
    }
}

async fn review(args: PitchInput, runtime: CallContext) -> Result<String, ToolError> {
    let first = runtime.call("main", json!(args)).await?;
    let second = runtime.call("main", json!({"company": args.company, "deck": args.deck})).await?;
    Ok(format!("{first} {second}"))
}

fn project(root: &std::path::Path, haiku: Script) -> Result<Project, Box<dyn std::error::Error>> {
    let main = AgentSpec::new("main", "Instructions for the agent...")
        .model(haiku) // "anthropic:claude-haiku-4-5"
        .input_of::<PitchInput>()
        .toolset("shell_readonly")
        .toolset("filesystem_project")
        .toolset("analyzer"); // another agent
    let analyzer = AgentSpec::new("analyzer", "You analyze. Ask another analyzer first.").toolset("analyzer");
    let entry = EntrySpec::new("review", "Evaluates a pitch twice.", review)?;
    Ok(Project::builder().agent(main).agent(analyzer).entry(entry).builtins(root).build()?)
}
// end: example

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let root = tempfile::tempdir()?;
    std::fs::write(root.path().join("deck.txt"), "Ships at night.\n")?;
    let script = Script::from_yaml(include_str!("offline.yaml"))?;
    let project = project(root.path(), script.clone())?;
    let runtime = Runtime::standard(project).model(script).build()?;
    for mode in [ApprovalMode::RejectAll, ApprovalMode::ApproveAll] {
        let input = json!({"company": "Night Ferry", "deck": "deck.txt"});
        let report = runtime.run("review", input).approval_mode(mode).await?;
        println!("{}", report.text());
        for call in report.trace() {
            match call.error {
                Some(error) => println!("{} ({}) depth={}: {error}", call.name, call.kind, call.depth),
                None if call.name == "main" => {
                    println!("main: {} messages", report.messages_of(&call.key).len())
                }
                None => {}
            }
        }
    }
    runtime.shutdown().await;
    Ok(())
}
