//! Reads failures: the status, headers and body of a response, or an error inside a successful one.
//!
//! What decides is data: [`CODES`], [`CODE_PARTS`] and [`PHRASES`] take precedence over the status, since hosts agree on
//! neither. The message keeps the provider's own words, after the status where there is one. It may repeat
//! what the request held; whoever knows the key must remove it.

mod retry_after;

use jiff::Timestamp;
use llm_do_core::{ModelError, ModelErrorKind};
use serde_json::Value;

use super::json::text;
use retry_after::retry_after;

/// The most letters of a message that is kept.
const MAX_MESSAGE_LETTERS: usize = 2_000;

/// The most bytes of a body that are looked at.
const MAX_BODY_BYTES: usize = 256 * 1024;

/// Finds the value of a header by its name in small letters.
pub(crate) type Headers<'a> = dyn Fn(&str) -> Option<&'a str> + 'a;

/// Reads a response with a status that says failure.
pub(crate) fn from_response(status: u16, header: &Headers<'_>, body: &[u8], now: Timestamp) -> ModelError {
    let body = &body[..body.len().min(MAX_BODY_BYTES)];
    let value = parsed(body);
    let failure = Failure::parse(&value, Some(status), body);
    let retry_after = retry_after(header, &value, now);
    let message = match failure.message.as_str() {
        "" => format!("HTTP {status} without a message"),
        message => format!("HTTP {status}: {message}"),
    };
    let should_retry = header("x-should-retry").map(str::trim);
    let kind = match failure.kind() {
        // OpenRouter asks to wait while other requests hold the rest of the credit.
        ModelErrorKind::Quota if status == 402 && retry_after.is_some() => ModelErrorKind::RateLimit,
        ModelErrorKind::Invalid if should_retry == Some("true") => ModelErrorKind::Server,
        kind => kind,
    };
    let is_final = should_retry == Some("false");
    ModelError { retry_after, is_final, ..ModelError::new(kind, message) }
}

/// Reads an error event of a stream.
pub(super) fn in_stream(data: &[u8]) -> ModelError {
    let value = parsed(data);
    let failure = Failure::parse(&value, None, data);
    failure.into_error(&value)
}

