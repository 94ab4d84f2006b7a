//! What a record says about the steps of a run that is entered again.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use llm_do_core::{
    CallResult, Decision, Event, EventBody, Grant, Key, Message, ModelResponse, ModelResult, Name, Outcome,
    Step, StepKind, Usage,
};

/// An index over the recorded events of a run, by key.
#[derive(Debug, Default)]
pub(crate) struct Replay {
    started: HashSet<Key>,
    executing: HashSet<Key>,
    finished: HashMap<Key, Outcome>,
    decisions: HashMap<Key, Arc<Decision>>,
    responses: HashMap<Key, Arc<ModelResponse>>,
    requests: HashMap<Key, Vec<Arc<Message>>>,
    samples: HashMap<Key, u64>,
    spent: Vec<(Key, Name, Usage)>,
}

/// What is known of a step.
pub(crate) enum Known {
    /// Nothing: it was never begun.
    Nothing,
    /// It was begun, and its end is not recorded.
    Begun,
    /// It ended.
    Done(Outcome),
}

impl Replay {
    /// Indexes a record.
    pub(crate) fn of(events: &[Arc<Event>]) -> Self {
        let mut replay = Self::default();
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
            EventBody::ModelRequest { messages, .. } => drop(self.requests.insert(key, messages.clone())),
            EventBody::ModelResponse { model, result, .. } => self.add_response(event, model, result),
            EventBody::Sampled { value, .. } => drop(self.samples.insert(key, *value)),
            _ => {}
        }
    }

    fn add_response(&mut self, event: &Event, model: &Name, result: &ModelResult) {
        let usage = match result {
            ModelResult::Response(response) => {
                self.responses.insert(event.key.clone(), response.clone());
                Some(response.usage)
            }
            ModelResult::Failed { error } => error.usage,
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
            StepKind::Model { .. } => self.responses.get(key).cloned().map(Outcome::Response),
            StepKind::Sample(_) => self.samples.get(key).copied().map(Outcome::Sample),
            StepKind::Effect { .. } | StepKind::Agent => None,
        };
        match done {
            Some(outcome) => Known::Done(outcome),
            None if matches!(step.kind, StepKind::Effect { .. }) && self.executing.contains(key) => {
                Known::Begun
            }
            None => Known::Nothing,
        }
    }

    /// Says whether the bracket of a call was opened.
    pub(crate) fn was_started(&self, key: &Key) -> bool {
        self.started.contains(key)
    }

    /// Returns the messages that a recorded request added.
    pub(crate) fn request_messages(&self, key: &Key) -> Option<&[Arc<Message>]> {
        self.requests.get(key).map(Vec::as_slice)
    }

    /// Returns what requests of a call used.
    pub(crate) fn spent_by<'a>(&'a self, call: &'a Key) -> impl Iterator<Item = (&'a Name, Usage)> {
        self.spent.iter().filter(move |(key, _, _)| key == call).map(|(_, model, usage)| (model, *usage))
    }

    /// Returns what requests of a call and of everything below it used.
    pub(crate) fn spent_below<'a>(&'a self, call: &'a Key) -> impl Iterator<Item = (&'a Name, Usage)> {
        let below = move |key: &Key| {
            key.strip_prefix(call.as_str()).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        self.spent.iter().filter(move |(key, _, _)| below(key)).map(|(_, model, usage)| (model, *usage))
    }

    /// Returns the grants that came with recorded decisions.
    pub(crate) fn grants(&self) -> impl Iterator<Item = &Grant> {
        self.decisions.values().filter_map(|decision| match &**decision {
            Decision::Allow(permit) => permit.grant.as_ref(),
            Decision::Refuse(_) => None,
        })
    }
}
