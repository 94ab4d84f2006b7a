//! What a record says about the steps of a run that is entered again.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use llm_do_core::{
    CallResult, Decision, Digest, Event, EventBody, Grant, Head, Key, Message, ModelResponse, ModelResult,
    Name, Outcome, Permit, Step, StepKind, Usage,
};

/// An index over the recorded events of a run, by key.
#[derive(Debug, Default)]
pub(crate) struct Replay {
    started: HashSet<Key>,
    executing: HashSet<Key>,
    finished: HashMap<Key, Outcome>,
    decisions: HashMap<Key, Arc<Decision>>,
    responses: HashMap<Key, (Name, Arc<ModelResponse>)>,
    requests: HashMap<Key, Request>,
    samples: HashMap<Key, u64>,
    spent: Vec<(Key, Name, Usage)>,
    /// Whether the project has changed since the run began.
    pub(crate) changed: bool,
}

/// A recorded request: the history it continued, and the messages that were new.
#[derive(Debug)]
struct Request {
    head: Head,
    messages: Vec<Arc<Message>>,
    instructions: Option<Arc<str>>,
}

/// What is known of a step.
pub(crate) enum Known {
    /// Nothing: it was never begun.
    Nothing,
    /// It was begun, and its end is not recorded.
    Begun,
    /// It ended.
    Done(Outcome),
    /// The record is about something else.
    Mismatch,
}

impl Replay {
    /// Indexes a record.
    pub(crate) fn from_events(events: &[Arc<Event>], pin: Digest) -> Self {
        let pinned = events.iter().find_map(|event| match &event.body {
            EventBody::RunStarted { pin, .. } => Some(*pin),
            _ => None,
        });
        let mut replay = Self { changed: pinned != Some(pin), ..Self::default() };
        events.iter().for_each(|event| replay.add(event));
        replay
    }

    fn add(&mut self, event: &Event) {
        let key = event.key.clone();
        match &event.body {
            EventBody::CallStarted { .. } => drop(self.started.insert(key)),
            EventBody::CallExecuting { .. } => drop(self.executing.insert(key)),
            EventBody::CallFinished { result, .. } => {
                let outcome = match result {
                    CallResult::Output(output) => Outcome::Value(output.clone()),
                    CallResult::Error(failure) => Outcome::Failed(failure.clone()),
                };
                self.finished.insert(key, outcome);
            }
            EventBody::ApprovalDecided { decision, .. } => drop(self.decisions.insert(key, decision.clone())),
            // Another attempt of the same request has nothing new to tell.
            EventBody::ModelRequest { messages, instructions, head, .. } => {
                self.requests.entry(key).or_insert_with(|| Request {
                    head: *head,
                    messages: messages.clone(),
                    instructions: instructions.clone(),
                });
            }
            EventBody::ModelResponse { model, result, .. } => self.add_response(event, model, result),
            EventBody::Sampled { value, .. } => drop(self.samples.insert(key, *value)),
            _ => {}
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
            self.spent.push((event.call.id.clone(), model.clone(), usage));
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
            // What a changed project allows is decided anew.
            Some(Outcome::Decision(_)) if self.changed => Known::Nothing,
            Some(outcome) => Known::Done(outcome),
            None if self.is_other_history(step) => Known::Mismatch,
            None if matches!(step.kind, StepKind::Effect { .. }) && self.executing.contains(key) => {
                Known::Begun
            }
            None => Known::Nothing,
        }
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
        self.started.iter().filter(|key| key.is_within(call)).count() as u64
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
    pub(crate) fn spent_by<'a>(&'a self, call: &'a Key) -> impl Iterator<Item = (&'a Name, Usage)> {
        self.spent.iter().filter(move |(key, _, _)| key == call).map(|(_, model, usage)| (model, *usage))
    }

    /// Returns what requests of a call and of everything below it used.
    pub(crate) fn spent_below<'a>(&'a self, call: &'a Key) -> impl Iterator<Item = (&'a Name, Usage)> {
        self.spent
            .iter()
            .filter(move |(key, _, _)| key.is_within(call))
            .map(|(_, model, usage)| (model, *usage))
    }

    /// Returns the grants that came with recorded decisions.
    pub(crate) fn grants(&self) -> impl Iterator<Item = &Grant> {
        self.decisions.values().filter_map(|decision| match &**decision {
            Decision::Allow(permit) => permit.grant.as_deref(),
            Decision::Refuse(_) => None,
        })
    }
}
