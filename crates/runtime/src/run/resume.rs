//! Continuing recorded runs.

use std::sync::Arc;
use std::time::Duration;

use llm_do_core::{
    ApprovalMode, Event, EventBody, Key, Limits, ModelChoice, ProjectChanges, RunId, RunStart, Settlement,
    Status,
};
use thiserror::Error;

use crate::record::changes::{changes_since, recorded_state};
use crate::record::store::StoreError;
use crate::record::unknown::{UnknownCall, unknown_calls};
use crate::run::ending::result_of;
use crate::run::{Options, Run, merged, start};
use crate::state::run_state::extend;
use crate::state::shared::Shared;

/// Continues a run. `more` changes the options with which it goes on.
pub(crate) async fn continue_run(
    shared: &Arc<Shared>,
    run: RunId,
    resume: ResumeOptions,
    more: impl FnOnce(&mut Options),
) -> Result<Run, ResumeError> {
    let claimed = {
        let _recorded = shared.appending.lock().await;
        shared.store.claim(run).await?
    };
    let begun = claimed.events.iter().find_map(|event| match &event.body {
        EventBody::RunStarted(begun) => Some((begun.clone(), event.call.agent.clone())),
        _ => None,
    });
    let (begun, agent) = begun.ok_or(ResumeError::NotStarted { run })?;
    if let Some((status, error)) = result_of(&claimed.events, begun.ordinal) {
        return Err(ResumeError::Ended { run, status, error });
    }
    let mode = stricter(begun.mode, shared.mode);
    let mut options = Options { mode: Some(mode), ..Options::from_record(&begun, agent) };
    options.limits = recorded_limits(&begun, &claimed.events);
    if let Some(limits) = resume.limits {
        options.limits = merged(limits, &options.limits);
        options.new_limits = Some(options.limits.clone());
    }
    options.entry_model = resume.entry_model.or(options.entry_model);
    options.timeout = resume.timeout;
    options.settled = settled(run, &claimed.events, resume.settlements)?;
    options.changes = changes(shared, &claimed.events).await?;
    if resume.on_changes == OnChanges::Refuse && options.changes.need_decision() {
        return Err(ResumeError::Changed { run, changes: Box::new(options.changes) });
    }
    more(&mut options);
    Ok(start(shared.clone(), run, begun.entry, begun.input, options, Some(claimed)))
}

/// Returns what is different from the time when a recorded run was last started or continued, files included if both
/// sides know them.
pub(crate) async fn changes(shared: &Shared, events: &[Arc<Event>]) -> Result<ProjectChanges, StoreError> {
    let mut changes = changes_since(events, &shared.project_state(), &shared.project);
    let earlier = recorded_state(events).and_then(|state| state.bundle);
    if let (Some(earlier), Some((digest, bundle))) = (earlier, &shared.bundle)
        && earlier != *digest
    {
        match shared.store.bundle(earlier).await? {
            Some(earlier) => changes.files = bundle.changes_since(&earlier),
            None => changes.unnamed = true,
        }
    }
    Ok(changes)
}

/// What is different from the record when a run is continued.
#[derive(Default)]
#[non_exhaustive]
pub struct ResumeOptions {
    /// Limits that replace those of the record, each that is given. What was spent before counts.
    pub limits: Option<Limits>,
    /// The model of the agent that is run, whatever its file says.
    pub entry_model: Option<ModelChoice>,
    /// The wall time after which the run is stopped again.
    pub timeout: Option<Duration>,
    /// What became of calls of which the record does not say whether they happened, by the ids of the calls
    /// ([`unknown_calls`](crate::unknown_calls)). A run that reaches one about which nothing is said stops there with
    /// [`Status::Unknown`].
    pub settlements: Vec<(Key, Settlement)>,
    /// What to do if the project is not as the record has it. What is different is in [`RunReport::changes`], in the event
    /// `run_resumed`, and in a notice.
    ///
    /// [`RunReport::changes`]: crate::RunReport::changes
    pub on_changes: OnChanges,
}

