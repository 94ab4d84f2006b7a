//! What a record says about the steps of a run that is entered again.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::ops::Bound;
use std::sync::Arc;

use llm_do_core::{
    ApprovalRequest, AttemptCost, CallInfo, CallResult, Decision, Effect, Event, EventBody, Failure,
    FailureKind, Grant, Head, Key, Message, ModelError, ModelResponse, ModelResult, Name, Outcome, Permit,
    Quantity, Reserved, Settlement, Step, StepKind,
};

use crate::budget::Amount;

/// An index over the recorded events of a run, by key.
#[derive(Debug, Default)]
pub(crate) struct Replay {
    /// Sorted, so that the calls below a call are a range.
    started: BTreeSet<Key>,
    executing: HashMap<Key, Effect>,
    finished: HashMap<Key, Outcome>,
    /// What people said about calls of which nobody knew whether they happened.
    settled: HashMap<Key, Settlement>,
    decisions: HashMap<Key, Arc<Decision>>,
    /// What was asked last about each call, by the id of the request.
    asked: HashMap<Key, Arc<ApprovalRequest>>,
    /// The decisions that are made anew, because the project changed after them.
    outdated: HashSet<Key>,
    /// The decisions that refused something because nobody could be asked.
    unasked: BTreeSet<Key>,
    /// The grants that came with decisions and were not taken back, by step.
    grants: Vec<(Key, Grant)>,
    responses: HashMap<Key, (Name, Arc<ModelResponse>)>,
    /// The last failed request of each step, unless the step was answered.
    failed: HashMap<Key, FailedRequest>,
    requests: HashMap<Key, RecordedRequest>,
    samples: HashMap<Key, u64>,
    /// The requests, by the call that made them.
    attempts: BTreeMap<Key, Vec<RecordedAttempt>>,
    /// The agents that were created, and by whom.
    created: Vec<(Name, Name)>,
    /// What people added to the limits of calls.
    extensions: HashMap<Key, Vec<(Quantity, u64)>>,
}

/// A recorded request: the history it continued, and the messages that were new.
#[derive(Debug)]
pub(crate) struct RecordedRequest {
    pub(crate) head: Head,
    pub(crate) messages: Vec<Arc<Message>>,
    /// How many earlier messages were still valid, if not all.
    pub(crate) kept: Option<usize>,
    instructions: Option<Arc<str>>,
}

/// A request that failed.
#[derive(Debug)]
struct FailedRequest {
    model: Name,
    error: ModelError,
    /// Whether another model had failed before in this step: then all of them were down, or the run would have gone on.
    is_fallback: bool,
}

impl FailedRequest {
    /// Returns the failure that the caller of the agent reads; none where the run could not go on, so the step is done again.
    fn outcome(&self) -> Option<Outcome> {
        if self.is_fallback || self.error.kind.is_outage() {
            return None;
        }
        let message = format!("{} (model `{}`)", self.error, self.model);
        Some(Outcome::Failed(Failure::new(FailureKind::Model, message)))
    }
}

/// One request to a model, and what it cost.
#[derive(Debug)]
pub(crate) struct RecordedAttempt {
    step: Key,
    pub(crate) call: Arc<CallInfo>,
    pub(crate) model: Name,
    reserved: Option<Reserved>,
    pub(crate) cost: AttemptCost,
    is_answered: bool,
    /// Whether the process that asked ended before it was answered.
    is_lost: bool,
}

impl RecordedAttempt {
    /// What it charges to a budget. If nobody knows what it cost, that is everything that was reserved for it.
    pub(crate) fn charge(&self) -> Amount {
        match (&self.cost, self.reserved) {
            (AttemptCost::Unknown(_), Some(reserved)) => {
                Amount { tokens: reserved.tokens, cost: reserved.cost.0 }
            }
            (cost, _) => Amount::from(&cost.counted()),
        }
    }
}

/// What is known of a step.
pub(crate) enum Known {
    /// Nothing: it was never begun.
    Nothing,
    /// It was begun, and its end is not recorded. Whether it may be repeated is what its definition said then.
    Begun(Effect),
    /// It ended.
    Done(Outcome),
    /// The record is about something else.
    Mismatch,
}

