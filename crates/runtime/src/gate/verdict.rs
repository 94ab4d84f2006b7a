//! Verdicts: what the gate would say to a call, before anything is asked or run.

use llm_do_core::{ApprovalRequest, DecidedBy, Failure, FailureKind, Payload};
use serde::Serialize;

use crate::state::live::LiveCall;

/// What the gate would answer.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Verdict {
    /// Whether the call would run, ask or be refused.
    pub decision: VerdictKind,
    /// Why.
    pub reason: String,
    /// The kind of failure, if the call would not run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure: Option<FailureKind>,
    /// The arguments that would run, with defaults and repairs.
    pub arguments: Payload,
    /// What the call would do.
    pub description: String,
    /// A preview such as a diff.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub preview: Option<String>,
}

/// The answers of the gate, and that there is nothing to answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum VerdictKind {
    /// It would run without a question.
    Allow,
    /// It would ask first.
    Ask,
    /// It would be refused.
    Block,
    /// It would fail, whoever allows it: there is no such tool, the arguments do not fit, a limit is reached, or the tool
    /// knows that it cannot do this.
    CannotBeDone,
}

impl VerdictKind {
    /// Returns the word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Ask => "ask",
            Self::Block => "block",
            Self::CannotBeDone => "cannot be done",
        }
    }
}

impl VerdictKind {
    fn from_failure(kind: FailureKind) -> Self {
        match kind {
            FailureKind::Blocked | FailureKind::Denied | FailureKind::Unasked | FailureKind::Access => {
                Self::Block
            }
            FailureKind::Unknown
            | FailureKind::Arguments
            | FailureKind::Context
            | FailureKind::Depth
            | FailureKind::Limit
            | FailureKind::Tool
            | FailureKind::Panic
            | FailureKind::TimedOut
            | FailureKind::Cancelled
            | FailureKind::Output
            | FailureKind::Model
            | FailureKind::Toolset => Self::CannotBeDone,
        }
    }
}

impl Verdict {
    pub(crate) fn allowed(by: &DecidedBy, request: &ApprovalRequest) -> Self {
        let reason = match by {
            DecidedBy::Definition => "the tool is pre-approved".to_owned(),
            DecidedBy::Rule => "a rule of the agent allows it".to_owned(),
            DecidedBy::Mode => "the run allows everything that must ask".to_owned(),
            DecidedBy::Grant(scope) => format!("a grant covers it: {scope}"),
            DecidedBy::Approver => "it was approved".to_owned(),
        };
        Self { reason, ..Self::new(VerdictKind::Allow, request) }
    }

    pub(crate) fn asks(request: &ApprovalRequest) -> Self {
        Self { reason: request.reason.clone(), ..Self::new(VerdictKind::Ask, request) }
    }

    pub(crate) fn refused(failure: &Failure, call: &LiveCall) -> Self {
        Self {
            decision: VerdictKind::from_failure(failure.kind),
            reason: failure.to_string(),
            failure: Some(failure.kind),
            arguments: call.input.clone(),
            description: String::new(),
            preview: None,
        }
    }

    fn new(decision: VerdictKind, request: &ApprovalRequest) -> Self {
        Self {
            decision,
            reason: String::new(),
            failure: None,
            arguments: request.arguments.clone(),
            description: request.description.clone(),
            preview: request.preview.clone(),
        }
    }
}
