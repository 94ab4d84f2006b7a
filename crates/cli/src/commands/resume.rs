//! `llm-do resume`: a recorded run from where it was.

use llm_do::event::{EventBody, RunId};
use llm_do::record::ProjectSource;
use llm_do_record::{Reader, RunState, RunSummary};

use crate::arguments::ResumeArguments;
use crate::command_error::CommandError;
use crate::controller::{self, Task};
use crate::exit::Exit;
use crate::front_end::FrontEndKind;
use crate::loading;
use crate::location::ProjectLocation;
use crate::plan::Plan;
use crate::record::{self, short_id};
use crate::text::visible_line;

/// Continues a recorded run.
pub(crate) fn resume(arguments: &ResumeArguments) -> Result<Exit, CommandError> {
    let (reader, run) = record::find(&arguments.options.record, &arguments.run)?;
    refuse_ended(&reader, &run)?;
    let source = source_of(&reader, run.id)?;
    drop(reader);
    let kind = FrontEndKind::for_run(&arguments.options)?;
    let location = ProjectLocation { path: source.path, set: source.set };
    if !location.path.exists() {
        return Err(CommandError::usage(format!(
            "the project of the run is gone: {} does not exist",
            visible_line(&location.path.display().to_string())
        )));
    }
    let project = loading::load(&location, arguments.options.trust.as_deref())?;
    let plan = Plan::new(project, &location, &arguments.options, kind)?;
    controller::execute(plan, Task::Resume(run.id))
}

/// Says how a run ended that has nothing left to do.
fn refuse_ended(reader: &Reader, run: &RunSummary) -> Result<(), CommandError> {
    let id = short_id(run.id);
    if run.can_resume {
        return Ok(());
    }
    if run.state == RunState::Running {
        let holder = reader.holder(run.id).ok().flatten().unwrap_or_else(|| "another process".to_owned());
        return Err(CommandError::failed(format!("run {id} is being continued by {holder}")));
    }
    let state = run.state.as_str();
    let error = run.error.as_deref().map(|error| format!(": {}", visible_line(error))).unwrap_or_default();
    Err(CommandError::with_hint(
        format!("run {id} cannot be resumed, it has ended ({state}{error})"),
        format!("`llm-do show {id}` shows what it did"),
    ))
}

/// What the run's project was loaded from.
fn source_of(reader: &Reader, run: RunId) -> Result<ProjectSource, CommandError> {
    let events = reader.events(run, None).map_err(|error| CommandError::failed(error.to_string()))?;
    let start = events.iter().find_map(|event| match &event.body {
        EventBody::RunStarted(start) => Some(start),
        _ => None,
    });
    start.and_then(|start| start.source.clone()).ok_or_else(|| {
        CommandError::usage(
            "the run was not started by `llm-do run`: only the program that started it can resume it",
        )
    })
}