impl Replay {
    /// Indexes a record.
    pub(crate) fn from_events(events: &[Arc<Event>]) -> Self {
        let mut replay = Self::default();
        events.iter().for_each(|event| replay.add(event));
        replay
    }

    /// Has all decisions so far made anew: what a changed project allows is not what the earlier one allowed.
    pub(crate) fn outdate_decisions(&mut self) {
        self.outdated.extend(self.decisions.keys().cloned());
    }

    fn add(&mut self, event: &Event) {
        let key = event.key.clone();
        match &event.body {
            EventBody::CallStarted { .. } => drop(self.started.insert(key)),
            EventBody::CallExecuting { effect, .. } => {
                self.settled.remove(&key);
                self.executing.insert(key, *effect);
            }
            EventBody::OutcomeSettled { settlement } => self.settle(key, settlement.clone()),
            EventBody::CallFinished { result, .. } => {
                let outcome = match result {
                    CallResult::Output(output) => Outcome::Value(output.clone()),
                    CallResult::Error(failure) => Outcome::Failed(failure.clone()),
                };
                self.finished.insert(key, outcome);
            }
            EventBody::ApprovalRequested(request) => {
                self.asked.insert(request.id.clone(), request.clone());
            }
            EventBody::ApprovalDecided { id, decision, .. } => {
                self.asked.remove(id);
                self.outdated.remove(&key);
                self.note_grant(&key, decision);
                self.add_unasked(&key, decision);
                self.decisions.insert(key, decision.clone());
            }
            EventBody::RunResumed { changed, .. } => {
                if *changed {
                    self.outdate_decisions();
                }
                self.failed.retain(|_, failed| failed.outcome().is_some());
                self.attempts.values_mut().flatten().for_each(|asked| asked.is_lost |= !asked.is_answered);
            }
            EventBody::GrantRevoked { grant } => self.grants.retain(|(_, given)| given != grant),
            EventBody::ModelRequest { model, messages, kept, instructions, head, reserved, .. } => {
                self.attempts.entry(event.call.id.clone()).or_default().push(RecordedAttempt {
                    step: key.clone(),
                    call: event.call.clone(),
                    model: model.clone(),
                    reserved: *reserved,
                    cost: AttemptCost::default(),
                    is_answered: false,
                    is_lost: false,
                });
                // Another attempt of the same request has no new messages.
                self.requests.entry(key).or_insert_with(|| RecordedRequest {
                    head: *head,
                    messages: messages.clone(),
                    kept: *kept,
                    instructions: instructions.clone(),
                });
            }
            EventBody::ModelResponse { model, result, .. } => self.add_response(event, model, result),
            EventBody::Sampled { value, .. } => drop(self.samples.insert(key, *value)),
            EventBody::AgentAdded { name, creator } => self.created.push((name.clone(), creator.clone())),
            EventBody::BudgetExtended { limit_of, what, by } => {
                self.extensions.entry(limit_of.clone()).or_default().push((*what, *by));
            }
            _ => {}
        }
    }

    /// Keeps the grant that came with a decision, in place of the one that came with an earlier decision of the step.
    fn note_grant(&mut self, step: &Key, decision: &Decision) {
        self.grants.retain(|(granted, _)| granted != step);
        if let Decision::Allow(permit) = decision
            && let Some(grant) = &permit.grant
        {
            self.grants.push((step.clone(), Grant::clone(grant)));
        }
    }

    fn add_unasked(&mut self, step: &Key, decision: &Decision) {
        match decision {
            Decision::Refuse(failure) if failure.kind == FailureKind::Unasked => {
                self.unasked.insert(step.clone());
            }
            _ => drop(self.unasked.remove(step)),
        }
    }

    /// Takes what a person said about a call.
    pub(crate) fn settle(&mut self, step: Key, settlement: Settlement) {
        self.settled.insert(step, settlement);
    }

    /// Says what is known of an effect that was begun.
    fn begun(&self, key: &Key, effect: Effect) -> Known {
        match self.settled.get(key) {
            None => Known::Begun(effect),
            Some(Settlement::Happened { output }) => Known::Done(Outcome::Value(output.clone())),
            Some(Settlement::DidNotHappen) => Known::Nothing,
            Some(Settlement::Unknown) => Known::Done(Outcome::Failed(
                Failure::new(
                    FailureKind::Tool,
                    "the process ended while this call was running, and nobody knows whether it happened",
                )
                .with_hint("find out before you call it again"),
            )),
        }
    }