/// Reads an object that came in the place of an answer.
pub(super) fn in_answer(object: &Value) -> ModelError {
    let failure = Failure::parse(object, None, b"");
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
    /// Reads a body of any shape; `bytes` are its text where it is not JSON.
    pub(super) fn parse(body: &Value, status: Option<u16>, bytes: &[u8]) -> Self {
        let body = body.get(0).unwrap_or(body);
        let error = body.get("error").filter(|error| !error.is_null()).unwrap_or(body);
        let message = message(error).or_else(|| message(body)).unwrap_or_else(|| plain_text(body, bytes));
        Self {
            status: status.or_else(|| own_status(error)),
            type_name: text(error, "type").or_else(|| text(error, "status")).map(str::to_owned),
            // An error that is a text has its code beside it.
            code: error.get("code").or_else(|| body.get("code")).and_then(text_or_number),
            message: shortened(&message),
            marks: marks(error),
        }
    }

    /// Says which kind of error it is.
    pub(super) fn kind(&self) -> ModelErrorKind {
        self.kind_by_message().unwrap_or_else(|| self.kind_by_status())
    }

    fn into_error(self, body: &Value) -> ModelError {
        // The headers of the success before it say nothing about it.
        let retry_after = retry_after(&|_| None, body, Timestamp::UNIX_EPOCH);
        let kind = self.kind();
        let message = if self.message.is_empty() { "no message".into() } else { self.message };
        ModelError { retry_after, ..ModelError::new(kind, message) }
    }

    fn kind_by_message(&self) -> Option<ModelErrorKind> {
        let message = [self.code.as_deref(), self.type_name.as_deref()];
        let message = message.into_iter().flatten().chain(self.marks.iter().map(String::as_str));
        // A limit of money or of a day is also called a rate limit, or a missing permission.
        let by_code = message.filter_map(kind_of_code).min_by_key(|kind| match kind {
            ModelErrorKind::Quota => 0,
            ModelErrorKind::RateLimit => 2,
            _ => 1,
        });
        match by_code {
            // A request that is too large for a limit per minute is too large in the next minute as well.
            Some(ModelErrorKind::RateLimit) if self.status == Some(413) => Some(ModelErrorKind::TooLarge),
            None | Some(ModelErrorKind::RateLimit | ModelErrorKind::TooLarge) => {
                self.kind_by_phrase().or(by_code)
            }
            by_code => by_code,
        }
    }

    fn kind_by_phrase(&self) -> Option<ModelErrorKind> {
        let message = self.message.to_lowercase();
        let applies = |phrase: &&Phrase| self.status.is_none_or(|status| phrase.statuses.contains(&status));
        let holds = |phrase: &Phrase| phrase.texts.iter().any(|text| message.contains(text));
        PHRASES.iter().filter(applies).find(|phrase| holds(phrase)).map(|phrase| phrase.kind)
    }

    fn kind_by_status(&self) -> ModelErrorKind {
        match self.status {
            Some(401 | 403) => ModelErrorKind::Auth,
            Some(402) => ModelErrorKind::Quota,
            Some(404) => ModelErrorKind::NotFound,
            Some(413) => ModelErrorKind::TooLarge,
            Some(429) => ModelErrorKind::RateLimit,
            Some(498 | 503 | 529) => ModelErrorKind::Overloaded,
            // The provider ran out of time, met a conflict, was interrupted, or asks to come again.
            Some(408 | 409 | 425 | 499) => ModelErrorKind::Server,
            Some(400..=499) => ModelErrorKind::Invalid,
            None if self.is_invalid() => ModelErrorKind::Invalid,
            _ => ModelErrorKind::Server,
        }
    }

    fn is_invalid(&self) -> bool {
        let message = [self.code.as_deref(), self.type_name.as_deref()];
        message.into_iter().flatten().any(|word| word.to_lowercase().starts_with("invalid"))
    }
}

/// Texts of messages that decide if no code does, in lower case, for errors with one of these statuses or none.
struct Phrase {
    kind: ModelErrorKind,
    statuses: &'static [u16],
    texts: &'static [&'static str],
}

static PHRASES: &[Phrase] = &[
    // llama.cpp reports what it cannot do as a fault of the server.
    Phrase {
        kind: ModelErrorKind::Invalid,
        statuses: &[400, 500, 501],
        texts: &[
            "image input is not supported",
            "audio input is not supported",
            "requires --jinja flag",
            "cannot use both json_schema and grammar",
        ],
    },
    Phrase {
        kind: ModelErrorKind::ContextOverflow,
        statuses: &[400, 402, 403, 413, 422],
        texts: &[
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
        ],
    },
    Phrase {
        kind: ModelErrorKind::Quota,
        statuses: &[400, 402, 403, 413, 422, 429],
        texts: &[
            "credit balance is too low",
            "insufficient balance",
            "insufficient credit",
            "insufficient funds",
            "specified api usage limits",
            "spend limit",
            "spending limit",
            "billing hard limit",
            "used all available credits",
            "out of credits",
            "requires more credits",
        ],
    },
    // xAI and OpenRouter report a wrong key or model as an invalid request.
    Phrase {
        kind: ModelErrorKind::Auth,
        statuses: &[400],
        texts: &["incorrect api key", "invalid api key", "api key not valid", "api key is invalid"],
    },
    Phrase {
        kind: ModelErrorKind::NotFound,
        statuses: &[400],
        texts: &["is not a valid model", "model not exist", "does not exist or your team", "unknown model"],
    },
];

