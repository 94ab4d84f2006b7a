//! The runtime: a project with everything that its runs share.

mod builder;

use std::sync::{Arc, Weak};
use std::time::Duration;

use llm_do_core::{
    AgentSpec, ApprovalMode, ApprovalRequest, CallableAgent, Event, EventBody, Grant, Input, Key, Limits,
    ModelChoice, Name, Payload, ProjectChanges, RunId, RunStart, Settlement, Status, UsageByModel,
};
use serde_json::Value;
use thiserror::Error;

pub use self::builder::RuntimeBuilder;
use crate::project::Project;
use crate::project::link_error::LinkErrors;
use crate::record::changes::{changes_since, recorded_state};
use crate::record::message_log::LoggedMessage;
use crate::record::store::StoreError;
use crate::record::unknown::{UnknownCall, unknown_calls};
use crate::run::approval::ApprovalBuilder;
use crate::run::ending::result_of;
use crate::run::revocation;
use crate::run::session::Session;
use crate::run::{Options, Run, RunBuilder, merged, start};
use crate::state::broker::GrantId;
use crate::state::run_state::extend;
use crate::state::shared::Shared;

/// How long a shutdown waits for blocking code that cannot be stopped.
const SHUTDOWN_LIMIT: Duration = Duration::from_secs(10);

/// Runs the agents, tools and entries of a project.
///
/// Cloning it gives another handle to the same runtime. Grants and usage live as long as it does.
#[derive(Clone)]
pub struct Runtime {
    shared: Arc<Shared>,
}

impl Runtime {
    /// Begins a runtime for a project.
    pub fn builder(project: Project) -> RuntimeBuilder {
        RuntimeBuilder::new(project)
    }

    /// Runs an agent, tool or entry by name.
    pub fn run(&self, name: impl Into<Name>, input: impl Into<Input>) -> RunBuilder {
        RunBuilder::new(self.shared.clone(), name.into(), input.into())
    }

    /// Asks for the approval of an effect that the embedding program is about to have, outside any call.
    pub fn approve(&self, name: impl Into<Name>, payload: impl Into<Value>) -> ApprovalBuilder {
        ApprovalBuilder::new(self.shared.clone(), name.into(), Payload::new(payload.into()))
    }

    /// Begins a conversation of several turns with memory.
    pub fn session(&self, name: impl Into<Name>) -> Session {
        Session::new(self.shared.clone(), name.into())
    }

    /// Continues a recorded run, in its own approval mode or a stricter one, and within its own limits. What is
    /// recorded as done is not done again. The approver, models and context are those of this runtime.
    pub async fn resume(&self, run: RunId) -> Result<Run, ResumeError> {
        self.resume_with(run, ResumeOptions::default()).await
    }

    /// As [`resume`](Self::resume), with other options than the record has.
    pub async fn resume_with(&self, run: RunId, resume: ResumeOptions) -> Result<Run, ResumeError> {
        let claimed = {
            let _recorded = self.shared.appending.lock().await;
            self.shared.store.claim(run).await?
        };
        let begun = claimed.events.iter().find_map(|event| match &event.body {
            EventBody::RunStarted(begun) => Some((begun.clone(), event.call.agent.clone())),
            _ => None,
        });
        let (begun, agent) = begun.ok_or(ResumeError::NotStarted { run })?;
        if let Some((status, error)) = result_of(&claimed.events, begun.ordinal) {
            return Err(ResumeError::Ended { run, status, error });
        }
        let mode = stricter(begun.mode, self.shared.mode);
        let mut options = Options { mode: Some(mode), ..Options::from_record(&begun, agent) };
        options.limits = recorded_limits(&begun, &claimed.events);
        if let Some(limits) = resume.limits {
            options.limits = merged(limits, &options.limits);
            options.new_limits = Some(options.limits.clone());
        }
        options.entry_model = resume.entry_model.or(options.entry_model);
        options.timeout = resume.timeout;
        options.settled = settled(run, &claimed.events, resume.settlements)?;
        options.changes = self.changes(&claimed.events).await?;
        if resume.on_changes == OnChanges::Refuse && options.changes.need_decision() {
            return Err(ResumeError::Changed { run, changes: Box::new(options.changes) });
        }
        Ok(start(self.shared.clone(), run, begun.entry, begun.input, options, Some(claimed)))
    }

