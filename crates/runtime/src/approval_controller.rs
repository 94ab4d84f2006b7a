//! Approvals for a program that has no project of its own.

use llm_do_core::{AgentSpec, Approval, ApprovalMode, Approver, Failure, Grant, Name, Payload};
use serde_json::Value;

use crate::project::Project;
use crate::project::link_error::LinkErrors;
use crate::run::approval::ApprovalBuilder;
use crate::runtime::{Runtime, RuntimeBuilder};
use crate::state::broker::GrantId;

/// The name in which a controller asks.
const CONTROLLER: &str = "program";

/// Asks for approvals on behalf of a program that has no project: rules, an approver, and grants for the session.
///
/// ```
/// use llm_do_core::{Answer, Approval, ApprovalRequest, Scope};
/// use llm_do_runtime::ApprovalController;
/// use serde_json::json;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let controller = ApprovalController::builder()
///     .rule("sandbox.read", Approval::PreApproved)
///     .approver(|_request: ApprovalRequest| Answer::Session(Scope::Exact)) // do not ask again for the same operation
///     .build()?;
/// let payload = json!({"path": "output/file.txt"});
/// let written = controller.maybe_run_blocking("sandbox.write", payload, |allowed| allowed.to_string())?;
/// assert_eq!(written, r#"{"path":"output/file.txt"}"#);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct ApprovalController {
    runtime: Runtime,
}

impl ApprovalController {
    /// Begins a controller. What no rule names must ask.
    pub fn builder() -> ApprovalControllerBuilder {
        ApprovalControllerBuilder {
            spec: AgentSpec::new(CONTROLLER, ""),
            configure: Box::new(|builder| builder),
        }
    }

    /// Asks for an approval and returns what was allowed: a person may have edited it.
    pub fn approve(&self, name: impl Into<Name>, payload: impl Into<Value>) -> ApprovalBuilder {
        self.runtime.approve(name, payload).as_agent(CONTROLLER)
    }

    /// Runs a function with what was allowed, or returns why it may not run.
    pub async fn maybe_run<T>(
        &self,
        name: impl Into<Name>,
        payload: impl Into<Value>,
        function: impl FnOnce(Payload) -> T,
    ) -> Result<T, Failure> {
        self.approve(name, payload).await.map(function)
    }

    /// Does the same for programs that are not async.
    pub fn maybe_run_blocking<T>(
        &self,
        name: impl Into<Name>,
        payload: impl Into<Value>,
        function: impl FnOnce(Payload) -> T,
    ) -> Result<T, Failure> {
        self.approve(name, payload).blocking().map(function)
    }

    /// Lists what was granted for the session.
    pub fn grants(&self) -> Vec<(GrantId, Grant)> {
        self.runtime.grants()
    }

    /// Takes a grant back; returns whether it was there.
    pub fn revoke(&self, grant: GrantId) -> bool {
        self.runtime.revoke(grant)
    }
}

/// Collects the rules and the approver of an [`ApprovalController`].
#[must_use]
pub struct ApprovalControllerBuilder {
    spec: AgentSpec,
    configure: Box<dyn FnOnce(RuntimeBuilder) -> RuntimeBuilder>,
}

impl ApprovalControllerBuilder {
    /// Adds a rule for a name or a glob. The strictest of all that match applies.
    pub fn rule(mut self, pattern: impl Into<String>, approval: Approval) -> Self {
        self.spec = self.spec.rule(pattern, approval);
        self
    }

    /// Sets who answers. Without an approver, what must ask is denied.
    pub fn approver(self, approver: impl Approver + 'static) -> Self {
        self.configured(|builder| builder.approver(approver))
    }

    /// Sets whether to ask, to allow or to deny what must ask.
    pub fn mode(self, mode: ApprovalMode) -> Self {
        self.configured(move |builder| builder.approval_mode(mode))
    }

    /// Checks the rules.
    pub fn build(self) -> Result<ApprovalController, LinkErrors> {
        // The rules name effects of the program, which no project knows.
        let project = Project::builder().agent(self.spec).with_unchecked_rules().build()?;
        let runtime = (self.configure)(Runtime::builder(project)).build()?;
        Ok(ApprovalController { runtime })
    }

    fn configured(self, change: impl FnOnce(RuntimeBuilder) -> RuntimeBuilder + 'static) -> Self {
        let configure = self.configure;
        Self { configure: Box::new(|builder| change(configure(builder))), ..self }
    }
}
