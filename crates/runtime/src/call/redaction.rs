//! The last line of defense: private keys and known tokens are taken out of what tools answer.
//!
//! It holds for every tool, whatever its code reads, before a model, an event or the record gets the answer. A call
//! whose secret files were approved answers unchanged: a person agreed to exactly this.
//!
//! What a secret looks like is decided in `llm-do-secrets`. Passwords without a known format are not found here; the
//! tools that read files ask about those (see [`crate::gate::secret_files`]).

use std::borrow::Cow;
use std::sync::Arc;

use llm_do_core::{Attachment, AttachmentSource, Content, Failure, Outcome, Output, Remark};
use llm_do_secrets::{redact, secrets_in};
use serde_json::{Map, Value};

/// The key under which a tool puts the secret files that it may read into the precondition of a call.
const APPROVED: &str = "secret_files";

/// Takes secrets out of the outcome of a call, unless its precondition says that they were approved.
pub(crate) fn redacted(outcome: Outcome, precondition: Option<&Value>) -> Outcome {
    let approved = precondition.and_then(|value| value.get(APPROVED)?.as_array());
    if approved.is_some_and(|files| !files.is_empty()) {
        return outcome;
    }
    match outcome {
        Outcome::Value(output) => Outcome::Value(redacted_output(output)),
        Outcome::Failed(failure) => Outcome::Failed(redacted_failure(failure)),
        other => other,
    }
}

fn redacted_output(output: Output) -> Output {
    let content = match output.content {
        Content::Text(text) => match redact(&text) {
            Cow::Borrowed(_) => Content::Text(text),
            Cow::Owned(redacted) => Content::Text(redacted.into()),
        },
        Content::Json(value) if has_secret(&value) => Content::Json(Arc::new(redacted_value(&value))),
        content => content,
    };
    let attachments = output.attachments.into_iter().map(redacted_attachment).collect();
    Output { content, attachments }
}

/// A text that is attached; other files are left as they are.
fn redacted_attachment(attachment: Attachment) -> Attachment {
    let AttachmentSource::Data(bytes) = &attachment.source else { return attachment };
    let redacted = match std::str::from_utf8(bytes.as_slice()).map(redact) {
        Ok(Cow::Owned(redacted)) => redacted,
        Ok(Cow::Borrowed(_)) | Err(_) => return attachment,
    };
    let kind = attachment.media_type.clone().unwrap_or_else(|| "text/plain".to_owned());
    Attachment::bytes(attachment.name, kind, redacted.into_bytes())
}

/// Most answers have none, and are not copied.
fn has_secret(value: &Value) -> bool {
    let in_text = |text: &str| secrets_in(text.as_bytes()).next().is_some();
    match value {
        Value::String(text) => in_text(text),
        Value::Array(items) => items.iter().any(has_secret),
        Value::Object(fields) => fields.iter().any(|(key, value)| in_text(key) || has_secret(value)),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

fn redacted_value(value: &Value) -> Value {
    match value {
        Value::String(text) => Value::String(redact(text).into_owned()),
        Value::Array(items) => items.iter().map(redacted_value).collect(),
        Value::Object(fields) => {
            let field = |(key, value): (&String, &Value)| (redact(key).into_owned(), redacted_value(value));
            Value::Object(fields.iter().map(field).collect::<Map<_, _>>())
        }
        other => other.clone(),
    }
}

fn redacted_failure(failure: Failure) -> Failure {
    let text = |text: String| match redact(&text) {
        Cow::Borrowed(_) => text,
        Cow::Owned(redacted) => redacted,
    };
    Failure { message: text(failure.message), hint: failure.hint.map(text), ..failure }
}

/// Takes secrets out of what a tool says while it runs.
pub(crate) fn redacted_remark(remark: Remark) -> Remark {
    let text = |text: String| redact(&text).into_owned();
    match remark {
        Remark::Notice(notice) => Remark::Notice(text(notice)),
        Remark::Stderr(line) => Remark::Stderr(text(line)),
        Remark::Progress(part) => Remark::Progress(text(part)),
    }
}
