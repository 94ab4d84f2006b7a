//! OpenAI's Responses: events that end with the whole response, or the response alone.
//!
//! One item of the output is one part, with the item as its `raw`: a message's texts are joined, a reasoning
//! item is thinking where it shows text and opaque where it does not. The last event repeats the whole output;
//! hosts that leave it out there have sent each item when it was done.

use std::collections::BTreeMap;

use llm_do_core::{AttemptCost, ModelError, Origin, Part, StopReason, Usage};
use serde_json::{Map, Value};

use super::draft::{CallPosition, Draft, Sink, argument_text, block, tool_call};
use super::{AnswerReader, server_calls};
use crate::wire::errors;
use crate::wire::json::{count, has_error, into_map, remove_text, take, take_list, text, weight};

/// Fields of a response that repeat the request.
const REPEATED: &[&str] = &[
    "background",
    "frequency_penalty",
    "input",
    "instructions",
    "max_output_tokens",
    "max_tool_calls",
    "object",
    "parallel_tool_calls",
    "presence_penalty",
    "prompt",
    "prompt_cache_key",
    "prompt_cache_retention",
    "reasoning",
    "safety_identifier",
    "store",
    "temperature",
    "text",
    "tool_choice",
    "tools",
    "top_logprobs",
    "top_p",
    "truncation",
    "user",
];

/// One response as it grows.
#[derive(Default)]
pub(super) struct ResponsesAnswer {
    /// The response without its output.
    envelope: Map<String, Value>,
    items: BTreeMap<u64, Value>,
    /// Whether texts were given out piece by piece.
    has_deltas: bool,
    is_complete: bool,
}

impl AnswerReader for ResponsesAnswer {
    fn read(&mut self, mut object: Value, sink: &mut Sink<'_>) -> Result<(), ModelError> {
        if text(&object, "object") == Some("response") {
            return self.complete(object, sink);
        }
        match text(&object, "type") {
            Some("response.output_text.delta") => {
                self.has_deltas = true;
                sink.text(text(&object, "delta").unwrap_or_default());
            }
            Some("response.reasoning_summary_text.delta" | "response.reasoning_text.delta") => {
                self.has_deltas = true;
                sink.thinking(text(&object, "delta").unwrap_or_default());
            }
            Some("response.output_item.done") => {
                let index = count(&object, "/output_index").unwrap_or(self.items.len() as u64);
                return self.keep_item(index, take(&mut object, "item"), sink);
            }
            Some("response.completed" | "response.incomplete" | "response.failed" | "response.cancelled") => {
                return self.complete(take(&mut object, "response"), sink);
            }
            Some("error") => return Err(errors::in_answer(&object).not_charged()),
            _ => return self.learn(take(&mut object, "response"), sink),
        }
        Ok(())
    }

    fn is_complete(&self) -> bool {
        self.is_complete
    }

    fn usage(&self) -> Option<Usage> {
        let usage = self.envelope.get("usage").filter(|usage| usage.is_object());
        let searches = self.items.values().filter(|item| text(item, "type") == Some("web_search_call"));
        let searches = searches.count() as u64;
        usage.map(|usage| Usage { searches, ..normalized(usage) })
    }

    fn finish(mut self: Box<Self>, origin: &Origin) -> Option<Draft> {
        let status = remove_text(&mut self.envelope, "status").filter(|_| self.is_complete)?;
        let usage = self.usage().unwrap_or(Usage { requests: 1, ..Usage::default() });
        let raw_usage = self.envelope.shift_remove("usage").unwrap_or_default();
        let id = self.envelope.shift_remove("id").unwrap_or_default();
        let reason = self.envelope.get("incomplete_details").and_then(|details| text(details, "reason"));
        let stop = stop(&status, reason);
        let stop_reason = reason.map(|reason| format!("{status}:{reason}")).unwrap_or(status);
        let message: String = self.items.values().map(|item| joined(item, "content", "refusal")).collect();
        let refusal = Some(message).filter(|message| !message.is_empty());
        let response = id.as_str().unwrap_or_default();
        let items = self.items.into_values().enumerate();
        let parts = items.map(|(index, item)| part(item, origin, CallPosition { response, index }));
        let parts: Vec<Part> = parts.collect();
        let server_calls = server_calls::responses_calls(&parts);
        let other = self.envelope;
        Some(Draft { parts, id, stop, stop_reason, usage, raw_usage, refusal, server_calls, other })
    }
}

