//! `llm-do resume`: a recorded run from where it was.

use std::path::Path;
use std::sync::Arc;

use llm_do::approval::ApprovalMode;
use llm_do::event::{Event, EventBody};
use llm_do::record::{ProjectBundle, ProjectSource, ProjectState, changed_parts, recorded_state};
use llm_do_core::RunStart;
use llm_do_record::{Reader, RecordedState, RunSummary, short_id};

use crate::arguments::{ChangedChoice, ProjectArguments, ResumeArguments, SentRequests};
use crate::changed_project::{self, ChangedProject};
use crate::command_error::CommandError;
use crate::controller::{self, Task};
use crate::exit::Exit;
use crate::front_end::FrontEndKind;
use crate::location::ProjectLocation;
use crate::plan::Plan;
use crate::record::{self, RecordTarget};
use crate::text::visible_line;
use crate::{loading, location, output, unknown};

/// Continues a recorded run, or all parked runs whose questions are answered.
pub(crate) fn resume(arguments: &ResumeArguments) -> Result<Exit, CommandError> {
    match &arguments.run {
        Some(id) => resume_one(arguments, id),
        None => resume_answered(arguments),
    }
}

/// Continues every parked run whose questions are answered, one after the other. What one of them runs into does not keep the
/// others from going on; the first exit code that is not 0 is that of the command.
fn resume_answered(arguments: &ResumeArguments) -> Result<Exit, CommandError> {
    let Some(reader) = record::reader(&arguments.options.record)? else {
        output::to_stderr("no runs");
        return Ok(Exit::Done);
    };
    let runs = reader.answered_runs().map_err(|error| CommandError::failed(error.to_string()))?;
    drop(reader);
    if runs.is_empty() {
        output::to_stderr("no parked run has answers to all of its questions");
    }
    let mut first = Exit::Done;
    for run in runs {
        output::to_stderr(&format!("resuming {}", short_id(run)));
        let exit = resume_one(arguments, &run.to_string()).unwrap_or_else(|problem| problem.show());
        if first == Exit::Done {
            first = exit;
        }
    }
    Ok(first)
}

fn resume_one(arguments: &ResumeArguments, id: &str) -> Result<Exit, CommandError> {
    let (reader, run) = record::find(&arguments.options.record, id)?;
    refuse_ended(&reader, &run)?;
    let events = reader.events(run.id, None).map_err(|error| CommandError::failed(error.to_string()))?;
    let start = start_of(&events)?;
    let state = recorded_state(&events).ok_or_else(not_ours)?;
    let bundle = state.bundle.map(|digest| reader.bundle(digest)).transpose();
    let bundle = bundle.map_err(|error| CommandError::failed(error.to_string()))?.flatten();
    drop(reader);
    let settlements = unknown::settlements(&events, &arguments.unknown)?;
    let kind = FrontEndKind::for_run(&arguments.options)?;
    let mut location = locate(&state, bundle.as_ref(), arguments.project.as_deref())?
        .with_private(RecordTarget::new(&arguments.options.record).files());
    let changed = ChangedProject::find(run.id, &state, bundle, &location);
    let choice = changed.choose(arguments.changed, arguments.diff)?;
    if choice == Some(ChangedChoice::Recorded) {
        location.recorded = Some(changed.recorded_files());
        output::early_notice(RECORDED);
    }
    let project = loading::load(&location, arguments.options.trust.as_deref())?;
    let parts = changed_parts(&events, &project.project);
    // Whoever was asked about files was not told about tools of another build.
    let is_decided = arguments.changed.is_some() || (choice.is_some() && parts.earlier_build.is_none());
    if !is_decided {
        changed_project::check_tools(run.id, &parts)?;
    }
    let plan = Plan::to_resume(project, &location, &arguments.options, kind, &sent_requests(&events))?;
    note_mode(start.mode, plan.mode);
    controller::execute(plan, Task::Resume { run: run.id, settlements })
}