/// Codes and types that decide, in lower case.
static CODES: &[(ModelErrorKind, &[&str])] = &[
    (ModelErrorKind::Auth, &["authentication_error", "permission_error", "permission_denied"]),
    (ModelErrorKind::Auth, &["unauthenticated", "invalid_api_key", "api_key_invalid"]),
    (ModelErrorKind::ContextOverflow, &["context_length_exceeded", "exceed_context_size_error"]),
    (ModelErrorKind::TooLarge, &["request_too_large", "string_above_max_length"]),
    (ModelErrorKind::RateLimit, &["rate_limit_error", "rate_limit_exceeded", "ratelimitreached"]),
    (ModelErrorKind::RateLimit, &["resource_exhausted", "too_many_requests"]),
    (ModelErrorKind::Overloaded, &["overloaded_error", "overloaded", "server_is_overloaded", "slow_down"]),
    (ModelErrorKind::Overloaded, &["engine_overloaded", "engine_overloaded_error"]),
    (ModelErrorKind::Overloaded, &["unavailable", "unavailable_error", "service_unavailable"]),
    (ModelErrorKind::NotFound, &["not_found_error", "notfounderror", "model_not_found", "not_found"]),
    (ModelErrorKind::NotFound, &["invalid_model", "deploymentnotfound"]),
    (ModelErrorKind::ContentFilter, &["content_filter", "content_policy_violation", "moderation_blocked"]),
    (ModelErrorKind::ContentFilter, &["responsibleaipolicyviolation", MODERATION]),
    (ModelErrorKind::ContentFilter, &["invalid_prompt", "bio_policy", "cyber_policy"]),
    (ModelErrorKind::Invalid, &["not_supported_error", "tool_use_failed"]),
];

/// Parts of codes that decide. Providers have many codes for an empty account, and waiting helps with none of them.
static CODE_PARTS: &[(ModelErrorKind, &[&str])] = &[
    (ModelErrorKind::Quota, &["insufficient_quota", "insufficient_credit", "insufficient_balance"]),
    (ModelErrorKind::Quota, &["insufficient_funds", "credit_balance", "out_of_credits", "payment_required"]),
    (ModelErrorKind::Quota, &["spend_limit", "spending_limit", "usage_limit", "billing", "quota_exceeded"]),
    // The quota of a day.
    (ModelErrorKind::Quota, &["perday", "per_day"]),
];

/// Replaces the reasons of a moderation, which have no code.
const MODERATION: &str = "moderation";

fn kind_of_code(code: &str) -> Option<ModelErrorKind> {
    let code = code.to_lowercase();
    let part = CODE_PARTS.iter().find(|(_, parts)| parts.iter().any(|part| code.contains(part)));
    let whole = || CODES.iter().find(|(_, codes)| codes.contains(&code.as_str()));
    part.or_else(whole).map(|(kind, _)| *kind)
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
    let message =
        ["status_code", "code", "status"].into_iter().filter_map(|key| text_or_number(error.get(key)?));
    message.filter_map(|word| word.parse().ok()).find(|status| (400..600).contains(status))
}

/// Collects codes from the details of an error, wherever a provider puts them.
fn marks(error: &Value) -> Vec<String> {
    let mut marks = Vec::new();
    let details = error.get("details");
    let listed = details.and_then(Value::as_array).into_iter().flatten();
    for detail in listed.chain(details.filter(|details| details.is_object())) {
        let codes = ["reason", "error_code", "code", "type"].into_iter().filter_map(|key| text(detail, key));
        marks.extend(codes.map(str::to_owned));
        let violations = detail.get("violations").and_then(Value::as_array).into_iter().flatten();
        marks.extend(violations.filter_map(|violation| text(violation, "quotaId")).map(str::to_owned));
    }
    let inner = error.pointer("/innererror/code").and_then(Value::as_str);
    marks.extend(inner.map(str::to_owned));
    let is_moderated = error.pointer("/metadata/reasons").is_some_and(Value::is_array);
    marks.extend(is_moderated.then(|| MODERATION.to_owned()));
    marks
}

fn text_or_number(value: &Value) -> Option<String> {
    match value {
        Value::String(word) => Some(word.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}
