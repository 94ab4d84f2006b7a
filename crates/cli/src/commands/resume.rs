//! `llm-do resume`: a recorded run from where it was.

use std::sync::Arc;

use llm_do::event::{Event, EventBody};
use llm_do::record::ProjectSource;
use llm_do_record::{Reader, RecordedState, RunSummary};

use crate::arguments::ResumeArguments;
use crate::command_error::CommandError;
use crate::controller::{self, Task};
use crate::exit::Exit;
use crate::front_end::FrontEndKind;
use crate::location::ProjectLocation;
use crate::plan::Plan;
use crate::record::{self, short_id};
use crate::text::visible_line;
use crate::{loading, unknown};

/// Continues a recorded run.
pub(crate) fn resume(arguments: &ResumeArguments) -> Result<Exit, CommandError> {
    let (reader, run) = record::find(&arguments.options.record, &arguments.run)?;
    refuse_ended(&reader, &run)?;
    let events = reader.events(run.id, None).map_err(|error| CommandError::failed(error.to_string()))?;
    drop(reader);
    let source = source_of(&events)?;
    let settlements = unknown::settlements(&events, &arguments.unknown)?;
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
    controller::execute(plan, Task::Resume { run: run.id, settlements })
}

/// Says how a run ended that has nothing left to do.
fn refuse_ended(reader: &Reader, run: &RunSummary) -> Result<(), CommandError> {
    let id = short_id(run.id);
    if run.can_resume {
        return Ok(());
    }
    if run.state == RecordedState::Running {
        let holder = reader.holder(run.id).ok().flatten().unwrap_or_else(|| "another process".to_owned());
        return Err(CommandError::failed(format!("run {id} is being continued by {holder}")));
    }
    if run.is_turn {
        return Err(CommandError::with_hint(
            format!("run {id} is a turn of a chat, which is not continued by itself"),
            format!("`llm-do show {id}` shows what it did"),
        ));
    }
    let state = run.state.as_str();
    let error = run.error.as_deref().map(|error| format!(": {}", visible_line(error))).unwrap_or_default();
    Err(CommandError::with_hint(
        format!("run {id} cannot be resumed, it has ended ({state}{error})"),
        format!("`llm-do show {id}` shows what it did"),
    ))
}

/// What the run's project was loaded from.
fn source_of(events: &[Arc<Event>]) -> Result<ProjectSource, CommandError> {
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
