//! The embedded engine: performs steps in this process, over the log of the run.
//!
//! An agent scope, and each of several scopes performed at once, is a task of its own: the stack does not
//! grow with the depth of agents, and branches use all cores. Leaves run inside the task of their scope.

use std::sync::Arc;

use futures::future::BoxFuture;
use futures::stream::{FuturesUnordered, StreamExt};
use llm_do_core::{
    CallResult, Engine, EventBody, Failure, FailureKind, Halt, Outcome, Performed, Step, StepKind,
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
    fn perform(&self, step: Step) -> BoxFuture<'_, Performed> {
        match step.kind {
            StepKind::Agent => Box::pin(self.spawn(step)),
            StepKind::Call { .. } => Box::pin(self.scope(step)),
            _ => Box::pin(self.leaf(step)),
        }
    }

    fn perform_all(&self, mut steps: Vec<Step>) -> BoxFuture<'_, Vec<Performed>> {
        if steps.len() == 1
            && let Some(step) = steps.pop()
        {
            return Box::pin(async move { vec![self.perform(step).await] });
        }
        Box::pin(self.branches(steps))
    }
}

impl Embedded {
    /// Enters a call, unless its end is recorded.
    async fn scope(&self, step: Step) -> Performed {
        if let Some(Known::Done(outcome)) = self.run.replay.as_ref().map(|replay| replay.known(&step)) {
            self.run.book_finished(&*self.run.live(&step.call)?, &step.key);
            return Ok(outcome);
        }
        dispatch::call(self, step).await
    }

    /// Does a leaf, unless its end is recorded; never repeats silently what must happen at most once.
    async fn leaf(&self, step: Step) -> Performed {
        match self.run.replay.as_ref().map(|replay| replay.known(&step)) {
            Some(Known::Done(outcome)) => {
                ask::already_asked(&*self.run.live(&step.call)?, &outcome).await;
                return Ok(outcome);
            }
            Some(Known::Begun) if !step.effect.may_repeat() => {
                return Err(Halt::Unknown { key: step.key, name: step.name });
            }
            _ => {}
        }
        let call = self.run.live(&step.call)?;
        match &step.kind {
            StepKind::Gate { reason } => gate::decide(&self.run, &call, &step, reason.as_deref()).await,
            StepKind::Model { head, turn } => ask::ask_model(&self.run, &call, &step.key, *head, *turn).await,
            StepKind::Effect { permit, precondition } => {
                self.begin_effect(&call, &step).await?;
                effect::run(self, &call, &step, *permit, precondition.clone()).await
            }
            StepKind::Sample(sample) => effect::sample(&self.run, &call, &step.key, *sample).await,
            StepKind::Agent | StepKind::Call { .. } => unreachable!("scopes are entered, not done"),
        }
    }

    /// Records the intent: nothing happens that the record does not announce.
    async fn begin_effect(&self, call: &LiveCall, step: &Step) -> Result<(), Halt> {
        if call.cancel.is_cancelled() {
            return Err(Halt::Interrupted);
        }
        let durability = if step.effect.may_repeat() { Durability::Process } else { Durability::Power };
        let body = EventBody::CallExecuting { permit: step.payload.digest(), effect: step.effect };
        self.run.log.commit(&call.info, &step.key, body, durability).await
    }

    /// Runs a scope as a task of its own, which ends even where nobody waits for it any more.
    async fn spawn(&self, step: Step) -> Performed {
        let engine = self.clone();
        let task = self.run.shared.tasks.spawn(async move {
            match step.kind {
                StepKind::Agent => agent::run(&engine, step).await,
                _ => engine.scope(step).await,
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
    async fn branches(&self, steps: Vec<Step>) -> Vec<Performed> {
        let mut results: Vec<Option<Performed>> = steps.iter().map(|_| None).collect();
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
