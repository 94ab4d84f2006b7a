//! What the readers of all APIs share: where parts go while they arrive, and how they become a message.

use std::collections::HashSet;

use llm_do_core::{
    Message, ModelError, ModelPart, ModelResponse, Origin, Part, ProviderBlock, Role, ServerCall, StopReason,
    ToolCall, Usage,
};
use serde_json::{Map, Value, json};

use super::generated_files::with_generated_files;
use crate::wire::MAX_MESSAGE_BYTES;
use crate::wire::json::{holds_more, is_nothing, too_large, weight};

/// Begins the ids of calls to which their provider gave none. They are never sent back to it.
pub(crate) const GENERATED_ID: &str = "made_call_";

/// Where a reader puts what arrives.
pub(super) struct Sink<'a> {
    parts: &'a mut Vec<ModelPart>,
    kept: &'a mut usize,
}

impl<'a> Sink<'a> {
    pub(super) fn new(parts: &'a mut Vec<ModelPart>, kept: &'a mut usize) -> Self {
        Self { parts, kept }
    }

    /// Gives out more text.
    pub(super) fn text(&mut self, text: &str) {
        if !text.is_empty() {
            self.parts.push(ModelPart::Text(text.to_owned()));
        }
    }

    /// Returns the text that was given out last.
    pub(super) fn last_text(&self) -> Option<&str> {
        match self.parts.last() {
            Some(ModelPart::Text(text)) => Some(text),
            _ => None,
        }
    }

    /// Gives out more thinking.
    pub(super) fn thinking(&mut self, text: &str) {
        if !text.is_empty() {
            self.parts.push(ModelPart::Thinking(text.to_owned()));
        }
    }

    /// Counts what the message keeps, and refuses what is too much.
    pub(super) fn keep(&mut self, bytes: usize) -> Result<(), ModelError> {
        *self.kept = self.kept.saturating_add(bytes);
        if *self.kept > MAX_MESSAGE_BYTES {
            return Err(too_large(format!(
                "the message is larger than the limit of {} MiB",
                MAX_MESSAGE_BYTES >> 20
            )));
        }
        Ok(())
    }

    /// Counts a value that the message keeps.
    pub(super) fn keep_value(&mut self, value: &Value) -> Result<(), ModelError> {
        self.keep(weight(value))
    }

    /// Replaces older values by newer ones. An empty value never replaces one that is not.
    pub(super) fn update(
        &mut self,
        map: &mut Map<String, Value>,
        newer: Map<String, Value>,
    ) -> Result<(), ModelError> {
        for (key, value) in newer {
            if value.is_null() || (is_nothing(&value) && map.contains_key(&key)) {
                continue;
            }
            let older = map.get(&key);
            // Most events repeat what the first one said.
            if older == Some(&value) {
                continue;
            }
            self.keep((weight(&value) + key.len()).saturating_sub(older.map_or(0, weight)))?;
            map.insert(key, value);
        }
        Ok(())
    }
}

/// A complete answer, before it is a message.
pub(super) struct Draft {
    pub(super) parts: Vec<Part>,
    pub(super) id: Value,
    /// What the stop reason means, calls not considered.
    pub(super) stop: StopReason,
    /// The provider's own word for it.
    pub(super) stop_reason: String,
    pub(super) usage: Usage,
    pub(super) raw_usage: Value,
    pub(super) refusal: Option<String>,
    /// What the provider's own tools did.
    pub(super) server_calls: Vec<ServerCall>,
    /// The rest of the response.
    pub(super) other: Map<String, Value>,
}

impl Draft {
    /// Returns the answer as the model's message.
    pub(super) fn into_response(self, origin: Origin) -> ModelResponse {
        let data = json!({
            "id": self.id,
            "stop_reason": self.stop_reason,
            "usage": self.raw_usage,
            "refusal": self.refusal,
            "other": self.other,
        });
        let data = without_nothing(data);
        let parts = with_distinct_ids(self.parts, self.id.as_str().unwrap_or_default());
        let parts = with_generated_files(parts);
        let message = Message { role: Role::Assistant, parts, origin: Some(Origin { data, ..origin }) };
        // Half of the providers report an ordinary end where the model asks for tools.
        let stop = match self.stop {
            StopReason::EndTurn if self.refusal.is_some() => StopReason::Refusal,
            StopReason::EndTurn if message.tool_calls().next().is_some() => StopReason::ToolUse,
            stop => stop,
        };
        ModelResponse { server_calls: self.server_calls, ..ModelResponse::new(message, stop, self.usage) }
    }
}

