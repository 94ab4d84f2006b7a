//! `llm-do run`: a project from its input to its answer.

use crate::arguments::RunArguments;
use crate::commands::chat;
use crate::exit::Exit;
use crate::host::{self, Host, Plan};
use crate::input;
use crate::problem::Problem;

/// Runs a project and prints its answer.
pub(crate) fn run(arguments: &RunArguments) -> Result<Exit, Problem> {
    input::check(&arguments.input)?;
    let project = host::load(&arguments.project)?;
    let input = input::of_project(&project, arguments.prompt.as_deref(), &arguments.input)?;
    let plan = Plan::new(project, &arguments.options)?;
    plan.check_model(&plan.project.entry)?;
    host::block_on(async {
        let host = Host::start(plan)?;
        if arguments.chat {
            return Ok(chat::converse(host, Vec::new(), Some(input)).await);
        }
        let run = host.prepare(host.project.entry.clone(), input);
        Ok(host.run(run).await)
    })
}
