//! Why a step has no value.

use llm_do_core::{Failure, Halt};

/// Why a step has no value: a failure that its caller can act on, or a halt of the whole run.
pub(crate) enum StepError {
    Refused(Failure),
    Halted(Halt),
}

impl From<Failure> for StepError {
    fn from(failure: Failure) -> Self {
        Self::Refused(failure)
    }
}

impl From<Halt> for StepError {
    fn from(halt: Halt) -> Self {
        Self::Halted(halt)
    }
}