    /// Returns what is different from the time when a recorded run was last started or continued, files included if both
    /// sides know them.
    async fn changes(&self, events: &[Arc<Event>]) -> Result<ProjectChanges, StoreError> {
        let mut changes = changes_since(events, &self.shared.project_state(), &self.shared.project);
        let earlier = recorded_state(events).and_then(|state| state.bundle);
        if let (Some(earlier), Some((digest, bundle))) = (earlier, &self.shared.bundle)
            && earlier != *digest
        {
            match self.shared.store.bundle(earlier).await? {
                Some(earlier) => changes.files = bundle.changes_since(&earlier),
                None => changes.unnamed = true,
            }
        }
        Ok(changes)
    }

    /// Returns a context value that was provided to the runtime.
    pub fn provided<T: Send + Sync + 'static>(&self) -> Option<Arc<T>> {
        self.shared.context.get()
    }

    /// Returns the definitions of all agents that can be called now, those included that were added.
    pub fn agents(&self) -> Vec<CallableAgent> {
        self.shared.callable_agents(|_| true)
    }

    /// Adds an agent, which can be called by name at once, or puts it in the place of a generated one. A call
    /// that runs keeps the agent with which it began.
    pub fn add_agent(&self, spec: AgentSpec) -> Result<(), LinkErrors> {
        self.shared.add_agent(spec, None)
    }

    /// Lists the grants that people gave.
    pub fn grants(&self) -> Vec<(GrantId, Grant)> {
        self.shared.broker.grants()
    }

    /// Takes a grant back; says whether it was there. That is recorded with the run in which it was given: if the run is
    /// continued, here or in another process, it has the grant no more.
    pub fn revoke(&self, grant: GrantId) -> bool {
        let Some((run, grant)) = self.shared.broker.revoke(grant) else { return false };
        revocation::record(&self.shared, run, grant);
        true
    }

    /// Cancels one call of a run and everything below it; says whether it was running. The rest of the run goes on.
    ///
    /// The caller, a model or code, reads that a person cancelled it ([`FailureKind::Cancelled`]), once everything below
    /// it has ended. Where this returns `true`, the call gives nothing else, even if it was just about to. A question that
    /// it waited for is withdrawn. What it had done is not undone. Cancelling the call that the run was started for
    /// cancels the run, as [`Run::cancel`] does.
    ///
    /// [`FailureKind::Cancelled`]: llm_do_core::FailureKind::Cancelled
    pub fn cancel_call(&self, run: RunId, call: &Key) -> bool {
        let running = self.shared.running.lock().get(&run).and_then(Weak::upgrade);
        running.is_some_and(|run| run.cancel_call(call))
    }

    /// Lists the approval requests that wait for an answer, oldest first.
    pub fn open_requests(&self) -> Vec<Arc<ApprovalRequest>> {
        self.shared.broker.open_requests()
    }

    /// Returns what all runs used, per model.
    pub fn usage(&self) -> UsageByModel {
        self.shared.usage.lock().clone()
    }

    /// Returns the messages of all agent calls of runs that have ended, nested calls included, oldest first. Empty
    /// unless the runtime was built with [`keep_messages`](RuntimeBuilder::keep_messages).
    pub fn messages(&self) -> Vec<LoggedMessage> {
        self.shared.messages.list()
    }

    /// Lists the paths of blocking tools that outlived their calls and still run.
    pub fn still_running(&self) -> Vec<String> {
        self.shared.still_running.list()
    }

    /// Waits until the readers of all runs that have ended have read everything. A run in progress is waited for.
    pub async fn readers_done(&self) {
        self.shared.readings.done().await;
    }

    /// Waits until every run has ended, and for blocking code as long as is reasonable.
    pub async fn shutdown(self) {
        self.shared.tasks.close();
        self.shared.tasks.wait().await;
        let _ = tokio::time::timeout(SHUTDOWN_LIMIT, self.shared.still_running.none()).await;
    }
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
    /// The store does not give it out.
    #[error(transparent)]
    Store(#[from] StoreError),
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
