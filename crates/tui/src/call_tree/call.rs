//! One call of the tree.

use std::sync::Arc;
use std::time::{Duration, Instant};

use llm_do_core::{
    CallKind, CallResult, Event, EventBody, Key, Message, ModelResult, Name, Payload, RunId, Usage,
};

use super::CallIndex;

/// The state of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CallState {
    Running,
    /// It waits for a person.
    Asking,
    Done,
    Denied,
    Failed,
    /// Its run ended before it did.
    BrokenOff,
}

/// One call from its start on.
pub(crate) struct Call {
    pub(crate) run: RunId,
    pub(crate) key: Key,
    pub(crate) parent: Option<CallIndex>,
    pub(crate) children: Vec<CallIndex>,
    /// How many calls are above it.
    pub(crate) level: usize,
    pub(crate) kind: CallKind,
    pub(crate) name: Name,
    pub(crate) path: Arc<str>,
    pub(crate) state: CallState,
    pub(crate) model: Option<Name>,
    pub(crate) started: Instant,
    pub(crate) duration: Option<Duration>,
    /// What it and everything below it used.
    pub(crate) usage: Usage,
    pub(crate) input: Payload,
    pub(crate) result: Option<CallResult>,
    pub(crate) instructions: Option<Arc<str>>,
    pub(crate) messages: Vec<Arc<Message>>,
    /// The last answer, until the next request shows it among its messages.
    pub(crate) reply: Option<Arc<Message>>,
    pub(crate) stderr: Vec<String>,
    /// The last report of its progress.
    pub(crate) progress: Option<String>,
    /// Grows with every change, for whoever keeps something made of it.
    pub(crate) version: u64,
}

impl Call {
    pub(super) fn new(
        event: &Event,
        kind: CallKind,
        name: &Name,
        input: &Payload,
        parent: Option<CallIndex>,
        level: usize,
        now: Instant,
    ) -> Self {
        Self {
            run: event.call.run,
            key: event.call.id.clone(),
            parent,
            children: Vec::new(),
            level,
            kind,
            name: name.clone(),
            path: event.call.path.clone(),
            state: CallState::Running,
            model: None,
            started: now,
            duration: None,
            usage: Usage::default(),
            input: input.clone(),
            result: None,
            instructions: None,
            messages: Vec::new(),
            reply: None,
            stderr: Vec::new(),
            progress: None,
            version: 0,
        }
    }

    /// Takes account of what is said to a model and by it.
    pub(super) fn talk(&mut self, body: &EventBody) {
        match body {
            EventBody::ModelRequest { model, messages, kept, instructions, .. } => {
                self.model = Some(model.clone());
                if let Some(kept) = kept {
                    self.messages.truncate(*kept);
                }
                self.messages.extend(messages.iter().cloned());
                self.reply = None;
                if instructions.is_some() {
                    self.instructions.clone_from(instructions);
                }
            }
            EventBody::ModelResponse { result: ModelResult::Response(response), model, .. } => {
                self.model = Some(model.clone());
                self.reply = Some(response.message.clone());
            }
            _ => {}
        }
    }

    pub(super) fn finish(&mut self, result: CallResult, duration: Duration, usage: Usage) {
        self.state = CallState::from(&result);
        self.result = Some(result);
        self.duration = Some(duration);
        self.usage = usage;
    }

    pub(super) fn break_off(&mut self, now: Instant) {
        if self.is_open() {
            self.duration = Some(self.elapsed(now));
            self.state = CallState::BrokenOff;
            self.version += 1;
        }
    }

    /// Whether it has not ended.
    pub(crate) fn is_open(&self) -> bool {
        matches!(self.state, CallState::Running | CallState::Asking)
    }

    /// How long it took or has taken so far.
    pub(crate) fn elapsed(&self, now: Instant) -> Duration {
        self.duration.unwrap_or_else(|| now.saturating_duration_since(self.started))
    }
}