    fn add_response(&mut self, event: &Event, model: &Name, result: &ModelResult) {
        let cost = match result {
            ModelResult::Response(response) => {
                self.failed.remove(&event.key);
                self.responses.insert(event.key.clone(), (model.clone(), response.clone()));
                AttemptCost::from_answer(&response.usage)
            }
            ModelResult::Failed { error } => {
                let earlier = self.failed.get(&event.key);
                let is_fallback =
                    earlier.is_some_and(|earlier| earlier.is_fallback || earlier.model != *model);
                let failed = FailedRequest { model: model.clone(), error: error.clone(), is_fallback };
                self.failed.insert(event.key.clone(), failed);
                error.cost.clone()
            }
        };
        let attempts = self.attempts.get_mut(&event.call.id);
        // The last one: earlier ones of the step were answered, or never will be.
        let asked = attempts.and_then(|asked| asked.iter_mut().rfind(|asked| asked.step == event.key));
        if let Some(asked) = asked {
            (asked.cost, asked.is_answered) = (cost, true);
        }
    }

    /// Says what is known of a step.
    pub(crate) fn known(&self, step: &Step) -> Known {
        let key = &step.key;
        let done = match &step.kind {
            StepKind::Call { .. } => self.finished.get(key).cloned(),
            StepKind::Gate { .. } => self.decisions.get(key).cloned().map(Outcome::Decision),
            StepKind::Model { .. } => {
                let answered =
                    self.responses.get(key).map(|(_, response)| Outcome::Response(response.clone()));
                answered.or_else(|| self.failed.get(key)?.outcome())
            }
            StepKind::Sample(_) => self.samples.get(key).copied().map(Outcome::Sample),
            StepKind::Effect { .. } | StepKind::Agent { .. } => None,
        };
        match done {
            Some(_) if self.is_other_history(step) => Known::Mismatch,
            Some(Outcome::Decision(_)) if self.outdated.contains(key) => Known::Nothing,
            Some(outcome) => Known::Done(outcome),
            None if self.is_other_history(step) => Known::Mismatch,
            None => match (&step.kind, self.executing.get(key)) {
                (StepKind::Effect { .. }, Some(effect)) => self.begun(key, *effect),
                _ => Known::Nothing,
            },
        }
    }

    /// Returns a recorded request.
    pub(crate) fn request(&self, key: &Key) -> Option<&RecordedRequest> {
        self.requests.get(key)
    }

    /// Returns whether a recorded request continued another history than the step names.
    fn is_other_history(&self, step: &Step) -> bool {
        let StepKind::Model { head, .. } = step.kind else { return false };
        self.requests.get(&step.key).is_some_and(|request| request.head != head)
    }

    /// Returns the model that gave a recorded answer.
    pub(crate) fn model_of(&self, key: &Key) -> Option<&Name> {
        self.responses.get(key).map(|(model, _)| model)
    }

    /// Counts the calls begun by a call and everything below it, itself included.
    pub(crate) fn calls_below(&self, call: &Key) -> u64 {
        let below = self.started.range::<str, _>(bounds(&range_below(call))).count() as u64;
        below + u64::from(!call.is_empty() && self.started.contains(call))
    }

    /// Returns a request that was recorded and not decided about.
    pub(crate) fn open_request(&self, id: &Key) -> Option<&ApprovalRequest> {
        self.asked.get(id).map(|request| &**request)
    }

    /// Returns whether a decision, or one in a call, was that nobody could be asked.
    pub(crate) fn was_unasked(&self, step: &Key) -> bool {
        let mut below = self.unasked.range::<str, _>(bounds(&range_below(step)));
        self.unasked.contains(step) || below.next().is_some()
    }

    /// Returns what a call was permitted to do.
    pub(crate) fn permit_of(&self, call: &Key) -> Option<&Permit> {
        match &**self.decisions.get(&call.child("gate"))? {
            Decision::Allow(permit) => Some(permit),
            Decision::Refuse(_) => None,
        }
    }

    /// Returns whether the bracket of a call was opened.
    pub(crate) fn was_started(&self, key: &Key) -> bool {
        self.started.contains(key)
    }

