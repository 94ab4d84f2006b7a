//! `llm-do chat`: several turns with memory.

use crate::arguments::{ChatArguments, ProjectArguments};
use crate::command_error::CommandError;
use crate::controller::{self, Task};
use crate::exit::Exit;
use crate::front_end::FrontEndKind;
use crate::plan::Plan;
use crate::record::RecordTarget;
use crate::typed_input::TextSource;
use crate::{input, loading, location, recorded_chat};

/// Talks with a project.
pub(crate) fn chat(arguments: &ChatArguments) -> Result<Exit, CommandError> {
    let session = &arguments.session;
    let is_recorded = session.continue_last || session.resume.is_some() || session.fork.is_some();
    if is_recorded && arguments.options.no_record {
        return Err(CommandError::usage("a recorded chat goes on in its record: leave out `--no-record`"));
    }
    let lone = location::lone_prompt(&arguments.project, arguments.prompt.positional.as_deref());
    let path = arguments.project.path.clone().filter(|_| lone.is_none());
    let project = ProjectArguments { path, set: arguments.project.set.clone() };
    let recorded = recorded_chat::choose(session, &arguments.options.record, &project)?;
    let (recorded, recorded_location) = recorded.unzip();
    let (location, prompt) = match recorded_location.flatten() {
        Some(location) => (location, lone.map(str::to_owned).or_else(|| arguments.prompt.flag.clone())),
        None => location::locate_with_prompt(
            &arguments.project,
            arguments.prompt.positional.as_deref(),
            arguments.prompt.flag.as_deref(),
        )?,
    };
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
    let demo = if recorded.is_some() { Vec::new() } else { plan.project.demo.clone() };
    controller::execute(plan, Task::Chat { demo, first, recorded: recorded.map(Box::new) })
}
