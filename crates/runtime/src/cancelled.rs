//! Calls that a person cancels: one branch ends, and everything beside it goes on.
//!
//! A run that is cancelled halts, and its open calls have no end in the record. A call that is cancelled alone has one:
//! a failure, which its caller reads, and so do the calls below it, which nobody reads.

use std::sync::atomic::{AtomicBool, Ordering};

use llm_do_core::{Failure, FailureKind, Halt, Outcome, StepResult};

use crate::live::LiveCall;
use crate::sync::Mutex;

/// Where a call stands. A person cancels it before it has ended, or not at all.
#[derive(Debug, Default)]
pub(crate) struct CancelState {
    stage: Mutex<Stage>,
    /// Whether it was let pass: before that it has done nothing.
    has_begun: AtomicBool,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Stage {
    #[default]
    Running,
    Cancelled,
    Ended,
}

impl CancelState {
    /// Marks a call as let pass.
    pub(crate) fn begin(&self) {
        self.has_begun.store(true, Ordering::Relaxed);
    }

    /// Returns whether the call was let pass.
    pub(crate) fn has_begun(&self) -> bool {
        self.has_begun.load(Ordering::Relaxed)
    }

    /// Marks a call as cancelled, unless it has ended; says whether it is.
    pub(crate) fn cancel(&self) -> bool {
        let mut stage = self.stage.lock();
        if *stage == Stage::Running {
            *stage = Stage::Cancelled;
        }
        *stage == Stage::Cancelled
    }

    /// Marks a call as ended, unless it was cancelled; says whether it was.
    fn end(&self) -> bool {
        let mut stage = self.stage.lock();
        if *stage == Stage::Running {
            *stage = Stage::Ended;
        }
        *stage == Stage::Cancelled
    }

    fn is_cancelled(&self) -> bool {
        *self.stage.lock() == Stage::Cancelled
    }
}

/// What came of a call, which was cancelled where a person did so before its end. A halt for another reason wins.
pub(crate) fn unless_cancelled(call: &LiveCall, performed: StepResult) -> StepResult {
    if !call.cancel_state.end() {
        return performed;
    }
    let name = &call.name;
    let message = match performed {
        Err(Halt::Interrupted) => String::new(),
        Err(halt) => return Err(halt),
        Ok(Outcome::Failed(failure)) => format!(": {}", failure.message),
        // What was done is done: the caller learns it, so that nobody does it again.
        Ok(Outcome::Value(output)) => format!(", though it had answered already: {}", output.to_text()),
        Ok(_) => String::new(),
    };
    let failure = Failure::new(
        FailureKind::Cancelled,
        format!("the call of `{name}` was cancelled by a person{message}"),
    )
    .with_hint(match call.cancel_state.has_begun() {
        true => "go on without it; what it had done until then may remain",
        false => "go on without it; it had not begun",
    });
    Ok(Outcome::Failed(failure))
}

/// How a call ended that was interrupted below one that a person cancelled.
pub(crate) fn with_caller(call: &LiveCall) -> Option<Outcome> {
    let callers = std::iter::successors(call.parent.as_ref(), |caller| caller.parent.as_ref());
    let cancelled = callers.into_iter().find(|caller| caller.cancel_state.is_cancelled())?;
    let message = format!("the call was ended, as a person cancelled `{}`", cancelled.name);
    Some(Outcome::Failed(Failure::new(FailureKind::Cancelled, message)))
}
