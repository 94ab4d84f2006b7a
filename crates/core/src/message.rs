//! Messages that lose nothing between providers, and the conversation they form.
//!
//! Each part keeps, beside the meaning that llm-do understands, what the provider sent it as, so that it
//! can be sent back untouched. A [`Conversation`] knows its [`Head`]: a running digest that names the
//! history without repeating it.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::digest::DigestBuilder;
use crate::{Attachment, AttachmentSource, Digest, Name};

/// Who a message is from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// The caller: input, and the results of tool calls.
    User,
    /// The model.
    Assistant,
}

/// One message of a conversation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Message {
    /// Who it is from.
    pub role: Role,
    /// What it consists of, in order.
    pub parts: Vec<Part>,
    /// Which model wrote it, and what its provider said about it as a whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<Origin>,
}

/// Where an assistant message comes from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Origin {
    /// The provider's name.
    pub provider: String,
    /// The model's name.
    pub model: String,
    /// What the provider wants back with the message (an id, for instance).
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub data: Value,
}

/// One piece of a message.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Part {
    /// Text.
    Text {
        /// The text.
        text: Arc<str>,
        /// The block as its provider sent it, where it holds more than the text (citations).
        #[serde(default, skip_serializing_if = "Option::is_none")]
        raw: Option<ProviderBlock>,
    },
    /// Thinking, with what proves it to its provider.
    Thinking {
        /// The readable part; empty when redacted.
        text: Arc<str>,
        /// The provider's signature.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        signature: Option<String>,
        /// The block as its provider sent it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        raw: Option<ProviderBlock>,
    },
    /// A request to call a tool.
    ToolCall(ToolCall),
    /// The answer to a tool call.
    ToolResult(ToolResult),
    /// An image or file.
    Attachment(Attachment),
    /// A block that only its provider understands.
    Opaque(ProviderBlock),
}

/// A block exactly as a provider sent it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProviderBlock {
    /// The provider's name.
    pub provider: String,
    /// The block.
    pub value: Value,
}

/// A model's request to call a tool.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolCall {
    /// The provider's id, to which the result refers.
    pub id: String,
    /// The name that the model used.
    pub name: Name,
    /// The argument text as the model sent it.
    pub arguments: Arc<str>,
    /// The block as its provider sent it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raw: Option<ProviderBlock>,
}

/// The answer to a tool call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolResult {
    /// The id of the call.
    pub id: String,
    /// The name of the tool.
    pub name: Name,
    /// The answer as text.
    pub text: Arc<str>,
    /// Whether the call failed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_error: bool,
    /// Images and files of the answer.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attachments: Vec<Attachment>,
}

impl Part {
    /// A part of plain text.
    pub fn text(text: impl Into<Arc<str>>) -> Self {
        Self::Text { text: text.into(), raw: None }
    }

    /// A part of thinking without a signature.
    pub fn thinking(text: impl Into<Arc<str>>) -> Self {
        Self::Thinking { text: text.into(), signature: None, raw: None }
    }
}

/// Adds a part to the digest that names a history. The number says which variant it is, so they are never changed.
impl Part {
    fn digest_into(&self, digest: &mut DigestBuilder) {
        match self {
            Self::Text { text, raw } => {
                digest.number(0);
                digest.bytes(&**text);
                digest_raw(digest, raw.as_ref());
            }
            Self::Thinking { text, signature, raw } => {
                digest.number(1);
                digest.bytes(&**text);
                digest_optional(digest, signature.as_ref(), |digest, signature| digest.bytes(signature));
                digest_raw(digest, raw.as_ref());
            }
            Self::ToolCall(call) => {
                digest.number(2);
                [&call.id, call.name.as_str(), &*call.arguments]
                    .into_iter()
                    .for_each(|text| digest.bytes(text));
                digest_raw(digest, call.raw.as_ref());
            }
            Self::ToolResult(result) => {
                digest.number(3);
                [&result.id, result.name.as_str(), &*result.text]
                    .into_iter()
                    .for_each(|text| digest.bytes(text));
                digest.number(usize::from(result.is_error));
                digest.number(result.attachments.len());
                result.attachments.iter().for_each(|attachment| digest_attachment(digest, attachment));
            }
            Self::Attachment(attachment) => {
                digest.number(4);
                digest_attachment(digest, attachment);
            }
            Self::Opaque(block) => {
                digest.number(5);
                digest_raw(digest, Some(block));
            }
        }
    }
}

