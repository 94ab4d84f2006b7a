//! Refused requests: status and body in the shape of each provider.

use std::fmt;

use serde_json::{Value, json};

/// How a provider refuses a request.
#[derive(Debug, Clone, PartialEq)]
pub struct ProviderRefusal {
    /// The rule that the request breaks, such as `anthropic.prefill`. The provider does not send it.
    pub rule: &'static str,
    /// The HTTP status.
    pub status: u16,
    /// The body of the response.
    pub body: Value,
}

pub(crate) type Check = Result<(), ProviderRefusal>;

impl ProviderRefusal {
    /// Returns the message in the body.
    pub fn message(&self) -> &str {
        let body = &self.body;
        let candidates = [
            &body["error"]["message"],
            &body["error"],
            &body["message"],
            &body["detail"][0]["msg"],
            &body["detail"],
        ];
        candidates.into_iter().find_map(Value::as_str).unwrap_or_default()
    }

    pub(crate) fn anthropic(rule: &'static str, message: impl Into<String>) -> Self {
        Self::anthropic_error(rule, 400, "invalid_request_error", message)
    }

    pub(crate) fn anthropic_error(
        rule: &'static str,
        status: u16,
        kind: &str,
        message: impl Into<String>,
    ) -> Self {
        let error = json!({"type": kind, "message": message.into()});
        let body = json!({"type": "error", "error": error, "request_id": "req_011CStrictMock"});
        Self { rule, status, body }
    }

    /// An error of OpenAI; `param` and `code` are null if they are empty.
    pub(crate) fn openai(
        rule: &'static str,
        param: impl Into<String>,
        code: &str,
        message: impl Into<String>,
    ) -> Self {
        let or_null = |text: String| if text.is_empty() { Value::Null } else { text.into() };
        let error = json!({"message": message.into(), "type": "invalid_request_error",
            "param": or_null(param.into()), "code": or_null(code.to_owned())});
        Self { rule, status: 400, body: json!({"error": error}) }
    }

    pub(crate) fn gemini(rule: &'static str, message: impl Into<String>) -> Self {
        let error = json!({"code": 400, "message": message.into(), "status": "INVALID_ARGUMENT"});
        Self { rule, status: 400, body: json!({"error": error}) }
    }

    pub(crate) fn xai(rule: &'static str, message: impl Into<String>) -> Self {
        Self { rule, status: 400, body: json!({"code": "invalid-argument", "error": message.into()}) }
    }

    pub(crate) fn mistral(rule: &'static str, kind: &str, code: &str, message: impl Into<String>) -> Self {
        let body =
            json!({"object": "error", "message": message.into(), "type": kind, "param": null, "code": code});
        Self { rule, status: 400, body }
    }

    pub(crate) fn ollama(rule: &'static str, message: impl Into<String>) -> Self {
        Self { rule, status: 400, body: json!({"error": message.into()}) }
    }

    /// An error of llama.cpp, and of Ollama's compatible endpoint.
    pub(crate) fn llamacpp(rule: &'static str, message: impl Into<String>) -> Self {
        let error = json!({"code": 400, "message": message.into(), "type": "invalid_request_error"});
        Self { rule, status: 400, body: json!({"error": error}) }
    }

    pub(crate) fn vllm(rule: &'static str, message: impl Into<String>) -> Self {
        let body =
            json!({"object": "error", "message": message.into(), "type": "BadRequestError", "code": 400});
        Self { rule, status: 400, body }
    }

    pub(crate) fn openrouter(rule: &'static str, message: impl Into<String>) -> Self {
        Self { rule, status: 400, body: json!({"error": {"code": 400, "message": message.into()}}) }
    }

    pub(crate) fn with_status(mut self, status: u16) -> Self {
        self.status = status;
        self
    }
}

impl fmt::Display for ProviderRefusal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} ({}): {}", self.rule, self.status, self.message())
    }
}

impl std::error::Error for ProviderRefusal {}