/// What to do with a run whose project is not as the record has it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum OnChanges {
    /// Go on with the project of today. Calls that have ended stay as they are; approvals are decided anew.
    #[default]
    GoOn,
    /// Return [`ResumeError::Changed`] if a person should decide ([`ProjectChanges::need_decision`]).
    Refuse,
}

/// Why a run cannot be continued.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ResumeError {
    /// It has ended.
    #[error("run {run} has ended ({status}{}): there is nothing to resume", error_suffix(error.as_deref()))]
    Ended {
        /// The run.
        run: RunId,
        /// How it ended.
        status: Status,
        /// Why it failed, if it did.
        error: Option<String>,
    },
    /// Something is said about a call whose outcome is recorded, or that is not in the record.
    #[error("run {run} has no call `{call}` whose outcome is unknown")]
    NotUnknown {
        /// The run.
        run: RunId,
        /// The call.
        call: Key,
    },
    /// Its project is not as the record has it, and it was asked not to go on then ([`OnChanges::Refuse`]).
    #[error("the project of run {run} has changed: {changes}")]
    Changed {
        /// The run.
        run: RunId,
        /// What is different.
        changes: Box<ProjectChanges>,
    },
    /// Its record ends before anything was run.
    #[error("the record of run {run} does not say what was run")]
    NotStarted {
        /// The run.
        run: RunId,
    },
    /// It is the id of something else than a session.
    #[error("there is no session {session} in this record")]
    NoSession {
        /// The id.
        session: RunId,
    },
    /// A copy was to end with a turn that is not in the conversation.
    #[error("session {session} has no turn {turn}: {}", existing_turns(turns))]
    NoTurn {
        /// The session.
        session: RunId,
        /// The turn.
        turn: u32,
        /// The turns that it has.
        turns: Vec<u32>,
    },
    /// The session has no turn that was cut off.
    #[error("no turn of the session was cut off")]
    NoOpenTurn,
    /// The store does not give it out.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Says which turns there are.
pub(crate) fn existing_turns(turns: &[u32]) -> String {
    let numbers: Vec<String> = turns.iter().map(ToString::to_string).collect();
    match numbers.as_slice() {
        [] => "nothing was said yet".to_owned(),
        [only] => format!("there is only {only}"),
        numbers => format!("there are {}", numbers.join(", ")),
    }
}

fn error_suffix(error: Option<&str>) -> String {
    error.map(|error| format!(": {error}")).unwrap_or_default()
}

/// Finds the calls about which something is said.
fn settled(
    run: RunId,
    events: &[Arc<Event>],
    settlements: Vec<(Key, Settlement)>,
) -> Result<Vec<(UnknownCall, Settlement)>, ResumeError> {
    if settlements.is_empty() {
        return Ok(Vec::new());
    }
    let unknown = unknown_calls(events);
    let find = |(call, settlement): (Key, Settlement)| {
        let found = unknown.iter().find(|unknown| unknown.call.id == call);
        found.map(|found| (found.clone(), settlement)).ok_or(ResumeError::NotUnknown { run, call })
    };
    settlements.into_iter().map(find).collect()
}

/// Returns the limits that held for a run at last: those of its start, or those with which it was continued, and what people
/// added to them.
fn recorded_limits(begun: &RunStart, events: &[Arc<Event>]) -> Limits {
    let mut recorded = begun.limits.clone();
    for event in events {
        match &event.body {
            EventBody::RunResumed { limits: Some(limits), .. } => recorded = limits.clone(),
            EventBody::BudgetExtended { limit_of, what, by } if limit_of.is_empty() => {
                extend(&mut recorded, *what, *by);
            }
            _ => {}
        }
    }
    recorded
}

fn stricter(one: ApprovalMode, other: ApprovalMode) -> ApprovalMode {
    let strictness = |mode| match mode {
        ApprovalMode::ApproveAll => 0,
        ApprovalMode::Prompt => 1,
        // Both ask. One that leaves questions open may do so wherever it is resumed.
        ApprovalMode::Park => 2,
        ApprovalMode::RejectAll => 3,
    };
    if strictness(one) >= strictness(other) { one } else { other }
}
