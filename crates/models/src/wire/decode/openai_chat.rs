//! OpenAI's Chat Completions, and what many hosts make of it: chunks with deltas, or one completion.
//!
//! A whole message is read as one delta. Hosts differ most in thinking: it comes in `reasoning_content`, in
//! `reasoning` (with or without `reasoning_details`, which hold signatures), or as pieces of `content`. The
//! `raw` of a thinking part holds the fields of the message, or the piece of `content`, to send back.
//!
//! A stream is complete with its finish reason: `[DONE]` may be missing. Only the first choice is read.

use std::collections::HashMap;

use llm_do_core::{ModelError, Origin, Part, StopReason, Usage};
use serde_json::{Map, Value, json};

use super::AnswerReader;
use super::draft::{CallPosition, Draft, Sink, argument_text, block, block_with_more, tool_call};
use crate::wire::json::{count, into_map, remove_text, take, take_list, take_map, text, weight, without};

/// One completion as it grows.
#[derive(Default)]
pub(super) struct Completion {
    /// The completion without its choices.
    envelope: Map<String, Value>,
    /// Fields of the message that have no part.
    message: Map<String, Value>,
    pieces: Vec<MessagePiece>,
    details: Details,
    calls: ToolCallDrafts,
    refusal: String,
    finish_reason: Option<String>,
    is_done: bool,
    is_only_text: bool,
}

/// One stretch of the message.
enum MessagePiece {
    Text(String),
    Thinking {
        source: ThinkingSource,
        text: String,
        more: Map<String, Value>,
    },
    /// A piece of `content` of another kind.
    Other(Value),
}

/// Where thinking came from.
#[derive(Clone, Copy, PartialEq)]
enum ThinkingSource {
    Field(&'static str),
    Content,
}

impl AnswerReader for Completion {
    fn read(&mut self, mut object: Value, sink: &mut Sink<'_>) -> Result<(), ModelError> {
        let choices = take_list(&mut object, "choices");
        self.is_only_text = matches!(choices.as_slice(), [choice] if holds_only_text(choice));
        sink.update(&mut self.envelope, without(object, &["choices", "object"]))?;
        let is_first = |choice: &Value| count(choice, "/index").unwrap_or(0) == 0;
        choices.into_iter().filter(is_first).try_for_each(|choice| self.read_choice(choice, sink))
    }

    fn only_text(&self) -> Option<&'static str> {
        self.is_only_text.then_some("content")
    }

    fn add_text(&mut self, text: &str, sink: &mut Sink<'_>) -> Result<(), ModelError> {
        self.say(text.to_owned(), sink)
    }

    fn done(&mut self) {
        self.is_done = true;
    }

    fn is_complete(&self) -> bool {
        self.is_done && self.finish_reason.is_some()
    }

    fn has_stop_reason(&self) -> bool {
        self.finish_reason.as_deref().is_some_and(|reason| !reason.is_empty())
    }

    fn usage(&self) -> Option<Usage> {
        self.raw_usage().map(normalized)
    }

    fn finish(mut self: Box<Self>, origin: &Origin) -> Option<Draft> {
        let stop_reason = self.finish_reason.take()?;
        let usage = self.usage().unwrap_or(Usage { requests: 1, ..Usage::default() });
        let raw_usage = self.raw_usage().cloned().unwrap_or_default();
        self.envelope.shift_remove("usage");
        let id = self.envelope.shift_remove("id").unwrap_or_default();
        let refusal = Some(std::mem::take(&mut self.refusal)).filter(|message| !message.is_empty());
        let mut other = std::mem::take(&mut self.envelope);
        if !self.message.is_empty() {
            other.insert("message".into(), std::mem::take(&mut self.message).into());
        }
        let parts = self.into_parts(origin, id.as_str().unwrap_or_default(), refusal.as_deref());
        let stop = stop(&stop_reason);
        let server_calls = Vec::new();
        Some(Draft { parts, id, stop, stop_reason, usage, raw_usage, refusal, server_calls, other })
    }
}

impl Completion {
    fn raw_usage(&self) -> Option<&Value> {
        let usage = self.envelope.get("usage").filter(|usage| usage.is_object());
        usage.or_else(|| self.envelope.get("x_groq")?.get("usage").filter(|usage| usage.is_object()))
    }

