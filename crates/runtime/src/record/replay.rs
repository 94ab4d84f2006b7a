//! What a record says about the steps of a run that is entered again.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::ops::Bound;
use std::sync::Arc;

use llm_do_core::{
    ApprovalRequest, CallResult, Decision, Effect, Event, EventBody, Failure, FailureKind, Grant, Head, Key,
    Message, ModelResponse, ModelResult, Name, Outcome, Permit, Settlement, Step, StepKind, Usage,
};

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
    responses: HashMap<Key, (Name, Arc<ModelResponse>)>,
    requests: HashMap<Key, RecordedRequest>,
    samples: HashMap<Key, u64>,
    /// What requests used, by the call that made them.
    spent: BTreeMap<Key, Vec<(Name, Usage)>>,
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
            EventBody::ApprovalDecided { id, decision } => {
                self.asked.remove(id);
                self.outdated.remove(&key);
                self.decisions.insert(key, decision.clone());
            }
            EventBody::RunResumed { changed: true, .. } => self.outdate_decisions(),
            // Another attempt of the same request has nothing new to tell.
            EventBody::ModelRequest { messages, kept, instructions, head, .. } => {
                self.requests.entry(key).or_insert_with(|| RecordedRequest {
                    head: *head,
                    messages: messages.clone(),
                    kept: *kept,
                    instructions: instructions.clone(),
                });
            }
            EventBody::ModelResponse { model, result, .. } => self.add_response(event, model, result),
            EventBody::Sampled { value, .. } => drop(self.samples.insert(key, *value)),
            _ => {}
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
        let usage = match result {
            ModelResult::Response(response) => {
                self.responses.insert(event.key.clone(), (model.clone(), response.clone()));
                Some(response.usage)
            }
            ModelResult::Failed { error } => error.cost.reported().copied(),
        };
        if let Some(usage) = usage {
            self.spent.entry(event.call.id.clone()).or_default().push((model.clone(), usage));
        }
    }

    /// Says what is known of a step.
    pub(crate) fn known(&self, step: &Step) -> Known {
        let key = &step.key;
        let done = match &step.kind {
            StepKind::Call { .. } => self.finished.get(key).cloned(),
            StepKind::Gate { .. } => self.decisions.get(key).cloned().map(Outcome::Decision),
            StepKind::Model { .. } => {
                self.responses.get(key).map(|(_, response)| Outcome::Response(response.clone()))
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

    /// Returns what requests of a call used.
    pub(crate) fn spent_by<'a>(&'a self, call: &Key) -> impl Iterator<Item = (&'a Name, Usage)> {
        self.spent.get(call).into_iter().flatten().map(|(model, usage)| (model, *usage))
    }

    /// Returns what requests of a call and of everything below it used.
    pub(crate) fn spent_below<'a>(&'a self, call: &Key) -> impl Iterator<Item = (&'a Name, Usage)> {
        let below = self.spent.range::<str, _>(bounds(&range_below(call))).flat_map(|(_, spent)| spent);
        let own = self.spent.get(call).filter(|_| !call.is_empty()).into_iter().flatten();
        own.chain(below).map(|(model, usage)| (model, *usage))
    }

    /// Returns the grants that came with recorded decisions.
    pub(crate) fn grants(&self) -> impl Iterator<Item = &Grant> {
        self.decisions.values().filter_map(|decision| match &**decision {
            Decision::Allow(permit) => permit.grant.as_deref(),
            Decision::Refuse(_) => None,
        })
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
