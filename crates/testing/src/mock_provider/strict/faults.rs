//! What goes wrong at providers, with the errors of each.

use http::Response;
use llm_do_core::{ModelError, ModelErrorKind};
use llm_do_models::ByteStream;
use llm_do_provider_rules::Protocol;
use serde_json::{Value, json};

use super::{StrictRequest, response};

/// A failure that is not the fault of the request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProviderFault {
    /// Too many requests; a later one may pass.
    RateLimited,
    /// The provider has too much to do.
    Overloaded,
    /// An internal error.
    ServerError,
    /// The account has no money left.
    Quota,
    /// The conversation is too long for the model.
    ContextLength,
    /// The connection is closed before the answer begins.
    Reset,
    /// The connection is closed in the middle of the answer.
    Cut,
}

impl ProviderFault {
    /// All of them.
    pub const ALL: &[Self] = &[
        Self::RateLimited,
        Self::Overloaded,
        Self::ServerError,
        Self::Quota,
        Self::ContextLength,
        Self::Reset,
        Self::Cut,
    ];
}

/// Returns what the provider sends instead of an answer; nothing if the answer is sent in part.
pub(super) fn written(
    fault: ProviderFault,
    request: &StrictRequest,
) -> Option<Result<Response<ByteStream>, ModelError>> {
    let (status, body) = match fault {
        ProviderFault::Cut => return None,
        ProviderFault::Reset => {
            let message = "the connection was reset before the answer began";
            return Some(Err(ModelError::new(ModelErrorKind::Network, message)));
        }
        fault => match request.protocol {
            Protocol::AnthropicMessages => anthropic(fault),
            Protocol::Gemini => gemini(fault),
            Protocol::Ollama => ollama(fault),
            Protocol::OpenAiResponses | Protocol::OpenAiChat => openai(fault),
        },
    };
    let headers: &[(&str, &str)] = match fault {
        ProviderFault::RateLimited if request.protocol != Protocol::Gemini => &[("retry-after", "1")],
        _ => &[],
    };
    Some(Ok(response(status, headers, vec![Ok(body.to_string().into())])))
}

fn anthropic(fault: ProviderFault) -> (u16, Value) {
    let (status, kind, message) = match fault {
        ProviderFault::RateLimited => (429, "rate_limit_error", "This request would exceed your rate limit."),
        ProviderFault::Overloaded => (529, "overloaded_error", "Overloaded"),
        ProviderFault::Quota => (
            400,
            "invalid_request_error",
            "Your credit balance is too low to access the Anthropic API. Please go to Plans & Billing.",
        ),
        ProviderFault::ContextLength => {
            (400, "invalid_request_error", "prompt is too long: 210000 tokens > 200000 maximum")
        }
        _ => (500, "api_error", "Internal server error"),
    };
    let error = json!({"type": kind, "message": message});
    (status, json!({"type": "error", "error": error, "request_id": "req_011CStrictMock"}))
}

fn openai(fault: ProviderFault) -> (u16, Value) {
    let (status, kind, code, message) = match fault {
        ProviderFault::RateLimited => (
            429,
            "rate_limit_error",
            Some("rate_limit_exceeded"),
            "Rate limit reached. Please try again in 1s.",
        ),
        ProviderFault::Overloaded => {
            (503, "server_error", Some("server_is_overloaded"), "The server is overloaded.")
        }
        ProviderFault::Quota => (
            429,
            "insufficient_quota",
            Some("insufficient_quota"),
            "You exceeded your current quota, please check your plan and billing details.",
        ),
        ProviderFault::ContextLength => (
            400,
            "invalid_request_error",
            Some("context_length_exceeded"),
            "Your input exceeds the context window of this model. Please adjust your input and try again.",
        ),
        _ => (500, "server_error", None, "The server had an error while processing your request."),
    };
    (status, json!({"error": {"message": message, "type": kind, "param": null, "code": code}}))
}

fn gemini(fault: ProviderFault) -> (u16, Value) {
    let (status, name, message) = match fault {
        ProviderFault::RateLimited | ProviderFault::Quota => {
            (429, "RESOURCE_EXHAUSTED", "You exceeded your current quota.")
        }
        ProviderFault::Overloaded => (503, "UNAVAILABLE", "The model is overloaded. Please try again later."),
        ProviderFault::ContextLength => (
            400,
            "INVALID_ARGUMENT",
            "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
        ),
        _ => (500, "INTERNAL", "An internal error has occurred."),
    };
    let retry = json!({"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "1s"});
    let details = if fault == ProviderFault::RateLimited { vec![retry] } else { Vec::new() };
    (status, json!({"error": {"code": status, "message": message, "status": name, "details": details}}))
}

fn ollama(fault: ProviderFault) -> (u16, Value) {
    let (status, message) = match fault {
        ProviderFault::RateLimited | ProviderFault::Quota => (429, "too many requests"),
        ProviderFault::Overloaded => {
            (503, "server busy, please try again. maximum pending requests exceeded")
        }
        ProviderFault::ContextLength => (400, "the input length exceeds the context length"),
        _ => (500, "an error was encountered while running the model"),
    };
    (status, json!({"error": message}))
}
