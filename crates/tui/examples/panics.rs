//! Opens the terminal UI and panics: the terminal must be as it was, and the message must be readable.
//!
//! `panics main|thread|reader`: where it panics, as soon as the person sends something or wants to leave.

use std::error::Error;

use llm_do::{AgentSpec, Project};
use llm_do_tui::{Desk, Opening};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let place = std::env::args().nth(1).unwrap_or_default();
    let (desk, mut wishes) = Desk::open(Opening { chat: true, asks: true, ..Opening::new("main") })?;
    wishes.recv().await;
    match &*place {
        "thread" => drop(std::thread::spawn(|| panic!("a thread breaks off"))),
        "reader" => run(&desk).await?,
        _ => panic!("the program breaks off"),
    }
    // A UI that is gone wishes for nothing any more.
    while wishes.recv().await.is_some() {}
    Ok(desk.close()?)
}

/// Runs an agent whose events two read: the UI, and one that panics.
async fn run(desk: &Desk) -> Result<(), Box<dyn Error>> {
    let agent = AgentSpec::new("main", "Say it back.").model("test:echo");
    let project = Project::builder().agent(agent).build()?;
    let runtime = llm_do::runtime(project)
        .on_event(desk.reader())
        .on_event(|_| panic!("a reader of events breaks off"))
        .build()?;
    runtime.run("main", "hello").await?;
    Ok(())
}
