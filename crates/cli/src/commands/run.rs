//! `llm-do run`: a project from its input to its answer.

use crate::arguments::RunArguments;
use crate::command_error::CommandError;
use crate::controller::{self, Task};
use crate::exit::Exit;
use crate::front_end::FrontEndKind;
use crate::input::{self, Stdin};
use crate::plan::Plan;
use crate::record::RecordTarget;
use crate::{loading, location};

/// Runs a project and prints its answer.
pub(crate) fn run(arguments: &RunArguments) -> Result<Exit, CommandError> {
    input::check(&arguments.input)?;
    let kind = match arguments.chat {
        true => FrontEndKind::for_chat(&arguments.options)?,
        false => FrontEndKind::for_run(&arguments.options)?,
    };
    let (location, prompt) = location::locate_with_prompt(
        &arguments.project,
        arguments.prompt.positional.as_deref(),
        arguments.prompt.flag.as_deref(),
    )?;
    let location = location.with_private(RecordTarget::new(&arguments.options.record).files());
    let project = loading::load(&location, arguments.options.trust.as_deref())?;
    // The terminal UI reads its messages from the terminal.
    let holds_messages = arguments.chat && kind != FrontEndKind::Tui;
    let stdin = if holds_messages { Stdin::HoldsMessages } else { Stdin::FollowsPrompt };
    let input = input::found(&project, prompt.as_deref(), &arguments.input, stdin)?;
    // The terminal UI and a chat can still ask for it.
    let can_ask = project.allow_cli_input && (kind == FrontEndKind::Tui || holds_messages);
    if input.is_none() && !can_ask {
        return Err(input::missing());
    }
    let plan = Plan::new(project, &location, &arguments.options, kind)?;
    plan.check_model(&plan.project.entry)?;
    let task = match arguments.chat {
        true => Task::Chat { demo: Vec::new(), first: input, recorded: None },
        false => Task::Run(input),
    };
    controller::execute(plan, task)
}
