//! What the document does with workers, a controller and callbacks, in a program that runs the project of this folder.

// begin: example
use llm_do::prelude::*;
use llm_do::tools::{AgentDefaults, NewAgent, create_agent};
use serde_json::json;
// end: example

use std::path::Path;

use llm_do::Payload;
use llm_do::event::Event;
use llm_do::testing::Script;

// begin: example
fn my_callback(request: ApprovalRequest) -> Answer {
    // end: example
    println!("asked for {}", request.name);
    // begin: example
    Answer::Session(Scope::Exact) // do not ask again for the same operation
}

/// Delegates to another worker.
async fn delegate(input: PromptInput, call: CallContext) -> Result<Output, ToolError> {
    Ok(call.call("target-worker", input.input).await?)
}
// end: example

fn on_message(event: &Event) {
    eprintln!("{}", event.call.path);
}

fn do_write(payload: Payload) -> String {
    format!("wrote {payload}")
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = tempfile::tempdir()?;
    let registry = folder.path().join("workers");
    std::fs::create_dir(&registry)?;
    for (name, text) in [
        ("my-worker", "name: my-worker\ninstructions: You run the task.\nallow_workers: [target-worker]\n"),
        ("target-worker", include_str!("workers/target-worker.yaml")),
    ] {
        std::fs::write(registry.join(format!("{name}.yaml")), text)?;
    }
    example(&registry, Script::from_yaml(include_str!("offline.yaml"))?).await
}

async fn example(registry: &Path, gpt: Script) -> Result<(), Box<dyn std::error::Error>> {
    // begin: example
    let entry = EntrySpec::new("delegate", "Delegates to another worker.", delegate)?;
    let project = llm_do::loader(registry.join("my-worker.yaml")).entry(entry).load()?;
    let runtime = project.runtime().model(gpt).build()?; // "openai:gpt-4"
    let result = runtime
        .run("my-worker", json!({"task": "Call the target"}))
        .approver(my_callback)
        .on_event(on_message)
        .await?;
    // end: example
    println!("{}", result.text());

    // begin: example
    let result = runtime.run("delegate", "Where are you?").await?;
    // end: example
    println!("{}", result.text());

    // begin: example
    let spec = NewAgent::new("new-worker", "You are a helpful assistant.").description("A simple worker");
    let defaults = AgentDefaults { model: Some("test:echo".into()), ..AgentDefaults::default() };
    let definition = create_agent(&runtime, &spec, &defaults, false)?; // `true` overwrites
    // end: example
    println!("{}", definition.file.display());
    println!("{}", runtime.run("new-worker", "Hello.").await?.text());
    println!(
        "{}",
        create_agent(&runtime, &spec, &defaults, false)
            .err()
            .map(|error| error.to_string())
            .unwrap_or_default()
    );

    // begin: example
    let controller = ApprovalController::builder().approver(my_callback).build()?;
    let payload = json!({"path": "output/file.txt"});
    let result = controller.maybe_run("sandbox.write", payload.clone(), do_write).await?;
    // end: example
    println!("{result}");
    println!("{}", controller.maybe_run("sandbox.write", payload, do_write).await?);

    for mode in [ApprovalMode::ApproveAll, ApprovalMode::RejectAll] {
        // begin: example
        let controller = ApprovalController::builder().mode(mode).build()?;
        // end: example
        let written = controller.maybe_run("sandbox.write", json!({"path": "a"}), do_write).await;
        println!("{}", written.unwrap_or_else(|failure| failure.message));
    }
    runtime.shutdown().await;
    Ok(())
}