fn digest_optional<T>(
    digest: &mut DigestBuilder,
    value: Option<&T>,
    add: impl FnOnce(&mut DigestBuilder, &T),
) {
    digest.number(usize::from(value.is_some()));
    if let Some(value) = value {
        add(digest, value);
    }
}

fn digest_raw(digest: &mut DigestBuilder, block: Option<&ProviderBlock>) {
    digest_optional(digest, block, |digest, block| {
        digest.bytes(&block.provider);
        digest_json(digest, &block.value);
    });
}

fn digest_attachment(digest: &mut DigestBuilder, attachment: &Attachment) {
    digest.bytes(&attachment.name);
    digest_optional(digest, attachment.media_type.as_ref(), |digest, media_type| digest.bytes(media_type));
    match &attachment.source {
        AttachmentSource::Path(path) => {
            digest.number(0);
            digest.bytes(path.as_os_str().as_encoded_bytes());
        }
        AttachmentSource::Data(bytes) => {
            digest.number(1);
            digest.bytes(bytes.as_slice());
        }
    }
}

fn digest_json(digest: &mut DigestBuilder, value: &Value) {
    let mut text = Vec::new();
    // Writing a JSON value into memory cannot fail.
    drop(serde_json::to_writer(&mut text, value));
    digest.bytes(text);
}

impl Message {
    /// A message from the caller.
    pub fn user(text: impl Into<Arc<str>>) -> Self {
        Self { role: Role::User, parts: vec![Part::text(text)], origin: None }
    }

    /// A message of the model that is only text.
    pub fn assistant(text: impl Into<Arc<str>>) -> Self {
        Self { role: Role::Assistant, parts: vec![Part::text(text)], origin: None }
    }

    /// The message that answers tool calls.
    pub fn results(results: impl IntoIterator<Item = ToolResult>) -> Self {
        Self { role: Role::User, parts: results.into_iter().map(Part::ToolResult).collect(), origin: None }
    }

    /// Returns the text parts, joined.
    pub fn text(&self) -> String {
        let texts = self.parts.iter().filter_map(|part| match part {
            Part::Text { text, .. } => Some(&**text),
            _ => None,
        });
        texts.collect()
    }

    /// Returns the tool calls in the model's order.
    pub fn tool_calls(&self) -> impl Iterator<Item = &ToolCall> {
        self.parts.iter().filter_map(|part| match part {
            Part::ToolCall(call) => Some(call),
            _ => None,
        })
    }

    /// Returns the answers to tool calls.
    pub fn tool_results(&self) -> impl Iterator<Item = &ToolResult> {
        self.parts.iter().filter_map(|part| match part {
            Part::ToolResult(result) => Some(result),
            _ => None,
        })
    }

    /// Adds everything that is in the message to a digest.
    fn digest_into(&self, digest: &mut DigestBuilder) {
        digest.number(match self.role {
            Role::User => 0,
            Role::Assistant => 1,
        });
        digest.number(self.parts.len());
        self.parts.iter().for_each(|part| part.digest_into(digest));
        digest_optional(digest, self.origin.as_ref(), |digest, origin| {
            digest.bytes(&origin.provider);
            digest.bytes(&origin.model);
            digest_json(digest, &origin.data);
        });
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::User => "user",
            Self::Assistant => "assistant",
        })
    }
}

/// The role and everything that a person can read: texts, tool calls, results and names of files.
impl fmt::Display for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:", self.role)?;
        self.parts.iter().try_for_each(|part| match part {
            Part::Text { text, .. } => write!(f, " {text}"),
            Part::Thinking { text, .. } => write!(f, " (thinks: {text})"),
            Part::ToolCall(call) => write!(f, " calls {} {}", call.name, call.arguments),
            Part::ToolResult(result) if result.is_error => {
                write!(f, " error of {}: {}", result.name, result.text)
            }
            Part::ToolResult(result) => write!(f, " result of {}: {}", result.name, result.text),
            Part::Attachment(attachment) => write!(f, " [{}]", attachment.name),
            Part::Opaque(block) => write!(f, " [block of {}]", block.provider),
        })
    }
}

/// Names a history: the digest of the previous head and the newest message, taken in one pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Head(Digest);

impl Default for Head {
    fn default() -> Self {
        Self::empty()
    }
}

impl Head {
    /// The head of an empty conversation.
    pub fn empty() -> Self {
        Self(Digest::hash(b""))
    }

    /// The head after one more message.
    #[must_use]
    pub fn after(&self, message: &Message) -> Self {
        let mut digest = Digest::builder();
        digest.digest(&self.0);
        message.digest_into(&mut digest);
        Self(digest.finish())
    }
}

