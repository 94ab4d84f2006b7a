//! The embedded engine: performs steps in this process, over the log of the run.
//!
//! An agent scope, and each of several scopes performed at once, is a task of its own: the stack does not
//! grow with the depth of agents, and branches use all cores. Leaves run inside the task of their scope.

use std::future::ready;
use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;
use futures::stream::{FuturesUnordered, StreamExt};
use llm_do_core::{
    CallResult, Engine, EventBody, Failure, FailureKind, Halt, Head, Key, Outcome, Sample, Step, StepKind,
    StepResult,
};
use tokio::time::Instant;

use crate::live::LiveCall;
use crate::replay::Known;
use crate::state::RunState;
use crate::store::Durability;
use crate::{agent, ask, dispatch, effect, gate};

/// Performs the steps of one run.
#[derive(Clone)]
pub(crate) struct Embedded {
    pub(crate) run: Arc<RunState>,
}

impl Engine for Embedded {
    fn perform(&self, step: Step) -> BoxFuture<'_, StepResult> {
        match self.run.replay.as_ref().map(|replay| replay.known(&step)) {
            Some(Known::Done(outcome)) => Box::pin(self.read_back(step, outcome)),
            // What must happen at most once is never repeated silently.
            Some(Known::Begun) if !step.effect.may_repeat() => {
                Box::pin(ready(Err(Halt::Unknown { key: step.key, name: step.name })))
            }
            Some(Known::Mismatch) => {
                let message = "the record holds another conversation than this run has; a turn of a session cannot be \
                    resumed without it";
                Box::pin(ready(Err(Halt::Record(message.to_owned()))))
            }
            _ => self.begin(step),
        }
    }

    fn perform_all(&self, mut steps: Vec<Step>) -> BoxFuture<'_, Vec<StepResult>> {
        if steps.len() == 1
            && let Some(step) = steps.pop()
        {
            return Box::pin(self.perform(step).map(|performed| vec![performed]));
        }
        Box::pin(self.branches(steps))
    }
}

impl Embedded {
    /// Begins a step. Each kind is a future of its own: while it waits, it takes the memory of its kind.
    fn begin(&self, step: Step) -> BoxFuture<'_, StepResult> {
        match step.kind {
            StepKind::Agent { .. } => Box::pin(self.spawn(step)),
            StepKind::Call { .. } => Box::pin(async move { dispatch::call(self, &step).await }),
            StepKind::Gate { .. } => Box::pin(async move { self.decide(&step).await }),
            StepKind::Model { head, turn } => Box::pin(self.ask(step.call, step.key, head, turn)),
            StepKind::Effect { .. } => Box::pin(async move { self.effect(&step).await }),
            StepKind::Sample(sample) => Box::pin(self.sample(step.call, step.key, sample)),
        }
    }

    /// Answers with the recorded end of a step, and books what it had used.
    async fn read_back(&self, step: Step, outcome: Outcome) -> StepResult {
        let call = self.run.live(&step.call)?;
        match step.kind {
            StepKind::Call { origin, .. } => {
                self.run.book_finished(&call, &step.key);
                Box::pin(dispatch::do_over(self, &call, &step, origin)).await;
            }
            StepKind::Gate { ref reason } => {
                if reason.is_none() {
                    self.run.book_call(&call);
                }
                if let Outcome::Decision(decision) = &outcome {
                    gate::end_at_denial(&self.run, decision)?;
                }
            }
            _ => {
                let model = self.run.replay.as_ref().and_then(|replay| replay.model_of(&step.key));
                ask::already_asked(&call, &outcome, model).await;
            }
        }
        Ok(outcome)
    }

    async fn decide(&self, step: &Step) -> StepResult {
        let call = self.run.live(&step.call)?;
        let StepKind::Gate { reason } = &step.kind else { unreachable!("only calls are decided about") };
        gate::decide(&self.run, &call, step, reason.as_deref()).await
    }

    async fn ask(&self, call: Key, key: Key, head: Head, turn: u32) -> StepResult {
        let call = self.run.live(&call)?;
        ask::ask_model(&self.run, &call, &key, head, turn).await
    }

    async fn effect(&self, step: &Step) -> StepResult {
        let call = self.run.live(&step.call)?;
        let StepKind::Effect { permit, precondition } = &step.kind else { unreachable!("only effects run") };
        let leaf = self.run.in_flight.leaf(&call).await?;
        self.begin_effect(&call, step).await?;
        effect::run(self, &call, step, *permit, precondition.clone(), leaf).await
    }

    async fn sample(&self, call: Key, key: Key, sample: Sample) -> StepResult {
        let call = self.run.live(&call)?;
        effect::sample(&self.run, &call, &key, sample).await
    }

    /// Records the intent: nothing happens that the record does not announce.
    async fn begin_effect(&self, call: &LiveCall, step: &Step) -> Result<(), Halt> {
        if call.cancel.is_cancelled() {
            return Err(Halt::Interrupted);
        }
        let durability = if step.effect.may_repeat() { Durability::Process } else { Durability::Power };
        let body = EventBody::CallExecuting { permit: step.payload.digest(), effect: step.effect };
        self.run.log.commit(&call.info, &step.key, body, durability).await?;
        // The record may have taken its time. What was cancelled meanwhile does not begin; a resume cannot know
        // that, so it asks a person about a call that must happen at most once.
        if call.cancel.is_cancelled() { Err(Halt::Interrupted) } else { Ok(()) }
    }

    /// Runs a scope as a task of its own, which ends even where nobody waits for it any more.
    async fn spawn(&self, step: Step) -> StepResult {
        let engine = self.clone();
        let task = self.run.shared.tasks.spawn(async move {
            match step.kind {
                StepKind::Agent { .. } => agent::run(&engine, &step).await,
                _ => engine.perform(step).await,
            }
        });
        match task.await {
            Ok(performed) => performed,
            Err(error) => {
                Ok(Outcome::Failed(Failure::new(FailureKind::Panic, format!("the call broke off: {error}"))))
            }
        }
    }

    /// Performs scopes at once. A halt of one cancels the others, which are awaited.
    async fn branches(&self, steps: Vec<Step>) -> Vec<StepResult> {
        let mut results: Vec<Option<StepResult>> = steps.iter().map(|_| None).collect();
        let caller = steps.first().map(|step| step.call.clone());
        let mut open: FuturesUnordered<_> = steps
            .into_iter()
            .enumerate()
            .map(|(index, step)| async move { (index, self.spawn(step).await) })
            .collect();
        while let Some((index, performed)) = open.next().await {
            if let (Err(_), Some(Ok(call))) = (&performed, caller.as_ref().map(|key| self.run.live(key))) {
                call.cancel.cancel();
            }
            results[index] = Some(performed);
        }
        results.into_iter().map(|result| result.unwrap_or(Err(Halt::Interrupted))).collect()
    }
}

/// Writes the end of a call into the log.
pub(crate) fn finish(run: &RunState, call: &LiveCall, outcome: &Outcome, started: Instant) {
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
        usage: call.usage().total(),
    };
    run.note(call, &call.info.id, body);
}

/// Milliseconds since an instant.
pub(crate) fn milliseconds(since: Instant) -> u64 {
    u64::try_from(since.elapsed().as_millis()).unwrap_or(u64::MAX)
}
