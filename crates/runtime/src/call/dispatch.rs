//! The dispatcher: one call from its name to its result.
//!
//! Every call of every kind goes through [`call`], whoever makes it: a model, the code of a tool or entry,
//! the embedding program.

use std::sync::Arc;

use llm_do_core::{
    Access, CallOrigin, CallResult, Content, Effect, EventBody, Failure, FailureKind, Halt, Key, NeedSpec,
    Outcome, Output, Payload, Permit, Step, StepKind, StepResult,
};
use tokio::time::Instant;

use crate::call::cancelled;
use crate::call::effect;
use crate::call::unresolved;
use crate::descriptors::Descriptors;
use crate::input::attachments;
use crate::project::plan::{CallTarget, TargetKind};
use crate::state::control;
use crate::state::live::LiveCall;
use crate::state::run_state::RunState;
use crate::state::scope::RunScope;
use crate::timing::{milliseconds, whole_milliseconds};

/// Performs one call: resolve, decide, execute, record.
pub(crate) async fn call(scope: &RunScope, step: &Step, origin: CallOrigin, fork: bool) -> StepResult {
    let run = &scope.run;
    let caller = run.live(&step.call)?;
    let started = Instant::now();

    let target = if fork { resolve_itself(run, step) } else { resolve(run, &caller, step, origin) };
    // The time limit of a run is that of its top call.
    let run_limit = run.options.limits.time.filter(|_| origin == CallOrigin::Embedder);
    let live = LiveCall::below(&caller, step, origin, target.as_ref().ok().cloned(), run_limit);
    let registered = run.register(Arc::new(live));
    let call = &registered.call;
    run.restore_running_time(call);
    begin(run, call);

    let performed = match target {
        Ok(_) => permitted(scope, call).await,
        Err(failure) => Ok(Outcome::Failed(failure)),
    };
    let performed = cancelled::unless_cancelled(call, performed);
    if performed.is_err() && call.cancel_state.has_started() {
        run.mark_interrupted(&step.key);
    }
    match &performed {
        Ok(outcome) => finish(run, call, outcome, started),
        Err(Halt::Interrupted) => {
            if let Some(outcome) = cancelled::with_caller(call) {
                finish(run, call, &outcome, started);
            }
        }
        Err(_) => {}
    }
    performed
}

/// Does a recorded call once more whose effect was in the memory of the agent call alone: its descriptors.
///
/// Its answer is recorded; what it changed in the table is not. A tool that changes more than the table, such as one that
/// writes a text to a file, is not run again.
pub(crate) async fn do_over(scope: &RunScope, caller: &Arc<LiveCall>, step: &Step, origin: CallOrigin) {
    let run = &scope.run;
    let Ok(target) = resolve(run, caller, step, origin) else { return };
    let is_in_memory = target.definition.needs.contains(&NeedSpec::typed::<Descriptors>())
        && target.own_access() == Access::Read
        && target.definition.effect.may_repeat();
    let permit = run.replay.as_ref().and_then(|replay| replay.permit_of(&step.key));
    let (Some(permit), true) = (permit, is_in_memory) else { return };
    let effect = target.definition.effect;
    let live = LiveCall::below(caller, step, origin, Some(target), None);
    let registered = run.register(Arc::new(live));
    let kind = StepKind::Effect { permit: permit.digest, precondition: permit.precondition.clone() };
    let again = step_of(&registered.call, step.key.clone(), kind, permit.arguments.clone(), effect);
    let Ok(leaf) = run.in_flight.leaf(&registered.call).await else { return };
    let precondition = permit.precondition.clone();
    let _ = effect::run(scope, &registered.call, &again, permit.digest, precondition, leaf).await;
}

/// Finds an agent that forks itself. A child takes a text, whatever the agent takes.
fn resolve_itself(run: &RunState, step: &Step) -> Result<CallTarget, Failure> {
    let target = run.shared.agent_target(&step.name);
    let gone = || Failure::new(FailureKind::Unknown, format!("there is no agent `{}`", step.name));
    target.map(CallTarget::taking_text).ok_or_else(gone)
}

/// Resolves a name. A model may name what its agent lists or has created; code also any agent.
pub(crate) fn resolve(
    run: &RunState,
    caller: &LiveCall,
    step: &Step,
    origin: CallOrigin,
) -> Result<CallTarget, Failure> {
    let (shared, plan) = (&run.shared, &caller.frame().plan);
    let is_agent = |target: &CallTarget| matches!(target.kind, TargetKind::Agent);
    let listed = match origin {
        CallOrigin::Model => plan.target(&step.name),
        CallOrigin::Code | CallOrigin::Embedder => plan.target_for_code(&step.name),
    };
    let found = match listed {
        // Another agent may have come in the place of the one that was listed.
        Some(listed) if is_agent(listed) => {
            shared.created_target(&step.name).or_else(|| Some(listed.clone()))
        }
        Some(tool) => Some(tool.clone()),
        None if origin == CallOrigin::Model && !shared.was_created_by(&plan.owner(), &step.name) => None,
        None => shared.agent_target(&step.name),
    };
    if let Some(steering) = found.as_ref().filter(|target| target.definition.control.is_some())
        && origin != CallOrigin::Model
    {
        return Err(control::for_models_only(&steering.definition.name));
    }
    let callable = found.filter(|target| !is_agent(target) || plan.may_call_agent(&step.name));
    callable.ok_or_else(|| unresolved::explain(shared, plan, &step.name, origin))
}

