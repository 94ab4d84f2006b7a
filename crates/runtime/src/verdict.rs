//! Verdicts: what the gate would say to a call, before anything is asked or run.

use llm_do_core::{ApprovalRequest, DecidedBy, Failure, Payload};
use serde::Serialize;

use crate::live::LiveCall;

/// What the gate would answer.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Verdict {
    /// Whether the call would run, ask or be refused.
    pub decision: VerdictKind,
    /// Why.
    pub reason: String,
    /// The arguments that would run, with defaults and repairs.
    pub arguments: Payload,
    /// What the call would do.
    pub description: String,
    /// A preview such as a diff.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub preview: Option<String>,
}

/// The three answers of the gate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum VerdictKind {
    /// It would run without a question.
    Allow,
    /// It would ask first.
    Ask,
    /// It would be refused.
    Block,
}

impl VerdictKind {
    /// Returns the word.
    pub fn word(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Ask => "ask",
            Self::Block => "block",
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
        Self { reason, ..Self::of(VerdictKind::Allow, request) }
    }

    pub(crate) fn asks(request: &ApprovalRequest) -> Self {
        Self { reason: request.reason.clone(), ..Self::of(VerdictKind::Ask, request) }
    }

    pub(crate) fn refused(failure: &Failure, call: &LiveCall) -> Self {
        Self {
            decision: VerdictKind::Block,
            reason: failure.to_string(),
            arguments: call.input.clone(),
            description: String::new(),
            preview: None,
        }
    }

    fn of(decision: VerdictKind, request: &ApprovalRequest) -> Self {
        Self {
            decision,
            reason: String::new(),
            arguments: request.arguments.clone(),
            description: request.description.clone(),
            preview: request.preview.clone(),
        }
    }
}
