//! Opens the terminal UI and panics: the terminal must be as it was, and the message must be readable.
//!
//! `panics main|thread|event-handler`: where it panics, as soon as the person sends something or wants to exit.

use std::error::Error;

use llm_do::{AgentSpec, Project, Runtime, RuntimeExt};
use llm_do_tui::{TuiHandle, UiOptions};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let location = std::env::args().nth(1).unwrap_or_default();
    let options = UiOptions { chat: true, awaits_input: true, ..UiOptions::new("main") };
    let (tui, mut commands) = TuiHandle::open(options)?;
    commands.recv().await;
    match &*location {
        "thread" => drop(std::thread::spawn(|| panic!("a thread panics"))),
        "event-handler" => run(&tui).await?,
        _ => panic!("the program panics"),
    }
    // The channel is closed when the UI has ended.
    while commands.recv().await.is_some() {}
    Ok(tui.close()?)
}

/// Runs an agent whose events have two handlers: the UI, and one that panics.
async fn run(tui: &TuiHandle) -> Result<(), Box<dyn Error>> {
    let agent = AgentSpec::new("main", "Say it back.").model("test:echo");
    let project = Project::builder().agent(agent).build()?;
    let runtime = Runtime::standard(project)
        .on_event(tui.event_handler())
        .on_event(|_| panic!("an event handler panics"))
        .build()?;
    runtime.run("main", "hello").await?;
    Ok(())
}
