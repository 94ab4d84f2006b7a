//! Anthropic's Messages: events with content blocks, or one message.
//!
//! A streamed block is built into the same object that a whole message would hold. Deltas of kinds not known
//! yet are applied by their keys, so that new blocks survive.

use std::collections::BTreeMap;

use llm_do_core::{ModelError, Origin, Part, StopReason, Usage};
use serde_json::{Map, Value};

use super::draft::{CallPosition, Draft, Sink, argument_text, block, block_with_more, tool_call};
use super::{AnswerReader, server_calls};
use crate::wire::json::{count, into_map, remove_text, take, take_list, take_map, text, weight, without};

/// One message as it grows.
#[derive(Default)]
pub(super) struct Messages {
    /// The message without its content.
    envelope: Map<String, Value>,
    usage: Map<String, Value>,
    blocks: BTreeMap<u64, Block>,
    /// The block to which the last event added text and nothing else.
    last_text: Option<u64>,
    is_complete: bool,
}

/// One content block as it grows.
struct Block {
    content: Map<String, Value>,
    /// The text of `input`, where it is streamed.
    input: String,
}

impl AnswerReader for Messages {
    fn read(&mut self, mut object: Value, sink: &mut Sink<'_>) -> Result<(), ModelError> {
        self.last_text = None;
        match text(&object, "type") {
            Some("message_start") => self.begin(take(&mut object, "message"), sink),
            Some("content_block_start") => {
                let index = count(&object, "/index").unwrap_or(self.blocks.len() as u64);
                self.add_block(index, take_map(&mut object, "content_block"), sink)
            }
            Some("content_block_delta") => self.extend_block(object, sink),
            Some("message_delta") => self.update(object, sink),
            Some("message_stop") => {
                self.is_complete = true;
                Ok(())
            }
            Some("message") => self.read_whole(object, sink),
            // Pings, ends of blocks, and events that are not known yet.
            _ => Ok(()),
        }
    }

    fn only_text(&self) -> Option<&'static str> {
        self.last_text.map(|_| "text")
    }

    fn add_text(&mut self, text: &str, sink: &mut Sink<'_>) -> Result<(), ModelError> {
        let block = self.last_text.and_then(|index| self.blocks.get_mut(&index));
        let Some(block) = block else { return Ok(()) };
        sink.keep(text.len())?;
        block.append("text".to_owned(), text.to_owned(), sink);
        Ok(())
    }

    fn is_complete(&self) -> bool {
        self.is_complete
    }

    fn has_stop_reason(&self) -> bool {
        self.envelope.get("stop_reason").is_some_and(Value::is_string)
    }

    fn usage(&self) -> Option<Usage> {
        (!self.usage.is_empty()).then(|| normalized(&self.usage.clone().into()))
    }

    fn finish(mut self: Box<Self>, origin: &Origin) -> Option<Draft> {
        let stop_reason = remove_text(&mut self.envelope, "stop_reason")?;
        let usage = self.usage().unwrap_or(Usage { requests: 1, ..Usage::default() });
        let id = self.envelope.shift_remove("id").unwrap_or_default();
        let response = id.as_str().unwrap_or_default();
        let blocks = self.blocks.into_values().enumerate();
        let parts =
            blocks.filter_map(|(index, block)| block.into_part(origin, CallPosition { response, index }));
        let parts: Vec<Part> = parts.collect();
        let server_calls = server_calls::anthropic_calls(&parts);
        let explanation = self.envelope.get("stop_details").and_then(|details| text(details, "explanation"));
        let refusal = explanation.map(str::to_owned).filter(|_| stop_reason == "refusal");
        let other = without(self.envelope.into(), &["type", "role"]);
        let (stop, raw_usage) = (stop(&stop_reason), Value::Object(self.usage));
        Some(Draft { parts, id, stop, stop_reason, usage, raw_usage, refusal, server_calls, other })
    }
}

impl Messages {
    fn begin(&mut self, mut message: Value, sink: &mut Sink<'_>) -> Result<(), ModelError> {
        for content in take_list(&mut message, "content") {
            self.add_block(self.blocks.len() as u64, into_map(content), sink)?;
        }
        sink.update(&mut self.usage, take_map(&mut message, "usage"))?;
        sink.update(&mut self.envelope, without(message, &["content", "usage"]))
    }

    fn read_whole(&mut self, message: Value, sink: &mut Sink<'_>) -> Result<(), ModelError> {
        self.is_complete = true;
        self.begin(message, sink)
    }

    fn add_block(
        &mut self,
        index: u64,
        content: Map<String, Value>,
        sink: &mut Sink<'_>,
    ) -> Result<(), ModelError> {
        let content = Value::Object(content);
        sink.keep_value(&content)?;
        let kind = text(&content, "type").unwrap_or_default();
        announce(kind, kind, text(&content, kind).unwrap_or_default(), sink);
        self.blocks.insert(index, Block { content: into_map(content), input: String::new() });
        Ok(())
    }

    fn extend_block(&mut self, mut event: Value, sink: &mut Sink<'_>) -> Result<(), ModelError> {
        let Some(index) = count(&event, "/index") else { return Ok(()) };
        let Some(block) = self.blocks.get_mut(&index) else { return Ok(()) };
        if holds_only_text(&event) && block.kind() == "text" {
            self.last_text = Some(index);
        }
        for (key, value) in take_map(&mut event, "delta") {
            sink.keep(value.as_str().map_or_else(|| weight(&value), str::len))?;
            block.extend(key, value, sink);
        }
        Ok(())
    }

