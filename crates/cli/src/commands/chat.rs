//! `llm-do chat`: several turns with memory.

use crate::arguments::ChatArguments;
use crate::command_error::CommandError;
use crate::controller::{self, Task};
use crate::exit::Exit;
use crate::front_end::FrontEndKind;
use crate::plan::Plan;
use crate::record::RecordTarget;
use crate::typed_input::TextSource;
use crate::{input, loading, location};

/// Talks with a project.
pub(crate) fn chat(arguments: &ChatArguments) -> Result<Exit, CommandError> {
    let (location, prompt) = location::locate_with_prompt(
        &arguments.project,
        arguments.prompt.positional.as_deref(),
        arguments.prompt.flag.as_deref(),
    )?;
    let location = location.with_private(RecordTarget::new(&arguments.options.record).files());
    let project = loading::load(&location, arguments.options.trust.as_deref())?;
    if !project.allow_cli_input {
        return Err(CommandError::with_hint(
            "this project takes no input from the command line",
            "its manifest sets `allow_cli_input: false`; use `llm-do run`",
        ));
    }
    let attachments = input::attachments(&arguments.attach)?;
    let first = match &prompt {
        Some(prompt) => {
            let schema = input::own_schema(&project, &project.entry);
            let input = input::from_text(prompt, schema.as_ref(), TextSource::ChatLine)?;
            Some(input.with_attachments(attachments))
        }
        None if attachments.is_empty() => None,
        None => {
            let hint = "give a prompt too";
            return Err(CommandError::with_hint("`--attach` needs a first message", hint));
        }
    };
    let plan =
        Plan::new(project, &location, &arguments.options, FrontEndKind::for_chat(&arguments.options)?)?;
    plan.check_model(&plan.project.entry)?;
    let demo = plan.project.demo.clone();
    controller::execute(plan, Task::Chat { demo, first })
}
