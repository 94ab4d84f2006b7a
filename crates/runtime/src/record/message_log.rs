//! The messages of agent calls, read from the events of runs.
//!
//! Every agent call has a conversation of its own. [`call_messages`] rebuilds one from events. A [`MessageLog`] keeps the
//! conversations of all runs that have ended, for programs that show or store them.

use std::collections::VecDeque;
use std::sync::Arc;

use llm_do_core::{CallInfo, CallKind, Event, EventBody, Key, Message, ModelResult};

use crate::sync::Mutex;

/// One message of an agent call, as a [`Runtime`](crate::Runtime) keeps it.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct LoggedMessage {
    /// The agent call that the message belongs to.
    pub call: Arc<CallInfo>,
    /// The message.
    pub message: Arc<Message>,
}

/// The latest messages of the runs that have ended, oldest first.
#[derive(Debug)]
pub(crate) struct MessageLog {
    max: usize,
    messages: Mutex<VecDeque<LoggedMessage>>,
}

impl MessageLog {
    /// Creates a log that keeps at most `max` messages.
    pub(crate) fn new(max: usize) -> Self {
        Self { max, messages: Mutex::default() }
    }

    /// Adds the messages of a run, call by call in the order in which the calls started.
    pub(crate) fn add_run(&self, events: &[Arc<Event>]) {
        if self.max == 0 {
            return;
        }
        let mut kept = self.messages.lock();
        for call in agent_calls(events) {
            for message in call_messages(events, &call.id) {
                kept.push_back(LoggedMessage { call: call.clone(), message });
            }
        }
        let excess = kept.len().saturating_sub(self.max);
        kept.drain(..excess);
    }

    pub(crate) fn list(&self) -> Vec<LoggedMessage> {
        self.messages.lock().iter().cloned().collect()
    }
}

fn agent_calls(events: &[Arc<Event>]) -> impl Iterator<Item = &Arc<CallInfo>> {
    events.iter().filter_map(|event| match &event.body {
        EventBody::CallStarted { kind: CallKind::Agent, .. } => Some(&event.call),
        _ => None,
    })
}

/// Rebuilds the conversation of one agent call.
///
/// A request carries the messages since the previous one, the previous answer included, so only an answer that no
/// request follows is added from its own event.
pub(crate) fn call_messages(events: &[Arc<Event>], call: &Key) -> Vec<Arc<Message>> {
    let mut messages: Vec<Arc<Message>> = Vec::new();
    let mut answer = None;
    for event in events.iter().filter(|event| event.call.id == *call) {
        match &event.body {
            EventBody::ModelRequest { messages: new, kept, .. } => {
                messages.truncate(kept.unwrap_or(usize::MAX));
                messages.extend(new.iter().cloned());
                answer = None;
            }
            EventBody::ModelResponse { result: ModelResult::Response(response), .. } => {
                answer = Some(response.message.clone());
            }
            _ => {}
        }
    }
    messages.extend(answer);
    messages
}
