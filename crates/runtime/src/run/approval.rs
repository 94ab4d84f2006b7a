//! Approvals for code outside any call: the embedding program puts an effect of its own to the gate.
//!
//! Rules, mode, grants, approver and events are those of the runtime. Nothing is written to the store, because there is
//! nothing to resume: the effect belongs to the program.

use std::future::IntoFuture;
use std::sync::Arc;

use futures::future::BoxFuture;
use llm_do_core::{Approver, Failure, FailureKind, Name, Payload};

use super::{Options, RunError, RunReport, block_on, start};
use crate::state::shared::Shared;

/// An approval that is about to be asked for. Awaiting it returns exactly what was allowed.
#[must_use = "an approval is asked for when it is awaited"]
pub struct ApprovalBuilder {
    shared: Arc<Shared>,
    name: Name,
    payload: Payload,
    options: Options,
}

impl ApprovalBuilder {
    pub(crate) fn new(shared: Arc<Shared>, name: Name, payload: Payload) -> Self {
        let reason = Some(format!("`{name}` must ask before it runs"));
        let options = Options { ordinal: 1, reason, ..Options::default() };
        Self { shared, name, payload, options }
    }

    /// Sets the reason that the approver reads.
    pub fn reason(mut self, reason: impl Into<String>) -> Self {
        self.options.reason = Some(reason.into());
        self
    }

    /// Asks in the name of an agent: its rules apply.
    pub fn as_agent(mut self, agent: impl Into<Name>) -> Self {
        self.options.agent = Some(agent.into());
        self
    }

    /// Sets who answers, instead of the approver of the runtime.
    pub fn approver(mut self, approver: impl Approver + 'static) -> Self {
        self.options.approver = Some(Arc::new(approver));
        self
    }

    /// Waits for the answer on an executor of its own, for programs that are not async.
    pub fn blocking(self) -> Result<Payload, Failure> {
        let run = async move { self.await };
        block_on(run).unwrap_or_else(|error| Err(Failure::new(FailureKind::Tool, error)))
    }
}

impl IntoFuture for ApprovalBuilder {
    type Output = Result<Payload, Failure>;
    type IntoFuture = BoxFuture<'static, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move {
            let id = self.shared.new_run_id();
            allowed(start(self.shared, id, self.name, self.payload, self.options, None).await)
        })
    }
}

fn allowed(ended: Result<RunReport, RunError>) -> Result<Payload, Failure> {
    match ended {
        Ok(report) => Ok(Payload::new(report.output.map(|output| output.to_value()).unwrap_or_default())),
        Err(error) => {
            let stopped = || Failure::new(FailureKind::Cancelled, error.to_string());
            Err(error.report.failure.clone().unwrap_or_else(stopped))
        }
    }
}
