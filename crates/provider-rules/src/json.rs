//! Small readers of JSON.

use serde_json::Value;

/// Returns the items of an array under a key, or none.
pub(crate) fn items<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value[key].as_array().map_or(&[], Vec::as_slice)
}

/// Returns the text under a key, or an empty one.
pub(crate) fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_default()
}

/// Returns whether a value is present and not null.
pub(crate) fn is_set(value: &Value) -> bool {
    !value.is_null()
}

/// Returns whether a text has so many characters, all of which are ASCII letters, digits or one of `others`.
pub(crate) fn is_name(name: &str, max_len: usize, others: &str) -> bool {
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || others.contains(c);
    (1..=max_len).contains(&name.len()) && name.chars().all(is_allowed)
}

/// Returns the lowercase text of all strings in a value, for a search.
pub(crate) fn contains_text(value: &Value, wanted: &str) -> bool {
    match value {
        Value::String(text) => text.to_lowercase().contains(wanted),
        Value::Array(items) => items.iter().any(|item| contains_text(item, wanted)),
        Value::Object(map) => map.values().any(|item| contains_text(item, wanted)),
        _ => false,
    }
}
