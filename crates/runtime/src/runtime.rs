//! The runtime: a project with everything that its runs share.

mod builder;

use std::sync::{Arc, Weak};
use std::time::Duration;

use llm_do_core::{
    AgentSpec, ApprovalRequest, CallableAgent, Grant, Input, Key, Name, Payload, RunId, UsageByModel,
};
use serde_json::Value;

pub use self::builder::RuntimeBuilder;
use crate::project::Project;
use crate::project::link_error::LinkErrors;
use crate::record::message_log::LoggedMessage;
use crate::run::approval::ApprovalBuilder;
use crate::run::resume::{ResumeError, ResumeOptions, continue_run};
use crate::run::revocation;
use crate::run::session::Session;
use crate::run::{Run, RunBuilder};
use crate::state::broker::GrantId;
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
        continue_run(&self.shared, run, resume, |_| ()).await
    }

    /// Continues a recorded session where it was: with its messages, settings and file descriptors, the instructions and tools
    /// of this runtime, and toolset instances that are opened anew. Nobody else can continue it meanwhile.
    ///
    /// A turn that was cut off can be resumed ([`Session::resume_turn`]); the next message drops it. Grants are not restored.
    pub async fn restore_session(&self, session: RunId) -> Result<Session, ResumeError> {
        Session::restore(self.shared.clone(), session).await
    }

    /// Begins a copy of a recorded session that ends with a turn, or with its last one. The session itself stays as it is, and may
    /// be open elsewhere. Whatever happens in the copy is recorded as a session of its own.
    pub async fn fork_recorded_session(
        &self,
        session: RunId,
        last_turn: Option<u32>,
    ) -> Result<Session, ResumeError> {
        Session::fork_recorded(self.shared.clone(), session, last_turn).await
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
