//! Calls of which a record does not say whether they happened.

use std::collections::HashMap;
use std::sync::Arc;

use llm_do_core::{CallInfo, Event, EventBody, Key, Name, Payload};

/// A call that must happen at most once, began, and has no recorded end: its process ended meanwhile.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct UnknownCall {
    /// The call.
    pub call: Arc<CallInfo>,
    /// What was called.
    pub name: Name,
    /// What it was given.
    pub input: Payload,
    /// When it began.
    pub began: jiff::Timestamp,
    /// The step that has no outcome.
    pub(crate) step: Key,
}

/// Finds the calls of which nobody knows whether they happened, in the order in which they began.
pub fn unknown_calls(events: &[Arc<Event>]) -> Vec<UnknownCall> {
    let mut started: HashMap<&Key, (&Name, &Payload)> = HashMap::new();
    let mut open: Vec<UnknownCall> = Vec::new();
    for event in events {
        match &event.body {
            EventBody::CallStarted { name, input, .. } => {
                started.insert(&event.call.id, (name, input));
            }
            EventBody::CallExecuting { effect, .. } if !effect.may_repeat() => {
                let Some((name, input)) = started.get(&event.call.id) else { continue };
                open.retain(|call| call.step != event.key);
                open.push(UnknownCall {
                    call: event.call.clone(),
                    name: (*name).clone(),
                    input: (*input).clone(),
                    began: event.time,
                    step: event.key.clone(),
                });
            }
            // Whoever ended without the outcome of a call below it, as after a cancellation, needs none any more.
            EventBody::CallFinished { .. } => open.retain(|call| !call.call.id.is_within(&event.call.id)),
            EventBody::OutcomeSettled { .. } => open.retain(|call| call.step != event.key),
            _ => {}
        }
    }
    open
}