    fn read_choice(&mut self, mut choice: Value, sink: &mut Sink<'_>) -> Result<(), ModelError> {
        let key = if choice.get("delta").is_some_and(Value::is_object) { "delta" } else { "message" };
        let delta = take(&mut choice, key);
        if let Value::String(word) = take(&mut choice, "finish_reason") {
            self.finish_reason = Some(word);
        }
        let rest = without(choice, &["index", "delta", "message", "finish_reason"]);
        sink.update(&mut self.envelope, rest)?;
        self.read_delta(delta, sink)
    }

    fn read_delta(&mut self, mut delta: Value, sink: &mut Sink<'_>) -> Result<(), ModelError> {
        self.read_thinking(&mut delta, sink)?;
        self.read_content(take(&mut delta, "content"), sink)?;
        if let Value::String(message) = take(&mut delta, "refusal") {
            sink.keep(message.len())?;
            self.refusal.push_str(&message);
        }
        for call in take_list(&mut delta, "tool_calls") {
            self.calls.add(call, sink)?;
        }
        let mut rest = into_map(delta);
        rest.retain(|key, value| !value.is_null() && key != "role");
        self.keep_rest(rest, sink)
    }

    /// Keeps fields that have no part. Lists, such as annotations, come piece by piece.
    fn keep_rest(&mut self, rest: Map<String, Value>, sink: &mut Sink<'_>) -> Result<(), ModelError> {
        let mut newer = Map::new();
        for (key, value) in rest {
            match (self.message.get_mut(&key), value) {
                (Some(Value::Array(list)), Value::Array(more)) => {
                    sink.keep(more.iter().map(weight).sum())?;
                    list.extend(more);
                }
                (_, value) => drop(newer.insert(key, value)),
            }
        }
        sink.update(&mut self.message, newer)
    }

    fn read_thinking(&mut self, delta: &mut Value, sink: &mut Sink<'_>) -> Result<(), ModelError> {
        let mut is_said = false;
        for field in ["reasoning_content", "reasoning"] {
            // Some hosts say it under both names.
            if let (Value::String(text), false) = (take(delta, field), is_said) {
                is_said = !text.is_empty();
                self.think(ThinkingSource::Field(field), text, Map::new(), sink)?;
            }
        }
        for detail in take_list(delta, "reasoning_details") {
            if !is_said {
                sink.thinking(visible(&detail));
            }
            self.details.add(detail, sink)?;
        }
        Ok(())
    }

    fn read_content(&mut self, content: Value, sink: &mut Sink<'_>) -> Result<(), ModelError> {
        match content {
            Value::String(text) => self.say(text, sink),
            Value::Array(chunks) => chunks.into_iter().try_for_each(|chunk| self.read_chunk(chunk, sink)),
            _ => Ok(()),
        }
    }

    fn read_chunk(&mut self, mut chunk: Value, sink: &mut Sink<'_>) -> Result<(), ModelError> {
        match text(&chunk, "type") {
            Some("text") if chunk.get("text").is_some_and(Value::is_string) => match take(&mut chunk, "text")
            {
                Value::String(text) => self.say(text, sink),
                _ => Ok(()),
            },
            Some("thinking") => {
                let thinking = take(&mut chunk, "thinking");
                let more = without(chunk, &["type", "thinking"]);
                self.think(ThinkingSource::Content, thinking_text(thinking), more, sink)
            }
            _ => {
                sink.keep_value(&chunk)?;
                self.pieces.push(MessagePiece::Other(chunk));
                Ok(())
            }
        }
    }

    fn say(&mut self, more: String, sink: &mut Sink<'_>) -> Result<(), ModelError> {
        if more.is_empty() {
            return Ok(());
        }
        sink.keep(more.len())?;
        sink.text(&more);
        match self.pieces.last_mut() {
            Some(MessagePiece::Text(text)) => text.push_str(&more),
            _ => self.pieces.push(MessagePiece::Text(more)),
        }
        Ok(())
    }

    fn think(
        &mut self,
        source: ThinkingSource,
        added: String,
        fields: Map<String, Value>,
        sink: &mut Sink<'_>,
    ) -> Result<(), ModelError> {
        if added.is_empty() && fields.is_empty() {
            return Ok(());
        }
        sink.keep(added.len())?;
        sink.thinking(&added);
        match self.pieces.last_mut() {
            Some(MessagePiece::Thinking { source: last, text, more }) if *last == source => {
                text.push_str(&added);
                sink.update(more, fields)
            }
            _ => {
                self.pieces.push(MessagePiece::Thinking { source, text: added, more: fields });
                Ok(())
            }
        }
    }

