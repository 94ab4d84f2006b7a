//! Each rule with a request that breaks it and the nearest one that does not.
//!
//! One program, because each further one links the whole workspace again.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a broken set-up must stop the test")]

mod anthropic;
mod anthropic_tools;
mod chat;
mod gemini;
mod hosts;
mod must_be_accepted;
mod openai_schema;
mod responses;

use llm_do_provider_rules::{Account, Protocol, ProviderRefusal, ProviderRequest};
use serde_json::{Value, json};

/// A provider with its protocol and the account that it is asked with.
struct Host {
    protocol: Protocol,
    provider: &'static str,
    path: String,
    account: Account,
}

impl Host {
    fn new(protocol: Protocol, provider: &'static str) -> Self {
        let path = match protocol {
            Protocol::AnthropicMessages => "/v1/messages",
            Protocol::OpenAiResponses => "/v1/responses",
            Protocol::OpenAiChat => "/v1/chat/completions",
            Protocol::Gemini => "/v1beta/models/gemini-2.5-flash:generateContent",
            Protocol::Ollama => "/api/chat",
        };
        Self { protocol, provider, path: path.to_owned(), account: Account::default() }
    }

    fn gemini(model: &str) -> Self {
        let path = format!("/v1beta/models/{model}:generateContent");
        Self { path, ..Self::new(Protocol::Gemini, "gemini") }
    }

    fn check(&self, body: &Value) -> Result<(), ProviderRefusal> {
        let request =
            ProviderRequest { protocol: self.protocol, provider: self.provider, path: &self.path, body };
        self.account.check(&request)
    }

    #[track_caller]
    fn accepts(&self, body: &Value) {
        assert_eq!(self.check(body), Ok(()), "refused: {body:#}");
    }

    /// Returns the refusal, whose rule and message must be as expected.
    #[track_caller]
    fn refuses(&self, body: &Value, rule: &str, message: &str) -> ProviderRefusal {
        let refusal = self.check(body).err().unwrap_or_else(|| panic!("accepted: {body:#}"));
        assert_eq!(refusal.rule, rule, "{refusal}");
        assert!(refusal.message().contains(message), "{refusal}");
        refusal
    }
}

/// The body with a value at a key.
fn with(body: &Value, key: &str, value: Value) -> Value {
    let mut body = body.clone();
    body[key] = value;
    body
}

fn message(role: &str, content: impl Into<Value>) -> Value {
    json!({"role": role, "content": content.into()})
}

fn user(content: impl Into<Value>) -> Value {
    message("user", content)
}

fn assistant(content: impl Into<Value>) -> Value {
    message("assistant", content)
}
