//! Reads failures: the status, headers and body of a response, or an error inside a successful one.
//!
//! The words that decide (a code, a type, a phrase of the message) go before the status, since hosts agree on
//! neither. The message keeps the provider's own words, after the status where there is one. It may repeat
//! what the request held; whoever knows the key must remove it.

use jiff::Timestamp;
use llm_do_core::{ModelError, ModelErrorKind};
use serde_json::Value;

use super::json::text;
use super::retry_after::retry_after;

/// The most letters of a message that is kept.
const MAX_MESSAGE_LETTERS: usize = 2_000;

/// The most bytes of a body that are looked at.
const MAX_BODY_BYTES: usize = 256 * 1024;

/// Finds the value of a header by its name in small letters.
pub(crate) type Headers<'a> = dyn Fn(&str) -> Option<&'a str> + 'a;

/// Reads a response with a status that says failure.
pub(crate) fn of_response(status: u16, header: &Headers<'_>, body: &[u8], now: Timestamp) -> ModelError {
    let body = &body[..body.len().min(MAX_BODY_BYTES)];
    let value = parsed(body);
    let failure = Failure::of(&value, Some(status), body);
    let retry_after = retry_after(header, &value, now);
    let message = match failure.message.as_str() {
        "" => format!("HTTP {status} without a message"),
        message => format!("HTTP {status}: {message}"),
    };
    ModelError { retry_after, ..ModelError::new(failure.kind(), message) }
}

/// Reads an error event of a stream.
pub(super) fn in_stream(data: &[u8]) -> ModelError {
    let value = parsed(data);
    let failure = Failure::of(&value, None, data);
    failure.into_error(&value)
}

/// Reads an object that came in the place of an answer.
pub(super) fn in_answer(object: &Value) -> ModelError {
    let failure = Failure::of(object, None, b"");
    failure.into_error(object)
}

/// What a provider says about a failure.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Failure {
    pub(super) status: Option<u16>,
    pub(super) type_name: Option<String>,
    pub(super) code: Option<String>,
    pub(super) message: String,
    /// Reasons and names of quotas in the details.
    marks: Vec<String>,
}

impl Failure {
    /// Reads a body of any shape; `bytes` are its text where it is no JSON.
    pub(super) fn of(body: &Value, status: Option<u16>, bytes: &[u8]) -> Self {
        let body = body.get(0).unwrap_or(body);
        let error = body.get("error").filter(|error| !error.is_null()).unwrap_or(body);
        let message = message(error).or_else(|| message(body)).unwrap_or_else(|| plain_text(body, bytes));
        Self {
            status: status.or_else(|| own_status(error)),
            type_name: text(error, "type").or_else(|| text(error, "status")).map(str::to_owned),
            code: error.get("code").and_then(word),
            message: shortened(&message),
            marks: marks(error),
        }
    }

    /// Says which kind of error it is.
    pub(super) fn kind(&self) -> ModelErrorKind {
        self.kind_by_words().unwrap_or_else(|| self.kind_by_status())
    }

    fn into_error(self, body: &Value) -> ModelError {
        // The headers of the success before it say nothing about it.
        let retry_after = retry_after(&|_| None, body, Timestamp::UNIX_EPOCH);
        let kind = self.kind();
        let message = if self.message.is_empty() { "no message".into() } else { self.message };
        ModelError { retry_after, ..ModelError::new(kind, message) }
    }

    fn kind_by_words(&self) -> Option<ModelErrorKind> {
        let words = [self.code.as_deref(), self.type_name.as_deref()];
        let words = words.into_iter().flatten().chain(self.marks.iter().map(String::as_str));
        let exact = words.filter_map(kind_of_word);
        let exact = exact.min_by_key(|kind| *kind == ModelErrorKind::RateLimit);
        // A request is also called invalid when it is too long, or when the account is empty.
        exact.or_else(|| self.kind_by_phrase())
    }

    fn kind_by_phrase(&self) -> Option<ModelErrorKind> {
        let message = self.message.to_lowercase();
        let holds = |phrases: &[&str]| phrases.iter().any(|phrase| message.contains(phrase));
        if holds(NOT_TAKEN) {
            return Some(ModelErrorKind::Invalid);
        }
        if self.status.is_some_and(|status| !matches!(status, 400 | 402 | 403 | 413 | 422)) {
            return None;
        }
        if holds(TOO_LONG) {
            return Some(ModelErrorKind::ContextOverflow);
        }
        holds(NO_CREDIT).then_some(ModelErrorKind::Quota)
    }

    fn kind_by_status(&self) -> ModelErrorKind {
        match self.status {
            Some(401 | 403) => ModelErrorKind::Auth,
            Some(402) => ModelErrorKind::Quota,
            Some(404) => ModelErrorKind::NotFound,
            Some(413) => ModelErrorKind::ContextOverflow,
            Some(429) => ModelErrorKind::RateLimit,
            Some(503 | 529) => ModelErrorKind::Overloaded,
            // The provider ran out of time, met a conflict, or asks to come again.
            Some(408 | 409 | 425) => ModelErrorKind::Server,
            Some(400..=499) => ModelErrorKind::Invalid,
            None if self.is_invalid() => ModelErrorKind::Invalid,
            _ => ModelErrorKind::Server,
        }
    }

    fn is_invalid(&self) -> bool {
        let words = [self.code.as_deref(), self.type_name.as_deref()];
        words.into_iter().flatten().any(|word| word.to_lowercase().starts_with("invalid"))
    }
}

/// Phrases of llama.cpp, which reports attachments that a model does not take as a fault of the server.
const NOT_TAKEN: &[&str] = &["image input is not supported", "audio input is not supported"];

