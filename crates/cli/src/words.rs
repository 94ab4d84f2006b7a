//! What agents say and think, for those who listen: whole messages, each with the name of who says it.
//!
//! Words are told when a message is whole, so that those of several agents never mix. The words that may be the answer
//! of the run wait until it is clear whether they are: the answer itself is printed.

use std::collections::{HashMap, HashSet};

use llm_do::Output;
use llm_do::call::CallResult;
use llm_do::event::{Delta, Event};
use llm_do::model::{Message, Part};
use llm_do::value::{Content, Key};

use crate::text::printable;

/// The words of all agents of a run.
#[derive(Default)]
pub(crate) struct Words {
    /// What calls are saying now.
    heard: HashMap<Key, Heard>,
    /// Who thinks, and was said to.
    thinking: HashSet<Key>,
    /// Words behind which no tool is called.
    last: HashMap<Key, String>,
}

#[derive(Default)]
struct Heard {
    attempt: u32,
    text: String,
}

impl Words {
    /// An agent said more.
    pub(crate) fn hear(&mut self, event: &Event, delta: &Delta) {
        let heard = self.heard.entry(event.call.id.clone()).or_default();
        if heard.attempt != delta.attempt {
            *heard = Heard { attempt: delta.attempt, text: String::new() };
        }
        heard.text.push_str(&delta.text);
    }

    /// An agent thinks: told once in each turn.
    pub(crate) fn think(&mut self, event: &Event) -> Option<String> {
        let is_new = self.thinking.insert(event.call.id.clone());
        is_new.then(|| format!("{} is thinking", speaker(event)))
    }

    /// An agent has said and thought something; thoughts are told at length where that is wanted.
    pub(crate) fn said(&mut self, event: &Event, message: &Message, at_length: bool) -> Vec<String> {
        self.heard.remove(&event.call.id);
        let (who, mut told) = (speaker(event), Vec::new());
        let was_told = self.thinking.remove(&event.call.id);
        match thoughts(message) {
            Some(thoughts) if at_length => told.push(format!("{who} thought: {}", quoted(&thoughts))),
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

    /// An agent is asked again, so that what it said last was not its answer.
    pub(crate) fn asked_again(&mut self, event: &Event) -> Option<String> {
        let text = self.last.remove(&event.call.id)?;
        spoken(event, &text)
    }

    /// What an agent said of an answer that has no end.
    pub(crate) fn broke_off(&mut self, event: &Event) -> Option<String> {
        self.thinking.remove(&event.call.id);
        let text = self.heard.remove(&event.call.id)?.text;
        let told = spoken(event, &text)?;
        Some(format!("{told}\n    (here the answer broke off)"))
    }

    /// The last words of an agent that ended, and whether they are what it gave.
    pub(crate) fn end(&mut self, event: &Event, result: &CallResult) -> (Option<String>, bool) {
        let last = self.last.remove(&event.call.id).unwrap_or_default();
        let is_answer = matches!(result, CallResult::Output(output) if is_same(output, &last));
        (self.broke_off(event).or_else(|| spoken(event, &last)), is_answer)
    }
}

/// Returns whether words are what a call gave, in whichever way they write a value.
fn is_same(output: &Output, words: &str) -> bool {
    match &output.content {
        Content::Text(text) => text.trim() == words.trim(),
        Content::Json(value) => llm_do_core::parse_strict(words).is_ok_and(|said| said == **value),
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

/// Words none of whose lines looks like a line of this program.
fn quoted(text: &str) -> String {
    printable(text).replace('\n', "\n    ")
}
