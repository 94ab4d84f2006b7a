//! Calls that a person cancels: one branch ends, and everything beside it goes on.
//!
//! A run that is cancelled halts, and its open calls have no end in the record. A call that is cancelled alone has one:
//! a failure, which its caller reads, and so do the calls below it, which nobody reads.

use llm_do_core::{Failure, FailureKind, Halt, Outcome, Performed};

use crate::live::LiveCall;
use crate::sync::Mutex;

/// Where a call stands. A person cancels it before it has ended, or not at all.
#[derive(Debug, Default)]
pub(crate) struct Standing(Mutex<Stage>);

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Stage {
    #[default]
    Running,
    Cancelled,
    Ended,
}

impl Standing {
    /// Marks a call as cancelled, unless it has ended; says whether it is.
    pub(crate) fn cancel(&self) -> bool {
        let mut stage = self.0.lock();
        if *stage == Stage::Running {
            *stage = Stage::Cancelled;
        }
        *stage == Stage::Cancelled
    }

    /// Marks a call as ended, unless it was cancelled; says whether it was.
    fn end(&self) -> bool {
        let mut stage = self.0.lock();
        if *stage == Stage::Running {
            *stage = Stage::Ended;
        }
        *stage == Stage::Cancelled
    }

    fn is_cancelled(&self) -> bool {
        *self.0.lock() == Stage::Cancelled
    }
}

/// What came of a call, which was cancelled where a person did so before its end. A halt for another reason wins.
pub(crate) fn unless_cancelled(call: &LiveCall, performed: Performed) -> Performed {
    if !call.standing.end() {
        return performed;
    }
    let name = &call.name;
    let words = match performed {
        Err(Halt::Interrupted) => String::new(),
        Err(halt) => return Err(halt),
        Ok(Outcome::Failed(failure)) => format!(": {}", failure.message),
        // What was done is done: the caller learns it, so that nobody does it again.
        Ok(Outcome::Value(output)) => format!(", though it had answered already: {}", output.to_text()),
        Ok(_) => String::new(),
    };
    let failure = Failure::new(
        FailureKind::Cancelled,
        format!("the call of `{name}` was cancelled by a person{words}"),
    )
    .with_hint("go on without it; what it had done until then may remain");
    Ok(Outcome::Failed(failure))
}

/// How a call ended that was interrupted below one that a person cancelled.
pub(crate) fn with_caller(call: &LiveCall) -> Option<Outcome> {
    let callers = std::iter::successors(call.parent.as_ref(), |caller| caller.parent.as_ref());
    let cancelled = callers.into_iter().find(|caller| caller.standing.is_cancelled())?;
    let message = format!("the call was ended, as a person cancelled `{}`", cancelled.name);
    Some(Outcome::Failed(Failure::new(FailureKind::Cancelled, message)))
}