/// Phrases of providers that report a long conversation as an invalid request.
const TOO_LONG: &[&str] = &[
    "prompt is too long",
    "maximum context length",
    "exceeds the context window",
    "exceed context limit",
    "exceeds the available context size",
    "exceeds the maximum number of tokens",
    "exceeds the model's context",
    "input is too long",
    "too many tokens in",
    "reduce the length of the messages",
];

/// Phrases of providers that report an empty account as an invalid request.
const NO_CREDIT: &[&str] =
    &["credit balance is too low", "insufficient balance", "insufficient credits", "spending limit"];

/// Codes and types that decide, in small letters.
const WORDS: &[(ModelErrorKind, &[&str])] = &[
    (ModelErrorKind::Auth, &["authentication_error", "permission_error", "permission_denied"]),
    (ModelErrorKind::Auth, &["unauthenticated", "invalid_api_key", "api_key_invalid"]),
    (ModelErrorKind::ContextOverflow, &["context_length_exceeded", "exceed_context_size_error"]),
    (ModelErrorKind::ContextOverflow, &["request_too_large", "string_above_max_length"]),
    (ModelErrorKind::Quota, &["insufficient_quota", "billing_error", "billing_hard_limit_reached"]),
    (ModelErrorKind::Quota, &["quota_exceeded", "insufficient_credits"]),
    (ModelErrorKind::RateLimit, &["rate_limit_error", "rate_limit_exceeded", "ratelimitreached"]),
    (ModelErrorKind::RateLimit, &["resource_exhausted", "too_many_requests"]),
    (ModelErrorKind::Overloaded, &["overloaded_error", "overloaded", "server_is_overloaded", "slow_down"]),
    (ModelErrorKind::Overloaded, &["engine_overloaded", "engine_overloaded_error"]),
    (ModelErrorKind::Overloaded, &["unavailable", "service_unavailable"]),
    (ModelErrorKind::NotFound, &["not_found_error", "model_not_found", "not_found"]),
    (ModelErrorKind::ContentFilter, &["content_filter", "content_policy_violation", "moderation_blocked"]),
    (ModelErrorKind::ContentFilter, &["responsibleaipolicyviolation"]),
];

/// Reads a word that decides.
fn kind_of_word(word: &str) -> Option<ModelErrorKind> {
    let word = word.to_lowercase();
    // Waiting for a moment does not help where the quota of a day is used up.
    if word.contains("perday") {
        return Some(ModelErrorKind::Quota);
    }
    WORDS.iter().find(|(_, words)| words.contains(&word.as_str())).map(|(kind, _)| *kind)
}

/// Parses a body; where it is a stream of events, the first that is JSON.
fn parsed(bytes: &[u8]) -> Value {
    let is_json = |bytes: &[u8]| serde_json::from_slice(bytes).ok();
    let in_event = || {
        let mut lines = bytes.split(|byte| *byte == b'\n');
        lines.find_map(|line| is_json(line.strip_prefix(b"data:")?.trim_ascii()))
    };
    is_json(bytes.trim_ascii()).or_else(in_event).unwrap_or_default()
}

/// Finds the message of an error.
fn message(error: &Value) -> Option<String> {
    let said = error.as_str().or_else(|| text(error, "message")).or_else(|| text(error, "detail"));
    let said = said.map(str::to_owned).or_else(|| listed(error)).filter(|said| !said.is_empty())?;
    // OpenRouter hands on what the host behind it said.
    match error.pointer("/metadata/raw").and_then(Value::as_str) {
        Some(raw) => Some(format!("{said}: {raw}")),
        None => Some(said),
    }
}

/// Joins the messages of lists such as `detail: [{msg}]` and `errors: [{message}]`.
fn listed(error: &Value) -> Option<String> {
    let list = ["detail", "errors"].iter().find_map(|key| error.get(*key)?.as_array())?;
    let said = list
        .iter()
        .filter_map(|item| item.as_str().or_else(|| text(item, "message")).or_else(|| text(item, "msg")));
    Some(said.collect::<Vec<_>>().join("; "))
}

fn plain_text(body: &Value, bytes: &[u8]) -> String {
    if !body.is_null() && bytes.is_empty() {
        return body.to_string();
    }
    match String::from_utf8_lossy(bytes).trim() {
        "{}" | "[]" | "null" => String::new(),
        said => said.to_owned(),
    }
}

fn shortened(message: &str) -> String {
    match message.char_indices().nth(MAX_MESSAGE_LETTERS) {
        Some((end, _)) => format!("{}…", &message[..end]),
        None => message.to_owned(),
    }
}

/// Finds a status inside an error, where the response itself was a success.
fn own_status(error: &Value) -> Option<u16> {
    let words = ["status_code", "code", "status"].into_iter().filter_map(|key| word(error.get(key)?));
    words.filter_map(|word| word.parse().ok()).find(|status| (400..600).contains(status))
}

fn marks(error: &Value) -> Vec<String> {
    let details = error.get("details").and_then(Value::as_array).into_iter().flatten();
    let violations = |detail: &Value| {
        let violations = detail.get("violations").and_then(Value::as_array).cloned().unwrap_or_default();
        violations
            .iter()
            .filter_map(|violation| text(violation, "quotaId").map(str::to_owned))
            .collect::<Vec<_>>()
    };
    let mut marks = Vec::new();
    for detail in details {
        marks.extend(text(detail, "reason").map(str::to_owned));
        marks.extend(violations(detail));
    }
    let inner = error.pointer("/innererror/code").and_then(Value::as_str);
    marks.extend(inner.map(str::to_owned));
    marks
}

fn word(value: &Value) -> Option<String> {
    match value {
        Value::String(word) => Some(word.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}
