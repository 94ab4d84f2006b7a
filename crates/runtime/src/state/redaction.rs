//! The last line of defense: secrets are taken out of what tools answer and say.
//!
//! It holds for every tool, whatever its code reads, before a model, an event or the record gets the answer. Keys and
//! passwords that the runtime was told of are found by their value, in every encoding that [`SecretMask`] knows; private
//! keys and tokens by their format. A call whose secret files were approved answers unchanged: a person agreed to
//! exactly this.
//!
//! What a secret looks like is decided in `llm-do-secrets`. Other passwords without a known format are not found here;
//! the tools that read files ask about those (see [`crate::gate::secret_files`]).

use std::borrow::Cow;
use std::sync::Arc;

use llm_do_core::{Attachment, AttachmentSource, Content, Failure, Outcome, Output};
use llm_do_secrets::{KnownSecrets, SecretMask, redact, secrets_in};
use serde_json::{Map, Value};

/// The key under which a tool puts the secret files that it may read into the precondition of a call.
const APPROVED: &str = "secret_files";

/// Takes secrets out of texts, with the secrets that were known when it was made.
pub(crate) struct Redactor(SecretMask);

impl Redactor {
    pub(crate) fn new(known: &KnownSecrets) -> Self {
        Self(known.mask())
    }

    /// Takes secrets out of the outcome of a call, unless its precondition says that they were approved.
    pub(crate) fn outcome(&self, outcome: Outcome, precondition: Option<&Value>) -> Outcome {
        let approved = precondition.and_then(|value| value.get(APPROVED)?.as_array());
        if approved.is_some_and(|files| !files.is_empty()) {
            return outcome;
        }
        match outcome {
            Outcome::Value(output) => Outcome::Value(self.output(output)),
            Outcome::Failed(failure) => Outcome::Failed(self.failure(failure)),
            other => other,
        }
    }

    /// Takes secrets out of a text.
    pub(crate) fn text(&self, text: String) -> String {
        match self.redact(&text) {
            Cow::Borrowed(_) => text,
            Cow::Owned(redacted) => redacted,
        }
    }

    fn redact<'a>(&self, text: &'a str) -> Cow<'a, str> {
        // Known values come first: a format may match only a part of one, and the rest would remain.
        match self.0.text(text) {
            Cow::Borrowed(text) => redact(text),
            Cow::Owned(masked) => Cow::Owned(redact(&masked).into_owned()),
        }
    }

    fn output(&self, output: Output) -> Output {
        let content = match output.content {
            Content::Text(text) => match self.redact(&text) {
                Cow::Borrowed(_) => Content::Text(text),
                Cow::Owned(redacted) => Content::Text(redacted.into()),
            },
            Content::Json(value) if self.finds_in(&value) => Content::Json(Arc::new(self.value(&value))),
            content => content,
        };
        let attachments =
            output.attachments.into_iter().map(|attachment| self.attachment(attachment)).collect();
        Output { content, attachments }
    }

    /// A text that is attached; other files are left as they are.
    fn attachment(&self, attachment: Attachment) -> Attachment {
        let AttachmentSource::Data(bytes) = &attachment.source else { return attachment };
        let redacted = match std::str::from_utf8(bytes.as_slice()).map(|text| self.redact(text)) {
            Ok(Cow::Owned(redacted)) => redacted,
            Ok(Cow::Borrowed(_)) | Err(_) => return attachment,
        };
        let kind = attachment.media_type.clone().unwrap_or_else(|| "text/plain".to_owned());
        Attachment::bytes(attachment.name, kind, redacted.into_bytes())
    }

    /// Most answers have none, and are not copied.
    fn finds_in(&self, value: &Value) -> bool {
        let in_text = |text: &str| self.0.finds(text) || secrets_in(text.as_bytes()).next().is_some();
        match value {
            Value::String(text) => in_text(text),
            Value::Array(items) => items.iter().any(|item| self.finds_in(item)),
            Value::Object(fields) => fields.iter().any(|(key, value)| in_text(key) || self.finds_in(value)),
            Value::Null | Value::Bool(_) | Value::Number(_) => false,
        }
    }

    fn value(&self, value: &Value) -> Value {
        match value {
            Value::String(text) => Value::String(self.redact(text).into_owned()),
            Value::Array(items) => items.iter().map(|item| self.value(item)).collect(),
            Value::Object(fields) => {
                let field =
                    |(key, value): (&String, &Value)| (self.redact(key).into_owned(), self.value(value));
                Value::Object(fields.iter().map(field).collect::<Map<_, _>>())
            }
            other => other.clone(),
        }
    }

    fn failure(&self, failure: Failure) -> Failure {
        let hint = failure.hint.map(|hint| self.text(hint));
        Failure { message: self.text(failure.message), hint, ..failure }
    }
}
