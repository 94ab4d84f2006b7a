//! The embedded engine: performs steps in this process, over the log of the run.
//!
//! An agent scope, and each of several scopes performed at once, is a task of its own: the stack does not
//! grow with the depth of agents, and branches use all cores. Leaves run inside the task of their scope.

use std::future::ready;
use std::sync::{Arc, Weak};

use futures::FutureExt;
use futures::future::BoxFuture;
use futures::stream::{FuturesUnordered, StreamExt};
use llm_do_core::{
    Digest, Engine, EventBody, Failure, FailureKind, Halt, Outcome, Step, StepKind, StepResult,
};
use serde_json::Value;

use crate::agent;
use crate::record::replay::Known;
use crate::record::store::Durability;
use crate::state::live::LiveCall;
use crate::state::run_state::RunState;

use crate::call::dispatch;
use crate::call::effect;
use crate::gate;
use crate::model::ask;
use crate::state::scope::RunScope;

/// Performs the steps of one run.
pub(crate) struct Embedded {
    run: Arc<RunState>,
    /// Itself, for the scopes that it hands out.
    this: Weak<Self>,
}

impl Engine for Embedded {
    fn perform(&self, step: Step) -> BoxFuture<'_, StepResult> {
        match self.run.replay.as_ref().map(|replay| replay.known(&step)) {
            Some(Known::Done(outcome)) => Box::pin(self.read_back(step, outcome)),
            // What must happen at most once is never repeated silently, and a definition that has changed since does not
            // make it repeatable.
            Some(Known::Begun(effect)) if !(step.effect.may_repeat() && effect.may_repeat()) => {
                Box::pin(ready(Err(Halt::Unknown { key: step.key, name: step.name })))
            }
            Some(Known::Mismatch) => {
                let message = "the record does not hold the messages with which this conversation began; a turn of a \
                    session cannot be resumed without them";
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
    /// Makes the engine of a run.
    pub(crate) fn new(run: Arc<RunState>) -> Arc<Self> {
        Arc::new_cyclic(|this| Self { run, this: this.clone() })
    }

    /// Begins a step. Each kind is a future of its own: while it waits, it takes the memory of its kind.
    fn begin(&self, step: Step) -> BoxFuture<'_, StepResult> {
        match step.kind {
            StepKind::Agent { .. } => Box::pin(self.spawn(step)),
            StepKind::Call { origin, fork } => {
                Box::pin(async move { dispatch::call(&self.scope()?, &step, origin, fork).await })
            }
            StepKind::Gate { ref reason } => {
                let reason = reason.clone();
                Box::pin(async move {
                    let call = self.run.live(&step.call)?;
                    gate::decide(&self.run, &call, &step, reason.as_deref()).await
                })
            }
            StepKind::Model { head, turn } => Box::pin(async move {
                let call = self.run.live(&step.call)?;
                ask::ask_model(&self.run, &call, &step.key, head, turn).await
            }),
            StepKind::Effect { permit, ref precondition } => {
                let precondition = precondition.clone();
                Box::pin(async move { self.effect(&step, permit, precondition).await })
            }
            StepKind::Sample(sample) => Box::pin(async move {
                let call = self.run.live(&step.call)?;
                effect::sample(&self.run, &call, &step.key, sample).await
            }),
        }
    }

    /// What the code of a step is given.
    fn scope(&self) -> Result<RunScope, Halt> {
        // Whoever performs a step holds the engine, so it is there.
        let engine = self.this.upgrade().ok_or(Halt::Interrupted)?;
        Ok(RunScope { engine, run: self.run.clone() })
    }

    /// Answers with the recorded end of a step, and books what it had used.
    async fn read_back(&self, step: Step, outcome: Outcome) -> StepResult {
        let call = self.run.live(&step.call)?;
        if self.run.replay.as_ref().is_some_and(|replay| replay.was_unasked(&step.key)) {
            self.run.mark_unasked();
        }
        match step.kind {
            StepKind::Call { origin, .. } => {
                self.run.book_finished(&call, &step.key);
                Box::pin(dispatch::do_over(&self.scope()?, &call, &step, origin)).await;
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

    async fn effect(&self, step: &Step, permit: Digest, precondition: Option<Value>) -> StepResult {
        let call = self.run.live(&step.call)?;
        let leaf = self.run.in_flight.leaf(&call).await?;
        self.begin_effect(&call, step).await?;
        effect::run(&self.scope()?, &call, step, permit, precondition, leaf).await
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
        let scope = self.scope()?;
        let task = self.run.shared.tasks.spawn(async move {
            match step.kind {
                StepKind::Agent { .. } => agent::run(&scope, &step).await,
                _ => scope.perform(step).await,
            }
        });
        match task.await {
            Ok(performed) => performed,
            Err(error) => {
                Ok(Outcome::Failed(Failure::new(FailureKind::Panic, format!("the call broke off: {error}"))))
            }
        }
    }

    /// Performs scopes at once. A halt of one cancels the others, which are awaited; one that is parked leaves them
    /// alone, so that its answer is all that is missing in the end.
    async fn branches(&self, steps: Vec<Step>) -> Vec<StepResult> {
        let mut results: Vec<Option<StepResult>> = steps.iter().map(|_| None).collect();
        let caller = steps.first().map(|step| step.call.clone());
        let mut open: FuturesUnordered<_> = steps
            .into_iter()
            .enumerate()
            .map(|(index, step)| async move { (index, self.spawn(step).await) })
            .collect();
        while let Some((index, performed)) = open.next().await {
            let cancels = matches!(&performed, Err(halt) if !matches!(halt, Halt::Parked { .. }));
            if let (true, Some(Ok(call))) = (cancels, caller.as_ref().map(|key| self.run.live(key))) {
                call.cancel.cancel();
            }
            results[index] = Some(performed);
        }
        results.into_iter().map(|result| result.unwrap_or(Err(Halt::Interrupted))).collect()
    }
}
