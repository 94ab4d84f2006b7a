//! Asks a person for more when a budget runs out. No mode, grant or ready-made approver answers this.

use std::panic::AssertUnwindSafe;

use futures::FutureExt;
use llm_do_core::{EventBody, ExtensionRequest, Failure, FailureKind, Halt, HintAudience, Key};

use crate::budget::{Budget, BudgetRefusal, CeilingId};
use crate::state::live::LiveCall;
use crate::state::run_state::RunState;
use crate::state::step_error::StepError;
use crate::state::stopwatch::Activity;

/// Counts a call against the budget, asking for more where it is used up.
pub(crate) async fn count_tool_call(run: &RunState, call: &LiveCall) -> Result<(), StepError> {
    loop {
        let Err(refusal) = run.budget.count_tool_call(call.callers_frame().ceiling) else { return Ok(()) };
        if !extended(run, call, &refusal).await? {
            let failure = Failure::new(FailureKind::Limit, refusal.exhausted.to_string());
            let hint = format!("answer with what there is; {}", refusal.exhausted.setting());
            return Err(failure.with_hint_for(HintAudience::Caller, hint).into());
        }
    }
}

/// Counts a model request against the budget, asking for more where it is used up.
pub(crate) async fn count_request(run: &RunState, call: &LiveCall) -> Result<(), StepError> {
    loop {
        let Err(refusal) = run.budget.count_request(call.frame().ceiling) else { return Ok(()) };
        if !extended(run, call, &refusal).await? {
            return Err(exhausted(&refusal));
        }
    }
}

/// Asks whether the budget may grow, and lets it grow.
pub(crate) async fn extended(run: &RunState, call: &LiveCall, refusal: &BudgetRefusal) -> Result<bool, Halt> {
    let Some(approver) = &run.options.approver else { return Ok(false) };
    let request = ExtensionRequest { path: call.info.path.to_string(), exhausted: refusal.exhausted.clone() };
    let _waiting = Activity::waiting(call.watch.as_ref());
    let asked = AssertUnwindSafe(async { approver.extend(&request).await }).catch_unwind();
    let answer = tokio::select! {
        () = call.cancel.cancelled() => return Err(Halt::Interrupted),
        () = crate::timing::after(run.shared.approver_limit) => return Ok(false),
        answer = asked => answer,
    };
    let more = match answer {
        Ok(Some(more)) if more > 0 => more,
        _ => return Ok(false),
    };
    let what = refusal.exhausted.what;
    run.budget.extend(refusal.ceiling, what, more);
    let limit_of = limited_call(call, refusal.ceiling);
    run.note(call, &call.info.id, EventBody::BudgetExtended { limit_of, what, by: more });
    run.notice(&call.info, format!("{} extended by {}", request.exhausted, what.show(more)));
    Ok(true)
}

/// Returns the call that a ceiling was made for: the outermost one below it.
fn limited_call(call: &LiveCall, ceiling: CeilingId) -> Key {
    let callers = std::iter::successors(Some(call), |call| call.parent.as_deref());
    let limited = callers.filter(|call| call.frame().ceiling == ceiling).last();
    limited.map_or_else(Key::root, |call| call.info.id.clone())
}

/// A budget of the run ends the run; one of an agent is an answer at that level.
pub(crate) fn exhausted(refusal: &BudgetRefusal) -> StepError {
    let failure = Failure::new(FailureKind::Limit, refusal.exhausted.to_string());
    let failure = failure.with_hint(refusal.exhausted.setting());
    if refusal.ceiling == Budget::ROOT { Halt::Limit(failure).into() } else { failure.into() }
}