impl ResponsesAnswer {
    /// Takes the last word about the response.
    fn complete(&mut self, mut response: Value, sink: &mut Sink<'_>) -> Result<(), ModelError> {
        let output = take_list(&mut response, "output");
        if has_error(&response) || text(&response, "status") == Some("failed") {
            let error = errors::in_answer(&response);
            self.learn(response, sink)?;
            // This event ends the response, so the usage that it reports is final.
            let cost = self.usage().map_or(AttemptCost::Nothing, |usage| AttemptCost::Known(Box::new(usage)));
            return Err(ModelError { cost, ..error });
        }
        self.learn(response, sink)?;
        self.replace_items(output, sink)?;
        if !self.has_deltas {
            self.items.values().for_each(|item| announce(item, sink));
        }
        self.is_complete = true;
        Ok(())
    }

    fn replace_items(&mut self, output: Vec<Value>, sink: &mut Sink<'_>) -> Result<(), ModelError> {
        if output.is_empty() {
            return Ok(());
        }
        let earlier: usize = self.items.values().map(weight).sum();
        let newer: usize = output.iter().map(weight).sum();
        sink.keep(newer.saturating_sub(earlier))?;
        self.items = (0..).zip(output).collect();
        Ok(())
    }

    fn keep_item(&mut self, index: u64, item: Value, sink: &mut Sink<'_>) -> Result<(), ModelError> {
        sink.keep_value(&item)?;
        self.items.insert(index, item);
        Ok(())
    }

    fn learn(&mut self, response: Value, sink: &mut Sink<'_>) -> Result<(), ModelError> {
        let mut envelope = into_map(response);
        envelope
            .retain(|key, value| key != "output" && !value.is_null() && !REPEATED.contains(&key.as_str()));
        sink.update(&mut self.envelope, envelope)
    }
}

/// Gives out the texts of an item that was not streamed.
fn announce(item: &Value, sink: &mut Sink<'_>) {
    match text(item, "type") {
        Some("message") => sink.text(&joined(item, "content", "text")),
        _ => sink.thinking(&thinking(item)),
    }
}

fn part(item: Value, origin: &Origin, position: CallPosition<'_>) -> Part {
    match text(&item, "type") {
        Some("message") => message_part(item, origin),
        Some("reasoning") => reasoning_part(item, origin),
        Some("function_call") => call_part(item, origin, position),
        _ => Part::Opaque(block(origin, item)),
    }
}

fn message_part(item: Value, origin: &Origin) -> Part {
    let said = joined(&item, "content", "text");
    let raw = block(origin, item);
    if said.is_empty() { Part::Opaque(raw) } else { Part::Text { text: said.into(), raw: Some(raw) } }
}

fn reasoning_part(item: Value, origin: &Origin) -> Part {
    let shown = thinking(&item);
    let raw = block(origin, item);
    if shown.is_empty() {
        return Part::Opaque(raw);
    }
    Part::Thinking { text: shown.into(), signature: None, raw: Some(raw) }
}

fn call_part(item: Value, origin: &Origin, position: CallPosition<'_>) -> Part {
    let arguments = item.get("arguments").map(argument_text).unwrap_or_default();
    let id = text(&item, "call_id").unwrap_or_default().to_owned();
    let name = text(&item, "name").unwrap_or_default().to_owned();
    tool_call(&id, &name, arguments, Some(block(origin, item)), position)
}

/// Returns what a reasoning item shows: its summary, and its text where the model is open.
fn thinking(item: &Value) -> String {
    if text(item, "type") != Some("reasoning") {
        return String::new();
    }
    joined(item, "summary", "text") + &joined(item, "content", "text")
}

/// Joins the texts under a key in a list of an item.
fn joined(item: &Value, list: &str, key: &str) -> String {
    let pieces = item.get(list).and_then(Value::as_array).into_iter().flatten();
    pieces.filter_map(|piece| text(piece, key)).collect()
}

fn stop(status: &str, reason: Option<&str>) -> StopReason {
    match (status, reason) {
        ("completed", _) => StopReason::EndTurn,
        ("incomplete", Some("max_output_tokens")) => StopReason::MaxTokens,
        ("incomplete", Some("content_filter")) => StopReason::Refusal,
        (_, Some(reason)) => StopReason::Other(reason.into()),
        (status, None) => StopReason::Other(status.into()),
    }
}

fn normalized(usage: &Value) -> Usage {
    let count = |path| count(usage, path).unwrap_or(0);
    let cache_read = count("/input_tokens_details/cached_tokens");
    let cache_write = count("/input_tokens_details/cache_write_tokens");
    Usage {
        requests: 1,
        input: count("/input_tokens").saturating_sub(cache_read).saturating_sub(cache_write),
        output: count("/output_tokens"),
        cache_read,
        cache_write,
        reasoning: count("/output_tokens_details/reasoning_tokens"),
        ..Usage::default()
    }
}