    /// Returns the messages that a recorded request added.
    pub(crate) fn request_messages(&self, key: &Key) -> Option<&[Arc<Message>]> {
        self.requests.get(key).map(|request| request.messages.as_slice())
    }

    /// Returns the instructions that a recorded request was the first to show.
    pub(crate) fn request_instructions(&self, key: &Key) -> Option<&Arc<str>> {
        self.requests.get(key).and_then(|request| request.instructions.as_ref())
    }

    /// Returns the requests of a call.
    pub(crate) fn attempts_of(&self, call: &Key) -> impl Iterator<Item = &RecordedAttempt> {
        self.attempts.get(call).into_iter().flatten()
    }

    /// Returns the requests of a call and of everything below it.
    pub(crate) fn attempts_below(&self, call: &Key) -> impl Iterator<Item = &RecordedAttempt> {
        let below = self.attempts.range::<str, _>(bounds(&range_below(call))).flat_map(|(_, asked)| asked);
        let own = self.attempts.get(call).filter(|_| !call.is_empty()).into_iter().flatten();
        own.chain(below)
    }

    /// Returns how often a step of a call has asked a model.
    pub(crate) fn attempts_at(&self, call: &Key, step: &Key) -> u32 {
        let count = self.attempts_of(call).filter(|asked| asked.step == *step).count();
        u32::try_from(count).unwrap_or(u32::MAX)
    }

    /// Returns how often a model has answered, in a call or in the whole run, failures included.
    pub(crate) fn answers_of(&self, model: &Name, call: Option<&Key>) -> u64 {
        let asked = self.attempts.iter().filter(|(caller, _)| call.is_none_or(|call| call == *caller));
        let answered =
            |asked: &&RecordedAttempt| asked.is_answered && !asked.is_lost && asked.model == *model;
        asked.flat_map(|(_, asked)| asked).filter(answered).count() as u64
    }

    /// Returns the models that were asked.
    pub(crate) fn models(&self) -> BTreeSet<&Name> {
        self.attempts.values().flatten().map(|asked| &asked.model).collect()
    }

    /// Returns the requests of which the record does not say what became of them, with their steps.
    pub(crate) fn unanswered(&self) -> impl Iterator<Item = (&Key, &RecordedAttempt)> {
        let asked = self.attempts.values().flatten().filter(|asked| !asked.is_answered);
        asked.map(|asked| (&asked.step, asked))
    }

    /// Returns the names of agents that were created, each with that of its creator.
    pub(crate) fn created(&self) -> &[(Name, Name)] {
        &self.created
    }

    /// Returns what people added to the limits of a call.
    pub(crate) fn extensions_of(&self, call: &Key) -> &[(Quantity, u64)] {
        self.extensions.get(call).map_or(&[], Vec::as_slice)
    }

    /// Returns the grants that came with recorded decisions, unless they were taken back.
    pub(crate) fn grants(&self) -> impl Iterator<Item = &Grant> {
        self.grants.iter().map(|(_, grant)| grant)
    }
}

/// The range of the keys below a call, which all begin with its own key and a slash; below the root are all keys.
fn range_below(call: &Key) -> (Bound<String>, Bound<String>) {
    if call.is_empty() {
        return (Bound::Unbounded, Bound::Unbounded);
    }
    // The character after the slash.
    (Bound::Included(format!("{call}/")), Bound::Excluded(format!("{call}0")))
}

fn bounds((from, to): &(Bound<String>, Bound<String>)) -> (Bound<&str>, Bound<&str>) {
    (from.as_ref().map(String::as_str), to.as_ref().map(String::as_str))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_range_below_a_call_holds_the_keys_below_it_and_no_others() {
        let keys = [
            "",
            "1",
            "1/t1",
            "1/t1/tool/0",
            "1/t1/tool/0/gate",
            "1/t1/tool/0.1",
            "1/t1/tool/1",
            "1/t10",
            "2",
        ];
        let all: BTreeSet<Key> = keys.into_iter().map(Key::from).collect();
        for call in &all {
            let found: Vec<&Key> =
                all.range::<str, _>(bounds(&range_below(call))).filter(|key| *key != call).collect();
            let expected: Vec<&Key> = all.iter().filter(|key| key.is_within(call) && *key != call).collect();
            assert_eq!(found, expected, "below {call:?}");
        }
    }
}
