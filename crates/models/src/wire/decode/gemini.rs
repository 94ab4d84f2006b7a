//! Gemini's `generateContent` and `streamGenerateContent`: one response, or several that follow each other.
//!
//! Pieces of text are joined until one has a thought signature, which belongs to that piece and no other. The
//! API has no last event: the answer is complete where the body ends after a finish reason, of which there may
//! be more than one. Only the first candidate is read. Calls have ids only where the API gives them.

use llm_do_core::{ModelError, Origin, Part, StopReason, Usage};
use serde_json::{Map, Value};

use super::draft::{CallPosition, Draft, Sink, argument_text, block, block_with_more, tool_call};
use super::{AnswerReader, server_calls};
use crate::wire::json::{count, holds_more, into_map, take, take_list, take_map, text, weight, without};

/// One answer as it grows.
#[derive(Default)]
pub(super) struct Generation {
    /// The responses without their candidates, the newest values.
    envelope: Map<String, Value>,
    /// The candidate without its content.
    candidate: Map<String, Value>,
    pieces: Vec<Map<String, Value>>,
}

impl AnswerReader for Generation {
    fn read(&mut self, mut object: Value, sink: &mut Sink<'_>) -> Result<(), ModelError> {
        let candidates = take_list(&mut object, "candidates");
        sink.update(&mut self.envelope, without(object, &["candidates"]))?;
        let is_first = |candidate: &Value| count(candidate, "/index").unwrap_or(0) == 0;
        candidates.into_iter().filter(is_first).try_for_each(|candidate| self.read_candidate(candidate, sink))
    }

    fn is_complete(&self) -> bool {
        false
    }

    fn has_stop_reason(&self) -> bool {
        let blocked = self.envelope.get("promptFeedback").and_then(|feedback| text(feedback, "blockReason"));
        blocked.is_some() || self.candidate.get("finishReason").is_some_and(Value::is_string)
    }

    fn usage(&self) -> Option<Usage> {
        let usage = self.envelope.get("usageMetadata").filter(|usage| usage.is_object());
        let searches = u64::from(server_calls::has_searched(&self.candidate));
        usage.map(|usage| Usage { searches, ..normalized(usage) })
    }

    fn finish(mut self: Box<Self>, origin: &Origin) -> Option<Draft> {
        let stop_reason = self.stop_reason()?;
        let stop = stop(&stop_reason);
        let refusal = self.refusal().filter(|_| stop == StopReason::Refusal);
        let usage = self.usage().unwrap_or(Usage { requests: 1, ..Usage::default() });
        let raw_usage = self.envelope.shift_remove("usageMetadata").unwrap_or_default();
        let id = self.envelope.shift_remove("responseId").unwrap_or_default();
        let response = id.as_str().unwrap_or_default();
        let pieces = self.pieces.into_iter().enumerate();
        let parts = pieces.map(|(index, piece)| part(piece, origin, CallPosition { response, index }));
        let parts: Vec<Part> = parts.collect();
        let server_calls = server_calls::gemini_calls(&parts, &self.candidate);
        let mut other = self.envelope;
        other.extend(self.candidate);
        Some(Draft { parts, id, stop, stop_reason, usage, raw_usage, refusal, server_calls, other })
    }
}

impl Generation {
    fn read_candidate(&mut self, mut candidate: Value, sink: &mut Sink<'_>) -> Result<(), ModelError> {
        let mut content = take(&mut candidate, "content");
        let mut rest = without(candidate, &["content", "index"]);
        self.keep_citations(&mut rest, sink)?;
        sink.update(&mut self.candidate, rest)?;
        take_list(&mut content, "parts").into_iter().try_for_each(|part| self.read_part(part, sink))
    }

    /// Citations come piece by piece; all else of a candidate is repeated.
    fn keep_citations(
        &mut self,
        rest: &mut Map<String, Value>,
        sink: &mut Sink<'_>,
    ) -> Result<(), ModelError> {
        let known = self.candidate.get_mut("citationMetadata").and_then(Value::as_object_mut);
        let Some(known) = known else { return Ok(()) };
        for (key, value) in into_map(rest.shift_remove("citationMetadata").unwrap_or_default()) {
            sink.keep(weight(&value))?;
            match (known.get_mut(&key), value) {
                (Some(Value::Array(list)), Value::Array(more)) => list.extend(more),
                (_, value) => drop(known.insert(key, value)),
            }
        }
        Ok(())
    }