fn begin(run: &RunState, call: &LiveCall) {
    if run.replay.as_ref().is_some_and(|replay| replay.was_started(&call.info.id)) {
        return;
    }
    let (kind, name, input) = (call.kind(), call.name.clone(), call.input.clone());
    run.note(
        call,
        &call.info.id,
        EventBody::CallStarted { kind, name, input, origin: call.origin, fork: call.fork },
    );
}

/// Writes the end of a call into the log.
fn finish(run: &RunState, call: &LiveCall, outcome: &Outcome, started: Instant) {
    let result = match outcome {
        Outcome::Value(output) => CallResult::Output(output.clone()),
        Outcome::Failed(failure) => CallResult::Error(failure.clone()),
        other => CallResult::Error(Failure::new(FailureKind::Tool, format!("unexpected outcome {other:?}"))),
    };
    let body = EventBody::CallFinished {
        kind: call.kind(),
        name: call.name.clone(),
        result,
        duration_ms: milliseconds(started),
        ran_ms: call.running_time().map(whole_milliseconds),
        usage: call.usage().total(),
    };
    run.note(call, &call.info.id, body);
}

/// Puts the call to the gate and executes what it allows.
async fn permitted(scope: &RunScope, call: &Arc<LiveCall>) -> StepResult {
    let key = call.info.id.child("gate");
    let gate = step_of(call, key, StepKind::Gate { reason: None }, call.input.clone(), Effect::Pure);
    let permit = match scope.perform(gate).await?.into_permit() {
        Ok(permit) => permit,
        Err(failure) => return Ok(Outcome::Failed(failure)),
    };
    call.cancel_state.mark_started();
    let outcome = execute(scope, call, &permit).await?;
    let outcome = attachments::receive(&scope.run, call, outcome).await;
    let outcome = mention_loss(call, outcome);
    Ok(match outcome {
        // It is read as a jump or as settings, and shows itself what they are.
        Outcome::Value(_) if steers(call) => outcome,
        _ if permit.edited && call.origin == CallOrigin::Model => mention_edit(outcome, &permit.arguments),
        _ => outcome,
    })
}

/// Returns whether the answer of a call changes the conversation of its caller.
fn steers(call: &LiveCall) -> bool {
    call.target.as_ref().is_some_and(|target| target.definition.control.is_some())
}

/// Runs the loop of an agent, or the effect of a tool or entry.
async fn execute(scope: &RunScope, call: &Arc<LiveCall>, permit: &Permit) -> StepResult {
    let Some(target) = &call.target else { unreachable!("only what was resolved passes the gate") };
    let arguments = permit.arguments.clone();
    if matches!(target.kind, TargetKind::Agent) {
        let key = call.info.id.child("agent");
        let kind = StepKind::Agent { precondition: permit.precondition.clone() };
        return scope.perform(step_of(call, key, kind, arguments, Effect::Calls)).await;
    }
    let kind = StepKind::Effect { permit: permit.digest, precondition: permit.precondition.clone() };
    let effect = target.definition.effect;
    scope.perform(step_of(call, call.info.id.clone(), kind, arguments, effect)).await
}

fn step_of(call: &LiveCall, key: Key, kind: StepKind, payload: Payload, effect: Effect) -> Step {
    Step { key, call: call.info.id.clone(), kind, name: call.name.clone(), payload, effect }
}

/// The assistant message stays as the provider sent it, so the result says which arguments were used.
fn mention_edit(outcome: Outcome, used: &Payload) -> Outcome {
    with_note(outcome, &format!("note: a person changed the arguments of this call to {}", used.text()))
}

/// What a toolset kept may be gone after a restart. The model reads that before the next result of the toolset.
fn mention_loss(call: &LiveCall, outcome: Outcome) -> Outcome {
    let slot = call.target.as_ref().and_then(CallTarget::slot).filter(|_| call.origin == CallOrigin::Model);
    match slot.and_then(|slot| call.frame().instances.take_lost(slot)) {
        None => outcome,
        Some(toolset) => {
            let note =
                format!("note: the program was restarted: what `{toolset}` kept from earlier calls is gone");
            with_note(outcome, &note)
        }
    }
}

/// Puts a line before a result.
fn with_note(outcome: Outcome, note: &str) -> Outcome {
    match outcome {
        Outcome::Value(output) => {
            let text = format!("{note}\n{}", output.to_text());
            Outcome::Value(Output { content: Content::Text(text.into()), ..output })
        }
        Outcome::Failed(mut failure) => {
            failure.message = format!("{note}\n{}", failure.message);
            Outcome::Failed(failure)
        }
        other => other,
    }
}
