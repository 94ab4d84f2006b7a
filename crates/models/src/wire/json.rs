//! Small ways to read JSON that a provider sent.

use llm_do_core::{ModelError, ModelErrorKind};
use serde_json::{Map, Value};

use super::{MAX_EVENT_VALUES, truncated};

/// Below this size no event can hold too many values to matter.
const UNCOUNTED_BYTES: usize = 64 * 1024;

/// What a JSON value weighs in memory beside its text.
const VALUE_BYTES: usize = 64;

/// Parses an event, a line or a whole body.
pub(super) fn parse(bytes: &[u8]) -> Result<Value, ModelError> {
    if bytes.len() > UNCOUNTED_BYTES && values(bytes) > MAX_EVENT_VALUES {
        return Err(too_large(format!(
            "an event has more than {MAX_EVENT_VALUES} JSON values, the limit for one event"
        )));
    }
    serde_json::from_slice(bytes).map_err(|error| not_json(&error, bytes))
}

/// The error of a provider that sends more than is read. The next answer would be no smaller.
pub(super) fn too_large(message: String) -> ModelError {
    ModelError::new(ModelErrorKind::AnswerTooLarge, message)
}

fn not_json(error: &serde_json::Error, bytes: &[u8]) -> ModelError {
    let start = String::from_utf8_lossy(&bytes[..bytes.len().min(80)]);
    truncated(format!("the provider sent what is not JSON ({error}): `{}`", start.trim()))
}

/// Counts the values of a JSON text, or a few more.
fn values(bytes: &[u8]) -> usize {
    let (mut count, mut is_string, mut is_escaped) = (1, false, false);
    for byte in bytes {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = is_string,
            b'"' => is_string = !is_string,
            b',' | b'[' | b'{' if !is_string => count += 1,
            _ => {}
        }
    }
    count
}

/// Returns what a value weighs in memory, roughly.
pub(super) fn weight(value: &Value) -> usize {
    let content = match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
        Value::String(text) => text.len(),
        Value::Array(values) => values.iter().map(weight).sum(),
        Value::Object(map) => map.iter().map(|(key, value)| VALUE_BYTES + key.len() + weight(value)).sum(),
    };
    VALUE_BYTES + content
}

/// Returns the text under a key.
pub(super) fn text<'a>(value: &'a Value, key: &str) -> Option<&'a str> {
    value.get(key)?.as_str()
}

/// Takes the value under a key and leaves nothing.
pub(super) fn take(value: &mut Value, key: &str) -> Value {
    value.get_mut(key).map(Value::take).unwrap_or_default()
}

/// Takes the object under a key, or an empty one.
pub(super) fn take_map(value: &mut Value, key: &str) -> Map<String, Value> {
    into_map(take(value, key))
}

/// Takes the list under a key, or an empty one.
pub(super) fn take_list(value: &mut Value, key: &str) -> Vec<Value> {
    match take(value, key) {
        Value::Array(values) => values,
        _ => Vec::new(),
    }
}

/// Returns the object, or an empty one where it is none.
pub(super) fn into_map(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(map) => map,
        _ => Map::new(),
    }
}

/// Returns the object without these keys.
pub(super) fn without(value: Value, keys: &[&str]) -> Map<String, Value> {
    let mut map = into_map(value);
    // Few keys are left out, and the order of the others is kept.
    keys.iter().for_each(|key| drop(map.shift_remove(*key)));
    map
}

/// Removes a text from an object; what is not text counts as none.
pub(super) fn remove_text(map: &mut Map<String, Value>, key: &str) -> Option<String> {
    match map.shift_remove(key) {
        Some(Value::String(text)) => Some(text),
        _ => None,
    }
}

/// Returns the count at a path such as `/details/cached_tokens`.
pub(super) fn count(value: &Value, path: &str) -> Option<u64> {
    // No key has characters that a JSON pointer would have to escape, so nothing is copied to look for them.
    path.split('/').skip(1).try_fold(value, |value, key| value.get(key))?.as_u64()
}

/// Returns whether a value holds no information.
pub(super) fn is_nothing(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(values) => values.is_empty(),
        Value::Object(map) => map.is_empty(),
        _ => false,
    }
}

/// Returns whether an object reports an error. Hosts fill the field with many kinds of nothing; some have no such field
/// and call the whole object an error.
pub(super) fn has_error(object: &Value) -> bool {
    match object.get("error") {
        None => text(object, "object") == Some("error"),
        Some(Value::Bool(false)) => false,
        Some(Value::String(message)) => !message.is_empty(),
        Some(error) => !is_nothing(error),
    }
}

/// Returns whether an object holds more than these keys.
pub(super) fn holds_more(map: &Map<String, Value>, known: &[&str]) -> bool {
    map.iter().any(|(key, value)| !known.contains(&key.as_str()) && !is_nothing(value))
}
