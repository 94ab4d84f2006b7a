//! A tour of llm-do, offline, on the built-in scripted model.
//!
//! The agent `main` calls a tool (`propose_names`, Rust code), which calls the agent `namer` once per file;
//! then the agent `critic`; then a tool that must ask (`rename_files`). The answer goes to stdout,
//! everything else to stderr: events as they happen, the question, and the tree of calls at the end.
//!
//! ```text
//! cargo run -p tour                     # asks at the terminal
//! cargo run -p tour -- --approve all    # or: none
//! ```

mod approver;
mod inbox;

use std::process::ExitCode;

use llm_do::RunReport;
use llm_do::call::CallResult;
use llm_do::event::{Event, EventBody, Status};
use llm_do::model::StandardModels;
use llm_do::prelude::*;

use crate::approver::{Approve, TerminalApprover};
use crate::inbox::{Inbox, propose_names, rename_files};

#[tokio::main]
async fn main() -> ExitCode {
    let approve = match Approve::from_arguments(std::env::args().skip(1)) {
        Ok(approve) => approve,
        Err(problem) => {
            eprintln!("error: {problem}\nhint: cargo run -p tour -- [--approve ask|all|none]");
            return ExitCode::from(2);
        }
    };
    match tour(approve).await {
        Ok(report) => {
            println!("{}", report.text());
            show(&report);
            if report.nobody_to_ask { ExitCode::from(5) } else { ExitCode::SUCCESS }
        }
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn tour(approve: Approve) -> Result<RunReport, Box<dyn std::error::Error>> {
    let runtime = Runtime::builder(project()?)
        .models(StandardModels::new(env!("CARGO_MANIFEST_DIR")))
        .provide(Inbox::new(["untitled1.txt", "IMG_0042.png"]))
        .approval_mode(approve.mode());
    let runtime = match TerminalApprover::open() {
        Some(approver) if approve == Approve::Ask => runtime.approver(approver),
        _ => runtime,
    };
    let runtime = runtime.on_event(show_event).build()?;
    let report = runtime.run("main", "Tidy up my inbox.").await;
    runtime.shutdown().await;
    Ok(report?)
}

fn project() -> Result<Project, llm_do::project::LinkErrors> {
    let main = AgentSpec::new("main", "You tidy up folders. Propose names, have them checked, then rename.")
        .model("script:scripts/main.yaml")
        .tool("propose_names")
        .tool("rename_files")
        .toolset("critic");
    let critic = AgentSpec::new("critic", "You check file names.").model("script:scripts/critic.yaml");
    let namer =
        AgentSpec::new("namer", "You find a good name for one file.").model("script:scripts/namer.yaml");
    Project::builder().agent(main).agent(critic).agent(namer).tool(propose_names).tool(rename_files).build()
}

/// Shows what happens while it happens.
fn show_event(event: &Event) {
    let what = match &event.body {
        EventBody::CallStarted { .. } => "started".to_owned(),
        EventBody::ApprovalRequested(_) => "asks".to_owned(),
        EventBody::CallFinished { result: CallResult::Output(_), .. } => "done".to_owned(),
        EventBody::CallFinished { result: CallResult::Error(failure), .. } => failure.message.clone(),
        _ => return,
    };
    eprintln!("  {:indent$}{}: {what}", "", event.call.path, indent = 2 * event.call.depth as usize);
}

/// Shows the tree of calls and what they used.
fn show(report: &RunReport) {
    eprintln!("\n{}", report.trace());
    for (model, usage) in report.usage.iter() {
        eprintln!(
            "{model}: {} requests, {} tokens in, {} out",
            usage.requests,
            usage.total_input(),
            usage.output
        );
    }
    if report.status == Status::Done && report.nobody_to_ask {
        eprintln!("hint: nobody could be asked; run it in a terminal, or with `--approve all`");
    }
}
