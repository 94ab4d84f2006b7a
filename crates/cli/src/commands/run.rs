//! `llm-do run`: a project from its input to its answer.

use crate::arguments::RunArguments;
use crate::commands::chat;
use crate::exit::Exit;
use crate::host::{self, Host, Plan};
use crate::input::{self, Stdin};
use crate::location;
use crate::problem::Problem;
use crate::surface::Surface;
use crate::tui;

/// Runs a project and prints its answer.
pub(crate) fn run(arguments: &RunArguments) -> Result<Exit, Problem> {
    input::check(&arguments.input)?;
    let surface =
        if arguments.chat { Surface::of_chat(&arguments.options) } else { Surface::of(&arguments.options) }?;
    let (location, prompt) = location::locate_with_prompt(
        &arguments.project,
        arguments.prompt.positional.as_deref(),
        arguments.prompt.flag.as_deref(),
    )?;
    let project = host::load(&location, arguments.options.trust.as_deref())?;
    // The terminal UI reads its messages from the terminal.
    let holds_messages = arguments.chat && surface != Surface::Tui;
    let stdin = if holds_messages { Stdin::HoldsMessages } else { Stdin::FollowsPrompt };
    let found = input::found(&project, prompt.as_deref(), &arguments.input, stdin)?;
    // In the terminal UI the person can still write it.
    let input = match (found, surface) {
        // The first line of a chat is its first message.
        (None, _) if holds_messages && project.allow_cli_input => None,
        (None, surface) if surface != Surface::Tui || !project.allow_cli_input => return Err(input::none()),
        (found, _) => found,
    };
    let plan = Plan::new(project, &arguments.options, surface)?;
    plan.check_model(&plan.project.entry)?;
    let entry = plan.project.entry.clone();
    let plan = plan.shown(&entry, arguments.chat, input.is_none());
    host::block_on(async {
        match (Host::start(plan)?, input) {
            ((host, Some(ui)), input) => Ok(tui::converse(host, ui, Vec::new(), input, arguments.chat).await),
            ((host, None), input) if arguments.chat => Ok(chat::converse(host, Vec::new(), input).await),
            ((host, None), Some(input)) => {
                let run = host.prepare(entry, input);
                Ok(host.run(run).await)
            }
            ((_, None), None) => Err(input::none()),
        }
    })
}
