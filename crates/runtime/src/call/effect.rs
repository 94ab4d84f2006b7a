//! Effects: runs the code of a tool or entry that passed the gate.
//!
//! A panic, a time limit, a cancellation or a halt below ends the code; what it had started is awaited.

use std::any::Any;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use llm_do_core::{
    Approved, CallContext, Cancellation, Digest, EventBody, Failure, FailureKind, Halt, Key, Outcome, Output,
    Payload, Sample, Step, StepResult, Tool, ToolDefinition, ToolReply, join_problems,
};
use serde_json::Value;

use crate::call::caller::{ToolCaller, tool_of};
use crate::record::store::Durability;
use crate::state::in_flight::Leaf;
use crate::state::live::LiveCall;
use crate::state::run_state::RunState;
use crate::state::scope::RunScope;

/// How the code of a tool ended.
enum Ended {
    Reply(ToolReply),
    Panicked(String),
    TimedOut,
    Halted(Halt),
}

/// Runs the effect of a call, with exactly the arguments that the gate allowed.
pub(crate) async fn run(
    scope: &RunScope,
    call: &Arc<LiveCall>,
    step: &Step,
    permit: Digest,
    precondition: Option<Value>,
    leaf: Leaf,
) -> StepResult {
    if step.payload.digest() != permit {
        return Err(Halt::Record(format!(
            "the arguments of `{}` are not those that were approved",
            step.name
        )));
    }
    let tool = match tool_of(&scope.run, call).await {
        Ok(tool) => tool,
        Err(_) if call.cancel.is_cancelled() => return Err(Halt::Interrupted),
        Err(failure) => return Ok(scope.run.shared.redactor().outcome(Outcome::Failed(failure), None)),
    };
    let caller = ToolCaller::new(scope, call, leaf);
    let ended = supervise(scope, call, &caller, &*tool, seal(&step.payload, precondition.clone())).await;
    caller.settle().await;
    if let Some(halt) = caller.halt() {
        return Err(halt);
    }
    let outcome = match ended {
        Ended::Reply(Ok(output)) => match scope.run.in_flight.keep(call, &output) {
            Ok(()) => checked(definition_of(call, &*tool), output),
            Err(failure) => Outcome::Failed(failure),
        },
        Ended::Reply(Err(error)) => Outcome::Failed(error.into_failure()),
        Ended::Panicked(message) => {
            let message = format!("`{}` panicked: {message}", step.name);
            Outcome::Failed(Failure::new(FailureKind::Panic, message))
        }
        Ended::TimedOut => Outcome::Failed(timed_out(call)),
        Ended::Halted(halt) => return Err(halt),
    };
    // Code that reacts to the end of its run often answers with an error. That is no result if a resumed run may ask again.
    if matches!(outcome, Outcome::Failed(_)) && scope.run.cancel.is_cancelled() && step.effect.may_repeat() {
        return Err(Halt::Interrupted);
    }
    // Made only now: a key may have been opened while the tool ran.
    Ok(scope.run.shared.redactor().outcome(outcome, precondition.as_ref()))
}

#[expect(
    clippy::disallowed_methods,
    reason = "this is where the gate's permit becomes what the tool receives"
)]
fn seal(payload: &Payload, precondition: Option<Value>) -> Approved {
    Approved::issued_by_gate(payload.clone(), precondition)
}

/// Runs the code until it ends or must end.
async fn supervise(
    scope: &RunScope,
    call: &Arc<LiveCall>,
    caller: &Arc<ToolCaller>,
    tool: &dyn Tool,
    input: Approved,
) -> Ended {
    let cancellation = Cancellation::new(call.cancel.clone());
    let context = caller.context(input.payload(), cancellation.clone());
    tokio::select! {
        biased;
        ended = code(tool, input, &context) => ended,
        halt = caller.halted() => Ended::Halted(halt),
        () = limit_reached(call) => Ended::TimedOut,
        () = stopped(call, &cancellation, scope.run.shared.grace) => Ended::Halted(Halt::Interrupted),
    }
}

async fn code(tool: &dyn Tool, input: Approved, context: &CallContext) -> Ended {
    let running = AssertUnwindSafe(async { tool.run(input, context).await });
    match running.catch_unwind().await {
        Ok(reply) => Ended::Reply(reply),
        Err(panic) => Ended::Panicked(panic_message(&*panic)),
    }
}

/// The definition under which the call was linked and approved.
fn definition_of<'a>(call: &'a LiveCall, tool: &'a dyn Tool) -> &'a ToolDefinition {
    call.target.as_ref().map_or_else(|| tool.definition(), |target| &target.definition)
}

async fn limit_reached(call: &LiveCall) {
    match (call.time_limit, &call.watch) {
        (Some(limit), Some(watch)) => watch.reached(limit).await,
        _ => std::future::pending().await,
    }
}

/// Resolves when the call is cancelled; code that watches for it gets a grace time to react.
async fn stopped(call: &LiveCall, cancellation: &Cancellation, grace: Duration) {
    call.cancel.cancelled().await;
    if cancellation.is_observed() {
        tokio::time::sleep(grace).await;
    }
}

fn panic_message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "no message".to_owned())
}

fn timed_out(call: &LiveCall) -> Failure {
    let limit = call.time_limit.unwrap_or_default();
    let message = format!("`{}` took longer than its time limit of {limit:?} and was ended", call.name);
    Failure::new(FailureKind::TimedOut, message)
        .with_hint("ask for less at once; what it had done until then may remain")
}

/// A value that does not fit the declared output schema is an error.
fn checked(definition: &ToolDefinition, output: Output) -> Outcome {
    let Some(schema) = &definition.output else { return Outcome::Value(output) };
    let value = output.to_value();
    if schema.fits(&value) {
        return Outcome::Value(output);
    }
    let problems = join_problems(&schema.problems(&value));
    let message = format!(
        "`{}` answered with a value that does not fit its own output schema: {problems}",
        definition.name
    );
    Outcome::Failed(Failure::new(FailureKind::Output, message))
}

/// Takes a recorded sample of the clock or of chance.
pub(crate) async fn sample(run: &RunState, call: &LiveCall, key: &Key, sample: Sample) -> StepResult {
    let value = match sample {
        Sample::Clock => u64::try_from(run.shared.clock.now().as_millisecond()).unwrap_or_default(),
        Sample::Random => run.shared.random.bits(),
    };
    let body = EventBody::Sampled { sample, value };
    run.log.commit(&call.info, key, body, Durability::Process).await?;
    Ok(Outcome::Sample(value))
}
