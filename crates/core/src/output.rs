//! What a call gives back, and attachments.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

use crate::{Digest, Failure, FailureKind, parse_strict};

/// What a call gives back: text or JSON, perhaps with attachments.
///
/// It is written as the text or value itself; with attachments, as an object with `$content` and
/// `$attachments`.
#[derive(Debug, Clone, PartialEq)]
pub struct Output {
    /// The text or value. A value is never a string: that is text.
    pub content: Content,
    /// Images and files that belong to it.
    pub attachments: Vec<Attachment>,
}

/// Text, or a structured value.
#[derive(Debug, Clone, PartialEq)]
pub enum Content {
    /// Text, given to a model as it is.
    Text(Arc<str>),
    /// A value, given to a model as JSON.
    Json(Arc<Value>),
}

impl Output {
    /// An output of text.
    pub fn text(text: impl Into<Arc<str>>) -> Self {
        Self { content: Content::Text(text.into()), attachments: Vec::new() }
    }

    /// An output of a value; a string becomes text.
    pub fn json(value: Value) -> Self {
        match value {
            Value::String(text) => Self::text(text),
            value => Self { content: Content::Json(Arc::new(value)), attachments: Vec::new() },
        }
    }

    /// Adds an attachment.
    #[must_use]
    pub fn with_attachment(mut self, attachment: Attachment) -> Self {
        self.attachments.push(attachment);
        self
    }

    /// Returns the text as a model or a person sees it: the text itself, or compact JSON.
    pub fn to_text(&self) -> Arc<str> {
        match &self.content {
            Content::Text(text) => text.clone(),
            Content::Json(value) => value.to_string().into(),
        }
    }

    /// Returns the output as a JSON value.
    pub fn to_value(&self) -> Value {
        match &self.content {
            Content::Text(text) => Value::String(text.to_string()),
            Content::Json(value) => Value::clone(value),
        }
    }

    /// Reads the output as a Rust value: from JSON, or from text that holds JSON where a string does not fit.
    pub fn parse<T: DeserializeOwned>(&self) -> Result<T, Failure> {
        let direct = serde_json::from_value(self.to_value());
        let Content::Text(text) = &self.content else { return direct.map_err(|error| self.misfit(&error)) };
        let parsed = || parse_strict(text.trim()).map_err(serde_json::Error::custom);
        direct.or_else(|_| parsed().and_then(serde_json::from_value)).map_err(|error| self.misfit(&error))
    }

    fn misfit(&self, error: &serde_json::Error) -> Failure {
        let text = self.to_text();
        let start: String = text.chars().take(80).collect();
        Failure::new(
            FailureKind::Output,
            format!("the answer `{start}` could not be read as the wanted type: {error}"),
        )
    }
}

impl fmt::Display for Output {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.to_text())
    }
}

impl From<&str> for Output {
    fn from(text: &str) -> Self {
        Self::text(text)
    }
}

impl From<String> for Output {
    fn from(text: String) -> Self {
        Self::text(text)
    }
}

/// A tool that returns nothing says that it is done: an empty answer makes models try again.
impl From<()> for Output {
    fn from((): ()) -> Self {
        Self::text("done")
    }
}

impl From<Value> for Output {
    fn from(value: Value) -> Self {
        Self::json(value)
    }
}

const ATTACHMENTS: &str = "$attachments";

#[derive(Serialize, Deserialize)]
struct Wrapped {
    #[serde(rename = "$content")]
    content: Value,
    #[serde(rename = "$attachments")]
    attachments: Vec<Attachment>,
}

impl Serialize for Output {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.content {
            Content::Text(text) if self.attachments.is_empty() => serializer.serialize_str(text),
            Content::Json(value) if self.attachments.is_empty() && value.get(ATTACHMENTS).is_none() => {
                value.serialize(serializer)
            }
            _ => Wrapped { content: self.to_value(), attachments: self.attachments.clone() }
                .serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for Output {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(deserializer)?;
        if value.get(ATTACHMENTS).is_none() {
            return Ok(Self::json(value));
        }
        let wrapped: Wrapped = serde_json::from_value(value).map_err(serde::de::Error::custom)?;
        Ok(Self { attachments: wrapped.attachments, ..Self::json(wrapped.content) })
    }
}

/// A file that goes with an input or a result.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Attachment {
    /// The name shown to the model.
    pub name: String,
    /// The media type, such as `image/png`; found from the content where it is not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub media_type: Option<String>,
    /// Where the bytes are.
    #[serde(flatten)]
    pub source: AttachmentSource,
}

/// Where the bytes of an attachment are.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AttachmentSource {
    /// A file, read when the call that uses it starts.
    Path(PathBuf),
    /// The bytes themselves.
    Data(Bytes),
}

impl Attachment {
    /// An attachment of a file.
    pub fn path(path: impl Into<PathBuf>) -> Self {
        let path = path.into();
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        Self { name, media_type: None, source: AttachmentSource::Path(path) }
    }

    /// An attachment of bytes with a media type.
    pub fn bytes(name: impl Into<String>, media_type: impl Into<String>, bytes: impl Into<Vec<u8>>) -> Self {
        Self {
            name: name.into(),
            media_type: Some(media_type.into()),
            source: AttachmentSource::Data(Bytes(Arc::from(bytes.into()))),
        }
    }

    /// Returns the size in bytes, where it is known.
    pub fn size(&self) -> Option<usize> {
        match &self.source {
            AttachmentSource::Path(_) => None,
            AttachmentSource::Data(bytes) => Some(bytes.0.len()),
        }
    }
}

/// Shared bytes, written as base64.
#[derive(Clone, PartialEq, Eq)]
pub struct Bytes(Arc<[u8]>);

impl Bytes {
    /// Returns the bytes.
    pub fn as_slice(&self) -> &[u8] {
        &self.0
    }

    /// Returns the digest of the bytes.
    pub fn digest(&self) -> Digest {
        Digest::hash(&self.0)
    }
}

impl From<Vec<u8>> for Bytes {
    fn from(bytes: Vec<u8>) -> Self {
        Self(bytes.into())
    }
}

impl std::fmt::Debug for Bytes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} bytes", self.0.len())
    }
}

impl Serialize for Bytes {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&STANDARD.encode(&self.0))
    }
}

impl<'de> Deserialize<'de> for Bytes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        STANDARD.decode(text).map(Self::from).map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_output_is_read_back_as_it_was_written() {
        let attachment = Attachment::bytes("a.png", "image/png", vec![1, 2]);
        let tricky = serde_json::json!({"$attachments": [], "x": 1});
        let outputs =
            [Output::text("hi"), Output::json(tricky), Output::text("see").with_attachment(attachment)];
        for output in outputs {
            let text = serde_json::to_string(&output).unwrap();
            assert_eq!(serde_json::from_str::<Output>(&text).unwrap(), output, "{text}");
        }
    }

    #[test]
    fn a_number_in_text_parses_as_a_number_and_as_a_string() {
        let output = Output::text("42");
        assert_eq!(output.parse::<u64>().unwrap(), 42);
        assert_eq!(output.parse::<String>().unwrap(), "42");
        assert!(output.parse::<Vec<u8>>().unwrap_err().message.contains("`42`"));
    }
}
