//! Steps, and who performs them.
//!
//! A *scope* (an agent call, the dispatch of one call) contains further steps; on a resume it is entered
//! again and finds its own steps done. A *leaf* (model request, gate decision, effect, sample) is done at
//! most once, or again where its effect allows it. All steps are data, so that the same loops run on the
//! embedded engine and on any other one.

use std::sync::Arc;

use futures::future::BoxFuture;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    Digest, Effect, Failure, FailureKind, Grant, Head, Key, ModelError, ModelResponse, Name, Output, Payload,
    Sample, Scope,
};

/// One unit of work.
#[derive(Debug, Clone)]
pub struct Step {
    /// Its place in the run.
    pub key: Key,
    /// The call in which it is done.
    pub call: Key,
    /// What kind of step it is.
    pub kind: StepKind,
    /// The name of what is called, asked or done.
    pub name: Name,
    /// What it is given.
    pub payload: Payload,
    /// Whether it may be repeated.
    pub effect: Effect,
}

/// The kinds of steps.
#[derive(Debug, Clone, PartialEq)]
pub enum StepKind {
    /// Scope: the loop of one agent.
    Agent {
        /// What its attachments must be unchanged.
        precondition: Option<Value>,
    },
    /// Scope: one call from resolving its name to its result.
    Call {
        /// Who asked for it.
        origin: CallOrigin,
        /// Whether the called agent begins with the conversation of the one in whose name it is called.
        fork: bool,
    },
    /// Leaf: one model request.
    Model {
        /// The history that it continues.
        head: Head,
        /// The ordinal of the turn.
        turn: u32,
    },
    /// Leaf: may the call run?
    Gate {
        /// Why, where the asker gives a reason of its own.
        reason: Option<String>,
    },
    /// Leaf: the effect of a tool or entry.
    Effect {
        /// The digest of the arguments that the gate allowed.
        permit: Digest,
        /// What the tool must find unchanged.
        precondition: Option<Value>,
    },
    /// Leaf: a value from outside.
    Sample(Sample),
}

/// Who asks for a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CallOrigin {
    /// A model, which may name what its agent lists.
    Model,
    /// Code of a tool or entry, which may also name any agent.
    Code,
    /// The embedding program, outside any agent.
    Embedder,
}

/// What performing a step gives: an outcome that is recorded and answered, or a halt that is neither.
pub type StepResult = Result<Outcome, Halt>;

/// How a step ended.
#[derive(Debug, Clone)]
pub enum Outcome {
    /// A call gave a value.
    Value(Output),
    /// A call or request failed; the caller can act on it.
    Failed(Failure),
    /// A model answered.
    Response(Arc<ModelResponse>),
    /// The gate decided.
    Decision(Arc<Decision>),
    /// A sample was taken.
    Sample(u64),
}

impl Outcome {
    /// Reads the outcome of a call.
    pub fn into_output(self) -> Result<Output, Failure> {
        match self {
            Self::Value(output) => Ok(output),
            Self::Failed(failure) => Err(failure),
            other => Err(other.misplaced()),
        }
    }

    /// Reads the outcome of a gate decision.
    pub fn into_permit(self) -> Result<Arc<Permit>, Failure> {
        match self {
            Self::Decision(decision) => match &*decision {
                Decision::Allow(permit) => Ok(permit.clone()),
                Decision::Refuse(failure) => Err(failure.clone()),
            },
            Self::Failed(failure) => Err(failure),
            other => Err(other.misplaced()),
        }
    }

    /// Reads the outcome of a model request.
    pub fn into_response(self) -> Result<Arc<ModelResponse>, Failure> {
        match self {
            Self::Response(response) => Ok(response),
            Self::Failed(failure) => Err(failure),
            other => Err(other.misplaced()),
        }
    }

    /// Reads the outcome of a sample.
    pub fn into_sample(self) -> u64 {
        if let Self::Sample(sample) = self { sample } else { 0 }
    }

    fn misplaced(&self) -> Failure {
        Failure::new(FailureKind::Tool, format!("a step ended in an outcome of another kind: {self:?}"))
    }
}

/// What the gate decided about one call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "decision", rename_all = "snake_case")]
pub enum Decision {
    /// The call may run, with exactly these arguments.
    Allow(Arc<Permit>),
    /// It may not, and why.
    Refuse(Failure),
}

/// Permission for one call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Permit {
    /// The final arguments.
    pub arguments: Payload,
    /// Their digest.
    pub digest: Digest,
    /// Who or what allowed it.
    pub by: DecidedBy,
    /// Whether a person changed the arguments.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub edited: bool,
    /// What was repaired before anybody was asked.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub repairs: Vec<String>,
    /// What the tool must find unchanged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub precondition: Option<Value>,
    /// The grant that came with it, where a person gave one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grant: Option<Box<Grant>>,
}

/// Who or what allowed a call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DecidedBy {
    /// The definition or the tool's own judgment.
    Definition,
    /// A rule of the agent.
    Rule,
    /// The mode of the run.
    Mode,
    /// A grant given earlier.
    Grant(Scope),
    /// The approver.
    Approver,
}

/// Why a run cannot go on from here. Never recorded as a result, never seen by a model or by tool code.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Halt {
    /// The run was cancelled.
    #[error("interrupted")]
    Interrupted,
    /// A person stopped the run at an approval.
    #[error("stopped at the approval of `{name}`")]
    Stopped {
        /// What was to be approved.
        name: Name,
    },
    /// A call was denied, and the project says that this ends the run.
    #[error("{0}")]
    Denied(Failure),
    /// A call waits for an answer that nobody gives now. What runs beside it goes on.
    #[error("`{name}` ({id}) waits for an answer")]
    Parked {
        /// The id of the question.
        id: Key,
        /// What is to be approved.
        name: Name,
    },
    /// The wall time of the run is over.
    #[error("the time limit of the run is over")]
    TimedOut,
    /// A call begun before cannot be proven not to have happened.
    #[error("the outcome of `{name}` ({key}) is unknown: it was begun and may have happened")]
    Unknown {
        /// The call.
        key: Key,
        /// Its name.
        name: Name,
    },
    /// The record cannot be written.
    #[error("the record is broken: {0}")]
    Record(String),
    /// A budget of the whole run, or a limit that protects it, is used up.
    #[error("{0}")]
    Limit(Failure),
    /// The provider stays down.
    #[error("{0}")]
    Provider(ModelError),
}

/// What loops see of an engine.
pub trait Engine: Send + Sync {
    /// Performs one step.
    fn perform(&self, step: Step) -> BoxFuture<'_, StepResult>;

    /// Performs several scopes at once. All have ended when it returns; results are in the order given.
    fn perform_all(&self, steps: Vec<Step>) -> BoxFuture<'_, Vec<StepResult>>;
}
