//! Calls that a person cancels: one branch ends, and everything beside it goes on.
//!
//! A run that is cancelled halts, and its open calls have no end in the record. A call that is cancelled alone has one:
//! a failure, which its caller reads, and so do the calls below it, which nobody reads.

use llm_do_core::{Failure, FailureKind, Halt, HintAudience, Outcome, StepResult};

use crate::state::live::LiveCall;

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
    .with_hint_for(
        HintAudience::Caller,
        match call.cancel_state.has_started() {
            true => "go on without it; what it had done until then may remain",
            false => "go on without it; it had not begun",
        },
    );
    Ok(Outcome::Failed(failure))
}

/// How a call ended that was interrupted below one that a person cancelled.
pub(crate) fn with_caller(call: &LiveCall) -> Option<Outcome> {
    let callers = std::iter::successors(call.parent.as_ref(), |caller| caller.parent.as_ref());
    let cancelled = callers.into_iter().find(|caller| caller.cancel_state.is_cancelled())?;
    let message = format!("the call was ended, as a person cancelled `{}`", cancelled.name);
    Some(Outcome::Failed(Failure::new(FailureKind::Cancelled, message)))
}