    fn into_parts(self, origin: &Origin, response: &str, refusal: Option<&str>) -> Vec<Part> {
        let is_repeated = self.details.have_text();
        let mut parts = self.details.into_parts(origin);
        let pieces = self.pieces.into_iter().filter(|piece| !(is_repeated && piece.is_field()));
        parts.extend(pieces.map(|piece| piece.into_part(origin)));
        parts.extend(refusal.map(|message| Part::Opaque(block(origin, json!({"refusal": message})))));
        let calls = self.calls.calls.into_iter().enumerate();
        parts.extend(calls.map(|(index, call)| call.into_part(origin, CallPosition { response, index })));
        parts
    }
}

impl MessagePiece {
    fn is_field(&self) -> bool {
        matches!(self, Self::Thinking { source: ThinkingSource::Field(_), .. })
    }

    fn into_part(self, origin: &Origin) -> Part {
        match self {
            Self::Text(text) => Part::text(text),
            Self::Other(chunk) => Part::Opaque(block(origin, chunk)),
            Self::Thinking { source, text, more } => {
                let raw = match source {
                    ThinkingSource::Field(field) => json!({field: text}),
                    ThinkingSource::Content => thinking_chunk(&text, more),
                };
                Part::Thinking { text: text.into(), signature: None, raw: Some(block(origin, raw)) }
            }
        }
    }
}

fn thinking_chunk(text: &str, more: Map<String, Value>) -> Value {
    let mut chunk = json!({"type": "thinking", "thinking": [{"type": "text", "text": text}]});
    if let Some(chunk) = chunk.as_object_mut() {
        chunk.extend(more);
    }
    chunk
}

/// Returns the text of a piece of thinking: a list of texts, or one text.
fn thinking_text(thinking: Value) -> String {
    match thinking {
        Value::String(text) => text,
        Value::Array(texts) => texts.iter().filter_map(|piece| text(piece, "text")).collect(),
        _ => String::new(),
    }
}

/// The details of thinking as OpenRouter sends them, each with its index.
#[derive(Default)]
struct Details {
    details: Vec<Map<String, Value>>,
    positions: HashMap<u64, usize>,
}

impl Details {
    fn add(&mut self, mut detail: Value, sink: &mut Sink<'_>) -> Result<(), ModelError> {
        let position = count(&detail, "/index").and_then(|index| self.positions.get(&index).copied());
        let Some(known) = position.and_then(|position| self.details.get_mut(position)) else {
            return self.start(detail, sink);
        };
        for key in ["text", "summary", "data"] {
            let Value::String(more) = take(&mut detail, key) else { continue };
            sink.keep(more.len())?;
            match known.get_mut(key) {
                Some(Value::String(text)) => text.push_str(&more),
                _ => drop(known.insert(key.into(), more.into())),
            }
        }
        sink.update(known, into_map(detail))
    }

    fn start(&mut self, detail: Value, sink: &mut Sink<'_>) -> Result<(), ModelError> {
        sink.keep_value(&detail)?;
        if let Some(index) = count(&detail, "/index") {
            self.positions.insert(index, self.details.len());
        }
        self.details.push(into_map(detail));
        Ok(())
    }

    fn have_text(&self) -> bool {
        self.details.iter().any(|detail| ["text", "summary"].iter().any(|key| detail.contains_key(*key)))
    }

    fn into_parts(self, origin: &Origin) -> Vec<Part> {
        let part = |detail: Map<String, Value>| {
            let detail = Value::Object(detail);
            let signature = text(&detail, "signature").map(str::to_owned);
            let shown = visible(&detail).to_owned();
            let raw = block(origin, json!({"reasoning_details": [detail]}));
            if shown.is_empty() && signature.is_none() {
                return Part::Opaque(raw);
            }
            Part::Thinking { text: shown.into(), signature, raw: Some(raw) }
        };
        self.details.into_iter().map(part).collect()
    }
}

/// Returns the readable text of a detail.
fn visible(detail: &Value) -> &str {
    text(detail, "text").or_else(|| text(detail, "summary")).unwrap_or_default()
}

/// The tool calls of a message.
#[derive(Default)]
struct ToolCallDrafts {
    calls: Vec<ToolCallDraft>,
    /// The newest call of each index.
    positions: HashMap<u64, usize>,
}

#[derive(Default)]
struct ToolCallDraft {
    id: String,
    name: String,
    arguments: String,
    more: Map<String, Value>,
}