/// Gives a call whose id another one has an id of its own, lest one result answer both.
fn with_distinct_ids(mut parts: Vec<Part>, response: &str) -> Vec<Part> {
    let mut ids = HashSet::new();
    for (index, part) in parts.iter_mut().enumerate() {
        if let Part::ToolCall(call) = part
            && !ids.insert(call.id.clone())
        {
            call.id = CallPosition { response, index }.generated_id();
        }
    }
    parts
}

fn without_nothing(data: Value) -> Value {
    match data {
        Value::Object(map) => map.into_iter().filter(|(_, value)| !is_nothing(value)).collect(),
        data => data,
    }
}

/// A block as its provider sent it.
pub(super) fn block(origin: &Origin, value: impl Into<Value>) -> ProviderBlock {
    ProviderBlock { provider: origin.provider.clone(), value: value.into() }
}

/// The block, where it holds more than these keys.
pub(super) fn block_with_more(
    origin: &Origin,
    map: Map<String, Value>,
    known: &[&str],
) -> Option<ProviderBlock> {
    holds_more(&map, known).then(|| block(origin, map))
}

/// A tool call. Without an id it gets one from the response and its position in it, always the same.
pub(super) fn tool_call(
    id: &str,
    name: &str,
    arguments: String,
    raw: Option<ProviderBlock>,
    position: CallPosition<'_>,
) -> Part {
    let id = if id.is_empty() { position.generated_id() } else { id.to_owned() };
    let is_blank = arguments.trim().is_empty();
    let arguments = if is_blank { "{}".into() } else { arguments.into() };
    Part::ToolCall(ToolCall { id, name: name.into(), arguments, raw })
}

/// The position of a call: in which response, and as which of its parts.
#[derive(Clone, Copy)]
pub(super) struct CallPosition<'a> {
    pub(super) response: &'a str,
    pub(super) index: usize,
}

impl CallPosition<'_> {
    /// Makes an id of letters that every provider takes, should the conversation move to another one.
    fn generated_id(self) -> String {
        let letters = self.response.chars().filter(|letter| letter.is_ascii_alphanumeric() || *letter == '-');
        let response: String = letters.take(32).collect();
        format!("{GENERATED_ID}{response}_{}", self.index)
    }
}

/// Returns argument text from a value: an object as JSON, a text as it is.
pub(super) fn argument_text(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        value => exact_text(value),
    }
}

/// Writes arguments that came as a value. A whole float beyond 64 bits may have been an integer that was rounded when it
/// was read, so it is written as one: whoever reads the arguments refuses it.
fn exact_text(value: &Value) -> String {
    match value {
        Value::Number(number) => {
            match number.as_f64().filter(|float| number.is_f64() && float.abs() >= TWO_POW_63) {
                Some(float) => format!("{float:.0}"),
                None => number.to_string(),
            }
        }
        Value::Array(items) => format!("[{}]", items.iter().map(exact_text).collect::<Vec<_>>().join(",")),
        Value::Object(map) => {
            let field = |(key, value): (&String, &Value)| {
                format!("{}:{}", Value::from(key.as_str()), exact_text(value))
            };
            format!("{{{}}}", map.iter().map(field).collect::<Vec<_>>().join(","))
        }
        other => other.to_string(),
    }
}

const TWO_POW_63: f64 = 9_223_372_036_854_775_808.0;

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn arguments_that_were_rounded_are_written_so_that_they_are_refused() {
        let arguments: Value =
            serde_json::from_str(r#"{"a": ["x\"", 1.5], "id": 123456789012345678901}"#).unwrap();
        let text = argument_text(&arguments);
        assert!(llm_do_core::parse_arguments(&text).is_err(), "{text}");
        let kept = json!({"a": ["x\"\n", 1.5, null, true], "b": {"c": u64::MAX}});
        assert_eq!(argument_text(&kept), kept.to_string());
    }
}
