//! Output for screen readers (`--plain`): what agents say and think, as whole messages with the name of the agent.
//!
//! A message is returned when it is complete, so that those of several agents never mix. One that may be the answer of
//! the run is held back until that is known: the answer itself is printed.

use std::collections::{HashMap, HashSet};

use llm_do::Output;
use llm_do::call::CallResult;
use llm_do::event::{Delta, Event};
use llm_do::model::{Message, Part};
use llm_do::value::{Content, Key};

use crate::text::printable;

/// The messages of all agents of a run.
#[derive(Default)]
pub(crate) struct AgentMessages {
    /// Text of messages that are not complete, per call.
    partial: HashMap<Key, PartialMessage>,
    /// The calls whose thinking was announced in this turn.
    thinking: HashSet<Key>,
    /// Messages without tool calls, which may be the answer of their call.
    last: HashMap<Key, String>,
}

#[derive(Default)]
struct PartialMessage {
    attempt: u32,
    text: String,
}

impl AgentMessages {
    /// Adds a piece of a message.
    pub(crate) fn push_delta(&mut self, event: &Event, delta: &Delta) {
        let partial = self.partial.entry(event.call.id.clone()).or_default();
        if partial.attempt != delta.attempt {
            *partial = PartialMessage { attempt: delta.attempt, text: String::new() };
        }
        partial.text.push_str(&delta.text);
    }

    /// Announces that an agent thinks, once in each turn.
    pub(crate) fn start_thinking(&mut self, event: &Event) -> Option<String> {
        let is_new = self.thinking.insert(event.call.id.clone());
        is_new.then(|| format!("{} is thinking", speaker(event)))
    }

    /// Takes a complete message; `with_thoughts` returns the text of its thoughts too.
    pub(crate) fn finish_message(
        &mut self,
        event: &Event,
        message: &Message,
        with_thoughts: bool,
    ) -> Vec<String> {
        self.partial.remove(&event.call.id);
        let (who, mut told) = (speaker(event), Vec::new());
        let was_told = self.thinking.remove(&event.call.id);
        match thoughts(message) {
            Some(thoughts) if with_thoughts => told.push(format!("{who} thought: {}", quoted(&thoughts))),
            Some(_) if !was_told => told.push(format!("{who} has thought")),
            _ => {}
        }
        let text = message.text();
        if message.tool_calls().next().is_none() {
            self.last.insert(event.call.id.clone(), text);
        } else {
            told.extend(spoken(event, &text));
        }
        told
    }

    /// Returns the last message of an agent, which is asked again, so that it was not the answer.
    pub(crate) fn next_request(&mut self, event: &Event) -> Option<String> {
        let text = self.last.remove(&event.call.id)?;
        spoken(event, &text)
    }

    /// Returns what arrived of a message that failed.
    pub(crate) fn abort_message(&mut self, event: &Event) -> Option<String> {
        self.thinking.remove(&event.call.id);
        let text = self.partial.remove(&event.call.id)?.text;
        let told = spoken(event, &text)?;
        Some(format!("{told}\n    (the answer was cut off here)"))
    }

    /// Returns the last message of a call that ended, and whether it is the answer of the call.
    pub(crate) fn finish_call(&mut self, event: &Event, result: &CallResult) -> (Option<String>, bool) {
        let last = self.last.remove(&event.call.id).unwrap_or_default();
        let is_answer = matches!(result, CallResult::Output(output) if is_same(output, &last));
        (self.abort_message(event).or_else(|| spoken(event, &last)), is_answer)
    }
}

/// Returns whether a message is the output of a call, however it writes a value.
fn is_same(output: &Output, message: &str) -> bool {
    match &output.content {
        Content::Text(text) => text.trim() == message.trim(),
        Content::Json(value) => llm_do_core::parse_strict(message).is_ok_and(|said| said == **value),
    }
}

fn thoughts(message: &Message) -> Option<String> {
    let thoughts = message.parts.iter().filter_map(|part| match part {
        Part::Thinking { text, .. } if !text.trim().is_empty() => Some(text.trim()),
        _ => None,
    });
    Some(thoughts.collect::<Vec<_>>().join("\n")).filter(|text| !text.is_empty())
}

fn spoken(event: &Event, text: &str) -> Option<String> {
    let text = text.trim();
    (!text.is_empty()).then(|| format!("{} says: {}", speaker(event), quoted(text)))
}

fn speaker(event: &Event) -> String {
    llm_do_core::visible_line(&event.call.path)
}

/// A message in which no line looks like a line of this program.
fn quoted(text: &str) -> String {
    printable(text).replace('\n', "\n    ")
}