impl ToolCallDrafts {
    fn add(&mut self, mut delta: Value, sink: &mut Sink<'_>) -> Result<(), ModelError> {
        let mut function = take_map(&mut delta, "function");
        let id = text(&delta, "id").unwrap_or_default().to_owned();
        let name = remove_text(&mut function, "name").unwrap_or_default();
        let arguments =
            function.shift_remove("arguments").map(|value| argument_text(&value)).unwrap_or_default();
        sink.keep(id.len() + name.len() + arguments.len())?;
        let position = self.position(count(&delta, "/index"), &id, &name);
        let call = self.at(position, sink)?;
        if call.id.is_empty() {
            call.id = id;
        }
        call.name.push_str(&name);
        call.arguments.push_str(&arguments);
        let mut more = without(delta, &["id", "index", "type", "function"]);
        more.extend(function);
        sink.update(&mut call.more, more)
    }

    /// Finds the call that a delta goes on with. Some hosts give every call the index 0, or none: then a new
    /// id, or a name, begins a new call.
    fn position(&mut self, index: Option<u64>, id: &str, name: &str) -> usize {
        let last = self.calls.len().checked_sub(1);
        let known = match index {
            Some(index) => self.positions.get(&index).copied(),
            None => last.filter(|_| id.is_empty() && name.is_empty()),
        };
        let goes_on =
            known.filter(|position| self.calls.get(*position).is_some_and(|call| call.goes_on(id, name)));
        let position = goes_on.unwrap_or(self.calls.len());
        index.map(|index| self.positions.insert(index, position));
        position
    }

    fn at(&mut self, position: usize, sink: &mut Sink<'_>) -> Result<&mut ToolCallDraft, ModelError> {
        if position >= self.calls.len() {
            sink.keep(weight(&Value::Null) * 4)?;
            self.calls.push(ToolCallDraft::default());
        }
        let last = self.calls.len() - 1;
        Ok(&mut self.calls[position.min(last)])
    }
}

impl ToolCallDraft {
    fn goes_on(&self, id: &str, name: &str) -> bool {
        id.is_empty() || id == self.id || name.is_empty()
    }

    fn into_part(self, origin: &Origin, position: CallPosition<'_>) -> Part {
        let mut whole = json!({
            "id": self.id,
            "type": "function",
            "function": {"name": self.name, "arguments": self.arguments},
        });
        if let Some(whole) = whole.as_object_mut() {
            whole.extend(self.more);
        }
        let raw = block_with_more(origin, into_map(whole), &["id", "type", "function"]);
        tool_call(&self.id, &self.name, self.arguments, raw, position)
    }
}

/// Returns whether a choice brings more text and nothing else.
fn holds_only_text(choice: &Value) -> bool {
    let delta = choice.get("delta").and_then(Value::as_object);
    let is_plain = |map: &Map<String, Value>, known: &[&str]| {
        map.iter().all(|(key, value)| value.is_null() || known.contains(&key.as_str()))
    };
    choice.as_object().is_some_and(|choice| is_plain(choice, &["index", "delta"]))
        && count(choice, "/index").unwrap_or(0) == 0
        && delta.is_some_and(|delta| is_plain(delta, &["role", "content"]))
        && delta.and_then(|delta| delta.get("content")).is_some_and(Value::is_string)
}

fn stop(word: &str) -> StopReason {
    match word {
        "stop" => StopReason::EndTurn,
        "tool_calls" | "function_call" => StopReason::ToolUse,
        "length" | "model_length" => StopReason::MaxTokens,
        "content_filter" => StopReason::Refusal,
        word => StopReason::Other(word.into()),
    }
}

fn normalized(usage: &Value) -> Usage {
    let count = |path| count(usage, path);
    let prompt = count("/prompt_tokens").unwrap_or(0);
    let cached = count("/prompt_tokens_details/cached_tokens").or_else(|| count("/prompt_cache_hit_tokens"));
    let cache_read = cached.unwrap_or(0);
    let cache_write = count("/prompt_tokens_details/cache_write_tokens").unwrap_or(0);
    let beside_prompt = count("/total_tokens").unwrap_or(0).saturating_sub(prompt);
    Usage {
        requests: 1,
        input: prompt.saturating_sub(cache_read).saturating_sub(cache_write),
        output: count("/completion_tokens").unwrap_or(0).max(beside_prompt),
        cache_read,
        cache_write,
        reasoning: count("/completion_tokens_details/reasoning_tokens").unwrap_or(0),
        ..Usage::default()
    }
}