    fn update(&mut self, mut event: Value, sink: &mut Sink<'_>) -> Result<(), ModelError> {
        sink.update(&mut self.usage, take_map(&mut event, "usage"))?;
        sink.update(&mut self.envelope, take_map(&mut event, "delta"))?;
        sink.update(&mut self.envelope, without(event, &["type", "delta", "usage"]))
    }
}

impl Block {
    fn extend(&mut self, key: String, value: Value, sink: &mut Sink<'_>) {
        match (key.as_str(), value) {
            ("type", _) => {}
            ("partial_json", Value::String(more)) => self.input.push_str(&more),
            ("citation", citation) => self.cite(citation),
            // A signature comes whole.
            ("signature", value) => drop(self.content.insert(key, value)),
            (_, Value::String(more)) => self.append(key, more, sink),
            (_, value) => drop(self.content.insert(key, value)),
        }
    }

    fn append(&mut self, key: String, more: String, sink: &mut Sink<'_>) {
        announce(self.kind(), &key, &more, sink);
        match self.content.get_mut(&key) {
            Some(Value::String(text)) => text.push_str(&more),
            _ => drop(self.content.insert(key, more.into())),
        }
    }

    fn cite(&mut self, citation: Value) {
        match self.content.get_mut("citations") {
            Some(Value::Array(citations)) => citations.push(citation),
            _ => drop(self.content.insert("citations".into(), vec![citation].into())),
        }
    }

    fn into_part(mut self, origin: &Origin, position: CallPosition<'_>) -> Option<Part> {
        match self.kind() {
            "text" => self.into_text(origin),
            "thinking" => self.into_thinking(origin),
            "tool_use" => Some(self.into_call(origin, position)),
            _ => {
                self.complete_input();
                Some(Part::Opaque(block(origin, self.content)))
            }
        }
    }

    fn into_text(self, origin: &Origin) -> Option<Part> {
        let text = self.string("text");
        let raw = block_with_more(origin, self.content, &["type", "text"]);
        // Sent back, an empty text would be refused.
        (!text.is_empty() || raw.is_some()).then(|| Part::Text { text: text.into(), raw })
    }

    fn into_thinking(self, origin: &Origin) -> Option<Part> {
        let text = self.string("thinking").into();
        let signature = Some(self.string("signature")).filter(|signature| !signature.is_empty());
        let raw = block_with_more(origin, self.content, &["type", "thinking", "signature"]);
        Some(Part::Thinking { text, signature, raw })
    }

    fn into_call(mut self, origin: &Origin, position: CallPosition<'_>) -> Part {
        let given = self.content.get("input").map(argument_text).unwrap_or_default();
        self.complete_input();
        let arguments = if self.input.is_empty() { given } else { std::mem::take(&mut self.input) };
        let (id, name) = (self.string("id"), self.string("name"));
        let raw = block_with_more(origin, self.content, &["type", "id", "name", "input"]);
        tool_call(&id, &name, arguments, raw, position)
    }

    /// Puts the streamed input where a whole block has it; as text where it is not JSON.
    fn complete_input(&mut self) {
        if !self.input.is_empty() {
            let input = serde_json::from_str(&self.input).unwrap_or_else(|_| self.input.clone().into());
            self.content.insert("input".into(), input);
        }
    }

    fn kind(&self) -> &str {
        self.content.get("type").and_then(Value::as_str).unwrap_or_default()
    }

    fn string(&self, key: &str) -> String {
        self.content.get(key).and_then(Value::as_str).unwrap_or_default().to_owned()
    }
}

/// Returns whether an event adds text to its block and nothing else.
fn holds_only_text(event: &Value) -> bool {
    let has_only = |value: Option<&Value>, known: &[&str]| {
        let fields = value.and_then(Value::as_object);
        fields.is_some_and(|fields| fields.keys().all(|key| known.contains(&key.as_str())))
    };
    has_only(Some(event), &["type", "index", "delta"])
        && has_only(event.get("delta"), &["type", "text"])
        && event.pointer("/delta/text").is_some_and(Value::is_string)
}

/// Gives out the text of a text block, and the thinking of a thinking block: the key has the kind's name.
fn announce(kind: &str, key: &str, more: &str, sink: &mut Sink<'_>) {
    match (kind, key) {
        ("text", "text") => sink.text(more),
        ("thinking", "thinking") => sink.thinking(more),
        _ => {}
    }
}

fn stop(word: &str) -> StopReason {
    match word {
        "end_turn" => StopReason::EndTurn,
        "tool_use" => StopReason::ToolUse,
        "max_tokens" | "model_context_window_exceeded" => StopReason::MaxTokens,
        "stop_sequence" => StopReason::StopSequence,
        "refusal" => StopReason::Refusal,
        "pause_turn" => StopReason::Pause,
        word => StopReason::Other(word.into()),
    }
}

fn normalized(usage: &Value) -> Usage {
    let count = |path| count(usage, path).unwrap_or(0);
    Usage {
        requests: 1,
        input: count("/input_tokens"),
        output: count("/output_tokens"),
        cache_read: count("/cache_read_input_tokens"),
        cache_write: count("/cache_creation_input_tokens"),
        reasoning: count("/output_tokens_details/thinking_tokens"),
        searches: count("/server_tool_use/web_search_requests"),
        ..Usage::default()
    }
}
