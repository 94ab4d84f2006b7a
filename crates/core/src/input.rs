//! What a call is given: text, a list of text and attachments, or an object.

use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::{AgentArgs, Attachment, AttachmentSource, Payload};

/// What a caller hands to an agent, tool or entry.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Input {
    /// Text, read as `{"input": text}`.
    Text(String),
    /// Text and attachments in order.
    Parts(Vec<InputPart>),
    /// An object that must fit the callable's schema.
    Object(Value),
}

/// One piece of a list input.
#[derive(Debug, Clone, PartialEq)]
pub enum InputPart {
    /// Text.
    Text(String),
    /// A file.
    Attachment(Attachment),
}

impl Input {
    /// Adds attachments to the input.
    #[must_use]
    pub fn with_attachments(self, attachments: impl IntoIterator<Item = Attachment>) -> Self {
        let mut attachments = attachments.into_iter().peekable();
        if attachments.peek().is_none() {
            return self;
        }
        let Value::Object(mut map) = self.into_value() else { unreachable!("an input is an object") };
        let list = map.entry("attachments").or_insert_with(|| json!([]));
        if let Value::Array(list) = list {
            list.extend(attachments.map(attachment_value));
        }
        Self::Object(Value::Object(map))
    }

    /// Returns whether the input names files by their paths, so that whoever reads it would attach them.
    ///
    /// What cannot be read as an attachment counts too: a schema may still turn it into one.
    pub fn names_files(&self) -> bool {
        let payload = self.clone().into_payload();
        match payload.value().get("attachments") {
            None | Some(Value::Null) => false,
            Some(Value::Array(list)) => list.iter().any(|item| !holds_bytes(item)),
            Some(_) => true,
        }
    }

    /// Returns the payload that is validated, approved and recorded.
    pub fn into_payload(self) -> Payload {
        Payload::new(self.into_value())
    }

    fn into_value(self) -> Value {
        match self {
            Self::Text(text) => prompt_value(text),
            Self::Parts(parts) => parts_value(parts),
            Self::Object(value @ Value::Object(_)) => value,
            Self::Object(other) => prompt_value(other),
        }
    }
}

/// An object with one field, and with room for no more: every run and every call keeps its input.
fn prompt_value(input: impl Into<Value>) -> Value {
    Value::Object(Map::from_iter([("input".to_owned(), input.into())]))
}

fn parts_value(parts: Vec<InputPart>) -> Value {
    let mut texts = Vec::new();
    let mut attachments = Vec::new();
    for part in parts {
        match part {
            InputPart::Text(text) => texts.push(text),
            InputPart::Attachment(attachment) => attachments.push(attachment_value(attachment)),
        }
    }
    let mut map = Map::new();
    map.insert("input".into(), texts.join("\n").into());
    if !attachments.is_empty() {
        map.insert("attachments".into(), attachments.into());
    }
    Value::Object(map)
}

/// Writes an attachment as an input holds it: the path, or an object with the bytes in base64.
fn attachment_value(attachment: Attachment) -> Value {
    match &attachment.source {
        AttachmentSource::Path(path) if attachment.media_type.is_none() => path.to_string_lossy().into(),
        _ => serde_json::to_value(&attachment).unwrap_or(Value::Null),
    }
}

/// Reads the attachments of an input back.
pub fn input_attachments(input: &Payload) -> Vec<Attachment> {
    let list = input.value().get("attachments").and_then(Value::as_array);
    list.into_iter().flatten().filter_map(read_attachment).collect()
}

fn holds_bytes(item: &Value) -> bool {
    read_attachment(item).is_some_and(|attachment| matches!(attachment.source, AttachmentSource::Data(_)))
}

/// Reads one item of the field `attachments`: a path, or an attachment as an object.
pub fn read_attachment(value: &Value) -> Option<Attachment> {
    match value {
        Value::String(path) => Some(Attachment::path(path)),
        other => serde_json::from_value(other.clone()).ok(),
    }
}

impl From<&str> for Input {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for Input {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<Value> for Input {
    fn from(value: Value) -> Self {
        Self::Object(value)
    }
}

/// A typed input is passed as it is.
impl<T: AgentArgs + Serialize> From<T> for Input {
    fn from(args: T) -> Self {
        // What cannot be written as JSON does not fit any schema, which the gate reports.
        Self::Object(serde_json::to_value(&args).unwrap_or_default())
    }
}

impl From<Vec<InputPart>> for Input {
    fn from(parts: Vec<InputPart>) -> Self {
        Self::Parts(parts)
    }
}

impl From<&str> for InputPart {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for InputPart {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<Attachment> for InputPart {
    fn from(attachment: Attachment) -> Self {
        Self::Attachment(attachment)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_lists_and_objects_become_one_shape() {
        assert_eq!(Input::from("hi").into_payload().value(), &json!({"input": "hi"}));
        assert_eq!(Input::from(json!({"a": 1})).into_payload().value(), &json!({"a": 1}));
        let parts = vec![InputPart::from("look"), Attachment::path("a.png").into()];
        let payload = Input::from(parts).into_payload();
        assert_eq!(payload.value(), &json!({"input": "look", "attachments": ["a.png"]}));
    }

    #[test]
    fn attached_bytes_come_back_as_they_were() {
        let attachment = Attachment::bytes("a.bin", "application/octet-stream", vec![0, 159, 146, 150]);
        let payload = Input::from("x").with_attachments([attachment.clone()]).into_payload();
        assert_eq!(input_attachments(&payload), [attachment]);
    }

    #[test]
    fn files_are_named_by_paths_and_not_by_bytes() {
        let names_files = |attachments: Value| Input::from(json!({"attachments": attachments})).names_files();
        for files in [json!(["a.txt"]), json!("a.txt"), json!([{"name": "a", "path": "/a"}]), json!({"a": 1})]
        {
            assert!(names_files(files.clone()), "{files}");
        }
        for none in [json!([]), json!(null), json!([{"name": "a", "data": "aGVsbG8="}])] {
            assert!(!names_files(none.clone()), "{none}");
        }
        assert!(Input::from(vec![Attachment::path("a.png").into()]).names_files());
        assert!(!Input::from(r#"{"attachments": ["a.txt"]}"#).names_files());
    }
}
