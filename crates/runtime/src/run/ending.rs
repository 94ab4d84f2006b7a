//! How a run ended: what its top call or a halt comes to, and whether it can be continued.

use std::sync::Arc;

use llm_do_core::{Event, EventBody, Failure, FailureKind, Halt, Key, Outcome, Output, Status, StepResult};

use crate::state::run_state::RunState;

/// Returns whether a run that ended can be continued: it is recorded, is not a turn of a session, and has no result yet.
pub(super) fn can_resume(run: &RunState, ordinal: u32) -> bool {
    let is_kept = run.shared.store.is_recording() && run.options.reason.is_none();
    is_kept && run.options.agent_state.is_none() && result_of(&run.log.events(), ordinal).is_none()
}

/// Returns how a run ended, if it ended for good: with its status, or with the end of the call that it was started for. A
/// limit of that call, for instance, is recorded as its result, so entering the run again would only end it again.
pub(crate) fn result_of(events: &[Arc<Event>], ordinal: u32) -> Option<(Status, Option<String>)> {
    let (status, error) = events.iter().rev().find_map(|event| match &event.body {
        EventBody::RunFinished { status, error, .. } => Some(Some((*status, error.clone()))),
        EventBody::RunResumed { .. } => Some(None),
        _ => None,
    })??;
    let is_final = matches!(status, Status::Done | Status::Failed | Status::Denied | Status::Output);
    let top = Key::root().child(ordinal);
    let has_result = || {
        events.iter().any(|event| event.key == top && matches!(event.body, EventBody::CallFinished { .. }))
    };
    (is_final || has_result()).then_some((status, error))
}

/// Returns whether a recorded run ended for good.
pub(super) fn has_result(events: &[Arc<Event>]) -> bool {
    let ordinal = events.iter().find_map(|event| match &event.body {
        EventBody::RunStarted(start) => Some(start.ordinal),
        _ => None,
    });
    ordinal.is_some_and(|ordinal| result_of(events, ordinal).is_some())
}

pub(super) struct RunEnd {
    pub(super) status: Status,
    pub(super) output: Option<Output>,
    pub(super) failure: Option<Failure>,
    pub(super) error: Option<String>,
}

pub(super) fn ending(run: &RunState, performed: StepResult) -> RunEnd {
    match performed.map_err(|halt| run.cause_of(halt)).map(Outcome::into_output) {
        Ok(Ok(output)) => RunEnd { status: Status::Done, output: Some(output), failure: None, error: None },
        Ok(Err(failure)) => {
            let status = match status_of_failure(failure.kind) {
                // Code that reacts to the end of its run answers with an error; the run was ended all the same.
                Status::Failed if run.cancel.is_cancelled() => {
                    status_of_halt(&run.cause_of(Halt::Interrupted))
                }
                status => status,
            };
            RunEnd { status, output: None, error: Some(failure.to_string()), failure: Some(failure) }
        }
        Err(halt) => {
            let failure = match &halt {
                Halt::Limit(failure) | Halt::Denied(failure) => Some(failure.clone()),
                _ => None,
            };
            RunEnd { status: status_of_halt(&halt), output: None, failure, error: Some(halt.to_string()) }
        }
    }
}

fn status_of_failure(kind: FailureKind) -> Status {
    match kind {
        FailureKind::Blocked | FailureKind::Denied | FailureKind::Unasked => Status::Denied,
        FailureKind::Limit | FailureKind::Depth => Status::Limit,
        FailureKind::Output => Status::Output,
        FailureKind::Model => Status::Provider,
        FailureKind::Unknown
        | FailureKind::Arguments
        | FailureKind::Access
        | FailureKind::Context
        | FailureKind::Tool
        | FailureKind::Panic
        | FailureKind::TimedOut
        | FailureKind::Cancelled
        | FailureKind::Toolset => Status::Failed,
    }
}

pub(super) fn status_of_halt(halt: &Halt) -> Status {
    match halt {
        Halt::Interrupted | Halt::Stopped { .. } => Status::Interrupted,
        Halt::Denied(_) => Status::Denied,
        Halt::TimedOut => Status::TimedOut,
        Halt::Parked { .. } => Status::Parked,
        Halt::Unknown { .. } => Status::Unknown,
        Halt::Record(_) => Status::Record,
        Halt::Limit(_) => Status::Limit,
        Halt::Provider(_) => Status::Provider,
    }
}