/// The messages of a call, appended to and never changed.
#[derive(Debug, Clone, Default)]
pub struct Conversation {
    messages: Vec<Arc<Message>>,
    /// The head after each message.
    heads: Vec<Head>,
}

impl Conversation {
    /// A conversation that starts from earlier messages.
    pub fn from_messages(messages: impl IntoIterator<Item = Arc<Message>>) -> Self {
        let mut conversation = Self::default();
        messages.into_iter().for_each(|message| conversation.push(message));
        conversation
    }

    /// Appends a message.
    pub fn push(&mut self, message: impl Into<Arc<Message>>) {
        let message = message.into();
        self.heads.push(self.head().after(&message));
        self.messages.push(message);
    }

    /// Returns the messages.
    pub fn messages(&self) -> &[Arc<Message>] {
        &self.messages
    }

    /// Returns the head.
    pub fn head(&self) -> Head {
        self.heads.last().copied().unwrap_or_else(Head::empty)
    }

    /// Returns the head after so many messages: two conversations with the same one begin alike.
    pub fn head_at(&self, length: usize) -> Option<Head> {
        match length.checked_sub(1) {
            None => Some(Head::empty()),
            Some(last) => self.heads.get(last).copied(),
        }
    }

    /// Goes back to an earlier length.
    pub fn truncate(&mut self, length: usize) {
        self.messages.truncate(length);
        self.heads.truncate(length);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn block(value: Value) -> Option<ProviderBlock> {
        Some(ProviderBlock { provider: "p".to_owned(), value })
    }

    fn result(text: &str, is_error: bool, attachments: Vec<Attachment>) -> Part {
        let (id, name) = ("1".to_owned(), "look".into());
        Part::ToolResult(ToolResult { id, name, text: text.into(), is_error, attachments })
    }

    #[test]
    fn messages_that_differ_in_anything_have_different_heads() {
        let call = |id: &str, name: &str, arguments: &str, raw| {
            Part::ToolCall(ToolCall {
                id: id.to_owned(),
                name: name.into(),
                arguments: arguments.into(),
                raw,
            })
        };
        let thinking = |text: &str, signature: Option<&str>| Part::Thinking {
            text: text.into(),
            signature: signature.map(str::to_owned),
            raw: None,
        };
        let file = |name: &str, bytes: &[u8]| Attachment::bytes(name, "image/png", bytes);
        let parts: Vec<Vec<Part>> = vec![
            vec![],
            vec![Part::text("")],
            vec![Part::text("ab")],
            vec![Part::text("a"), Part::text("b")],
            vec![Part::Text { text: "ab".into(), raw: block(json!({})) }],
            vec![Part::Text { text: "ab".into(), raw: block(json!({"x": 1.5})) }],
            vec![thinking("ab", None)],
            vec![thinking("ab", Some(""))],
            vec![call("1", "look", "{}", None)],
            vec![call("1l", "ook", "{}", None)],
            vec![call("1", "look", "{}", block(Value::Null))],
            vec![result("seen", false, vec![])],
            vec![result("seen", true, vec![])],
            vec![result("seen", false, vec![file("a", b"1")])],
            vec![result("seen", false, vec![file("a", b"2")])],
            vec![Part::Attachment(file("a", b"1"))],
            vec![Part::Attachment(Attachment::path("a"))],
            vec![Part::Opaque(ProviderBlock { provider: "p".to_owned(), value: json!(1) })],
        ];
        let origin = Origin { provider: "p".to_owned(), model: "m".to_owned(), data: Value::Null };
        let messages = parts.iter().flat_map(|parts| {
            [(Role::User, None), (Role::Assistant, None), (Role::Assistant, Some(origin.clone()))]
                .map(|(role, origin)| Message { role, parts: parts.clone(), origin })
        });
        let heads: std::collections::HashSet<Head> =
            messages.map(|message| Head::empty().after(&message)).collect();
        assert_eq!(heads.len(), parts.len() * 3);
    }

    #[test]
    fn a_head_depends_on_all_messages_and_their_order() {
        let head = |texts: &[&str]| {
            Conversation::from_messages(texts.iter().map(|text| Arc::new(Message::user(*text)))).head()
        };
        assert_ne!(head(&["a", "b"]), head(&["b", "a"]));
        assert_ne!(head(&["a", "b"]), head(&["ab"]));
        assert_eq!(head(&["a", "b"]), head(&["a", "b"]));
    }
}
