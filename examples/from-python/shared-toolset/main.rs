//! Two agents with one toolset, each with rules of its own, in both orders; history at the top, none below; a circle.

use llm_do::RunReport;
use llm_do::model::Role;
use llm_do::prelude::*;
use llm_do::testing::Script;

// begin: example
struct Archive;

#[toolset]
impl Archive {
    /// Looks at the archive.
    #[tool]
    fn look(&self) -> &'static str {
        "looked"
    }

    /// Burns the archive.
    #[tool]
    fn burn(&self) -> &'static str {
        "burned"
    }
    // end: example

    /// Returns what the user of this agent has written so far.
    #[tool]
    fn recall(&self, call: CallContext) -> Vec<String> {
        let messages = call.inspect().messages;
        let texts =
            messages.iter().filter(|message| message.role == Role::User).map(|message| message.text());
        texts.filter(|text| !text.is_empty()).collect()
    }
    // begin: example
}

fn project() -> Result<Project, llm_do::project::LinkErrors> {
    let free =
        AgentSpec::new("free", "You clear the archive.").toolset("archive").rule("*", Approval::PreApproved);
    let careful = AgentSpec::new("careful", "You keep the archive.")
        .toolset("archive")
        .rule("look", Approval::PreApproved)
        .rule("burn", Approval::Blocked);
    // end: example
    let careful = careful.rule("recall", Approval::PreApproved);
    let main = AgentSpec::new("main", "You direct the others.")
        .toolset("archive")
        .rule("recall", Approval::PreApproved)
        .toolset("free")
        .toolset("careful")
        .toolset("left");
    let left = AgentSpec::new("left", "You pass it to the right.").toolset("right");
    let right = AgentSpec::new("right", "You pass it to the left.").toolset("left");
    let builder = Project::builder().agent(main).agent(left).agent(right);
    // begin: example
    let shared = Archive::toolset("archive", |_opening| Ok(Archive));
    builder.agent(free).agent(careful).toolset(shared).build()
}
// end: example

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let script = Script::from_yaml(include_str!("offline.yaml"))?;
    let runtime = Runtime::standard(project()?).model(script).build()?;
    let mut session = runtime.session("main");
    show(&session.send("Go round.").await?);
    show(&session.send("Clear the archive.").await?);
    session.close().await;
    Ok(())
}

fn show(report: &RunReport) {
    println!("{}", report.text());
    for call in report.trace() {
        let result = match (call.output, call.error) {
            (_, Some(error)) => error.message,
            (output, None) => output.map(|output| output.to_string()).unwrap_or_default(),
        };
        println!("{} depth={} -> {result}", call.name, call.depth);
    }
}
