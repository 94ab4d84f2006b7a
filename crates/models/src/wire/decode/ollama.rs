//! Ollama's `/api/chat`: one JSON object per line, the last one marked `done`; a whole answer is one line.
//!
//! Calls come whole, in a line before the last. Older servers give them no ids.

use llm_do_core::{ModelError, Origin, Part, StopReason, Usage};
use serde_json::{Map, Value};

use super::AnswerReader;
use super::draft::{CallPosition, Draft, Sink, argument_text, block, tool_call};
use crate::wire::json::{holds_more, remove_text, take, take_list, take_map, text, without};

/// The fields of the last line that count something.
const COUNTS: &[&str] = &[
    "prompt_eval_count",
    "eval_count",
    "total_duration",
    "load_duration",
    "prompt_eval_duration",
    "eval_duration",
];

/// One answer as it grows.
#[derive(Default)]
pub(super) struct OllamaAnswer {
    /// The lines without their messages, the newest values.
    envelope: Map<String, Value>,
    /// Fields of the message that have no part.
    message: Map<String, Value>,
    thinking: String,
    text: String,
    calls: Vec<Value>,
    is_complete: bool,
}

impl AnswerReader for OllamaAnswer {
    fn read(&mut self, mut object: Value, sink: &mut Sink<'_>) -> Result<(), ModelError> {
        let message = take(&mut object, "message");
        self.read_message(message, sink)?;
        self.is_complete = object.get("done").and_then(Value::as_bool).unwrap_or(false);
        sink.update(&mut self.envelope, without(object, &["message", "done"]))
    }

    fn is_complete(&self) -> bool {
        self.is_complete
    }

    fn usage(&self) -> Option<Usage> {
        let is_known = COUNTS.iter().take(2).any(|key| self.envelope.contains_key(*key));
        is_known.then(|| normalized(&self.envelope))
    }

    fn finish(mut self: Box<Self>, origin: &Origin) -> Option<Draft> {
        if !self.is_complete {
            return None;
        }
        let usage = self.usage().unwrap_or(Usage { requests: 1, ..Usage::default() });
        let stop_reason = remove_text(&mut self.envelope, "done_reason").unwrap_or_else(|| "stop".into());
        let stop = stop(&stop_reason);
        let counts = COUNTS.iter().filter_map(|key| self.envelope.shift_remove_entry(*key));
        let raw_usage = Value::Object(counts.collect());
        let mut other = std::mem::take(&mut self.envelope);
        if !self.message.is_empty() {
            other.insert("message".into(), std::mem::take(&mut self.message).into());
        }
        // An answer has no id, but the time of its last line tells it from others.
        let parts =
            self.into_parts(origin, other.get("created_at").and_then(Value::as_str).unwrap_or_default());
        let (id, refusal, server_calls) = (Value::Null, None, Vec::new());
        Some(Draft { parts, id, stop, stop_reason, usage, raw_usage, refusal, server_calls, other })
    }
}

impl OllamaAnswer {
    fn read_message(&mut self, mut message: Value, sink: &mut Sink<'_>) -> Result<(), ModelError> {
        if let Value::String(thinking) = take(&mut message, "thinking") {
            sink.keep(thinking.len())?;
            sink.thinking(&thinking);
            self.thinking.push_str(&thinking);
        }
        if let Value::String(text) = take(&mut message, "content") {
            sink.keep(text.len())?;
            sink.text(&text);
            self.text.push_str(&text);
        }
        for call in take_list(&mut message, "tool_calls") {
            sink.keep_value(&call)?;
            self.calls.push(call);
        }
        sink.update(&mut self.message, without(message, &["role", "thinking", "content", "tool_calls"]))
    }

    fn into_parts(self, origin: &Origin, response: &str) -> Vec<Part> {
        let thinking = Some(self.thinking).filter(|thinking| !thinking.is_empty()).map(Part::thinking);
        let said = Some(self.text).filter(|text| !text.is_empty()).map(Part::text);
        let calls = self.calls.into_iter().enumerate();
        let calls = calls.map(|(index, whole)| call(whole, origin, CallPosition { response, index }));
        thinking.into_iter().chain(said).chain(calls).collect()
    }
}

fn call(mut whole: Value, origin: &Origin, position: CallPosition<'_>) -> Part {
    let raw = block(origin, whole.clone());
    let mut function = Value::Object(take_map(&mut whole, "function"));
    let arguments = argument_text(&take(&mut function, "arguments"));
    let id = text(&whole, "id").unwrap_or_default();
    let name = text(&function, "name").unwrap_or_default();
    let is_more = whole.as_object().is_some_and(|map| holds_more(map, &["id", "type", "function"]))
        || function.as_object().is_some_and(|map| holds_more(map, &["name", "arguments", "index"]));
    tool_call(id, name, arguments, is_more.then_some(raw), position)
}

fn stop(word: &str) -> StopReason {
    match word {
        "stop" => StopReason::EndTurn,
        "length" => StopReason::MaxTokens,
        word => StopReason::Other(word.into()),
    }
}

fn normalized(envelope: &Map<String, Value>) -> Usage {
    let envelope = |key: &str| envelope.get(key).and_then(Value::as_u64).unwrap_or(0);
    Usage {
        requests: 1,
        input: envelope("prompt_eval_count"),
        output: envelope("eval_count"),
        ..Usage::default()
    }
}