/// What is said if the user chose the recorded files.
const RECORDED: &str =
    "the run goes on with its recorded files (manifest, agent files, prompts); code is that of today";

/// Finds the project of a run: where it was, or where the user says that it is now.
fn locate(
    state: &ProjectState,
    bundle: Option<&ProjectBundle>,
    moved: Option<&Path>,
) -> Result<ProjectLocation, CommandError> {
    let ProjectSource { path, set, .. } = state.source.clone().ok_or_else(not_ours)?;
    if let Some(moved) = moved {
        let location = location::locate(&ProjectArguments { path: Some(moved.to_path_buf()), set })?;
        let path = location.path.canonicalize().unwrap_or(location.path);
        return Ok(ProjectLocation { path, ..location });
    }
    // A file that was removed can still be taken from the record.
    let is_recorded = bundle.is_some() && state.project.as_ref().is_some_and(|root| root.is_dir());
    if path.exists() || is_recorded {
        return Ok(ProjectLocation { set, ..ProjectLocation::new(path) });
    }
    Err(CommandError::with_hint(
        format!(
            "the project of the run is gone: {} does not exist",
            visible_line(&path.display().to_string())
        ),
        "put it back where it was, or say where it is now with `--project PATH`",
    ))
}

/// Says how a run ended that has nothing left to do.
fn refuse_ended(reader: &Reader, run: &RunSummary) -> Result<(), CommandError> {
    let id = short_id(run.id);
    if run.can_resume {
        return Ok(());
    }
    if run.state == RecordedState::Running {
        let holder = reader.holder(run.id).ok().flatten().unwrap_or_else(|| "another process".to_owned());
        return Err(CommandError::failed_with_hint(
            format!("run {id} is being continued by {holder}"),
            format!("wait until it ends; `llm-do show {id}` shows how far it is"),
        ));
    }
    if run.is_turn {
        return Err(CommandError::with_hint(
            format!("run {id} is a turn of a chat, which is not continued by itself"),
            match run.session {
                Some(session) => format!("`llm-do chat --resume {}` continues the chat", short_id(session)),
                None => format!("`llm-do show {id}` shows what it did"),
            },
        ));
    }
    let state = run.state.as_str();
    let error = run.error.as_deref().map(|error| format!(": {}", visible_line(error))).unwrap_or_default();
    Err(CommandError::with_hint(
        format!("run {id} cannot be resumed, it has ended ({state}{error})"),
        format!("`llm-do show {id}` shows what it did"),
    ))
}

/// What the run has sent to providers. Models of scripts and tests send nothing.
fn sent_requests(events: &[Arc<Event>]) -> SentRequests {
    let is_remote = |model: &str| !matches!(model.split(':').next(), Some("script" | "test"));
    let mut sent = SentRequests::default();
    for event in events {
        match &event.body {
            EventBody::ModelRequest { model, .. } => sent.requests += usize::from(is_remote(model)),
            EventBody::ModelResponse { model, .. } => sent.answers += usize::from(is_remote(model)),
            _ => {}
        }
    }
    sent
}

/// What the run was started with.
fn start_of(events: &[Arc<Event>]) -> Result<&RunStart, CommandError> {
    let start = events.iter().find_map(|event| match &event.body {
        EventBody::RunStarted(start) => Some(&**start),
        _ => None,
    });
    start.ok_or_else(not_ours)
}

fn not_ours() -> CommandError {
    CommandError::usage(
        "the run was not started by `llm-do run`: only the program that started it can resume it",
    )
}

/// Says that a flag does not loosen the approval mode of the run.
fn note_mode(recorded: ApprovalMode, given: ApprovalMode) {
    if given == ApprovalMode::ApproveAll && recorded != given {
        let mode = if recorded == ApprovalMode::RejectAll { "none" } else { "prompt" };
        output::early_notice(&format!(
            "the run keeps its approval mode: it was started with `--approve {mode}`"
        ));
    }
}