    fn read_part(&mut self, part: Value, sink: &mut Sink<'_>) -> Result<(), ModelError> {
        let part = into_map(part);
        let shown = part.get("text").and_then(Value::as_str).unwrap_or_default();
        if is_thought(&part) {
            sink.thinking(shown);
        } else {
            sink.text(shown);
        }
        let is_plain = is_plain_text(&part);
        if part.is_empty() || (is_plain && shown.is_empty()) {
            return Ok(());
        }
        match self.pieces.last_mut() {
            Some(last) if is_plain && is_plain_text(last) && is_thought(last) == is_thought(&part) => {
                sink.keep(shown.len())?;
                append(last, shown);
            }
            _ => {
                let part = Value::Object(part);
                sink.keep_value(&part)?;
                self.pieces.push(into_map(part));
            }
        }
        Ok(())
    }

    /// Returns the finish reason, or why the prompt was blocked.
    fn stop_reason(&mut self) -> Option<String> {
        if let Some(Value::String(word)) = self.candidate.shift_remove("finishReason") {
            return Some(word);
        }
        let blocked =
            self.envelope.get("promptFeedback").and_then(|feedback| text(feedback, "blockReason"))?;
        Some(format!("blocked:{blocked}"))
    }

    fn refusal(&self) -> Option<String> {
        let said = self.candidate.get("finishMessage").and_then(Value::as_str);
        let blocked = || text(self.envelope.get("promptFeedback")?, "blockReasonMessage");
        said.or_else(blocked).map(str::to_owned)
    }
}

fn is_thought(part: &Map<String, Value>) -> bool {
    part.get("thought").and_then(Value::as_bool).unwrap_or(false)
}

/// Returns whether a part is text or thought and nothing else, so that more of it may follow.
fn is_plain_text(part: &Map<String, Value>) -> bool {
    part.get("text").is_some_and(Value::is_string) && !holds_more(part, &["text", "thought"])
}

fn append(part: &mut Map<String, Value>, more: &str) {
    if let Some(Value::String(text)) = part.get_mut("text") {
        text.push_str(more);
    }
}

fn part(piece: Map<String, Value>, origin: &Origin, position: CallPosition<'_>) -> Part {
    if piece.get("functionCall").is_some_and(Value::is_object) {
        return call(piece, origin, position);
    }
    let Some(Value::String(said)) = piece.get("text") else { return Part::Opaque(block(origin, piece)) };
    let said = said.as_str().into();
    if !is_thought(&piece) {
        return Part::Text { text: said, raw: block_with_more(origin, piece, &["text", "thought"]) };
    }
    let signature = piece.get("thoughtSignature").and_then(Value::as_str).map(str::to_owned);
    let raw = block_with_more(origin, piece, &["text", "thought", "thoughtSignature"]);
    Part::Thinking { text: said, signature, raw }
}

fn call(piece: Map<String, Value>, origin: &Origin, position: CallPosition<'_>) -> Part {
    let mut whole = Value::Object(piece);
    let raw = block(origin, whole.clone());
    let mut function = Value::Object(take_map(&mut whole, "functionCall"));
    let arguments = argument_text(&take(&mut function, "args"));
    let id = text(&function, "id").unwrap_or_default();
    let name = text(&function, "name").unwrap_or_default();
    let is_more = whole.as_object().is_some_and(|map| holds_more(map, &["functionCall"]))
        || function.as_object().is_some_and(|map| holds_more(map, &["name", "args", "id"]));
    tool_call(id, name, arguments, is_more.then_some(raw), position)
}

fn stop(word: &str) -> StopReason {
    match word {
        "STOP" => StopReason::EndTurn,
        "MAX_TOKENS" => StopReason::MaxTokens,
        "SAFETY"
        | "RECITATION"
        | "LANGUAGE"
        | "BLOCKLIST"
        | "PROHIBITED_CONTENT"
        | "SPII"
        | "MODEL_ARMOR"
        | "IMAGE_SAFETY"
        | "IMAGE_PROHIBITED_CONTENT"
        | "IMAGE_RECITATION" => StopReason::Refusal,
        word if word.starts_with("blocked:") => StopReason::Refusal,
        word => StopReason::Other(word.into()),
    }
}

fn normalized(usage: &Value) -> Usage {
    let count = |path| count(usage, path).unwrap_or(0);
    let (cache_read, reasoning) = (count("/cachedContentTokenCount"), count("/thoughtsTokenCount"));
    let prompt = count("/promptTokenCount").saturating_sub(cache_read);
    Usage {
        requests: 1,
        input: prompt.saturating_add(count("/toolUsePromptTokenCount")),
        output: count("/candidatesTokenCount").saturating_add(reasoning),
        cache_read,
        reasoning,
        ..Usage::default()
    }
}
