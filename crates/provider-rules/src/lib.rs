//! What model providers refuse: rules over the JSON bodies of requests, for tests.
//!
//! An [`Account`] remembers what a provider has issued (signatures, encrypted reasoning, response ids) and
//! [checks](Account::check) requests as that provider does. A refused request gets a [`ProviderRefusal`] with the
//! provider's own status and error body.
//!
//! The rules are written from what is publicly known of the providers, independently of the encoders in
//! `llm-do-models`: this crate is the oracle that those are tested against, so it must never read their tables.
//! A model that no table lists is treated as the newest of its family. A model without a known family is held only
//! to the rules that do not depend on the model. Rules that are uncertain are [`OptionalRules`], off by default.
//!
//! ```
//! # use llm_do_provider_rules::{Account, Protocol, ProviderRequest};
//! # use serde_json::json;
//! let body = json!({"model": "claude-opus-4-8", "max_tokens": 100, "messages": [
//!     {"role": "user", "content": "Write a haiku."},
//!     {"role": "assistant", "content": "An old silent pond"},
//! ]});
//! let request = ProviderRequest {
//!     protocol: Protocol::AnthropicMessages, provider: "anthropic", path: "/v1/messages", body: &body,
//! };
//! let refusal = Account::default().check(&request).unwrap_err();
//! assert_eq!((refusal.status, refusal.rule), (400, "anthropic.prefill"));
//! assert!(refusal.message().contains("does not support assistant message prefill"));
//! ```

mod account;
mod anthropic;
mod chat;
mod chat_body;
mod deepseek;
mod gemini;
mod groq;
mod json;
mod local;
mod media;
mod mistral;
mod ollama;
mod openai;
mod openrouter;
mod refusal;
mod schema;
mod xai;

pub use account::{Account, ModelCapabilities, OptionalRules};
pub use refusal::ProviderRefusal;

use serde_json::Value;

/// The protocols whose requests can be checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Protocol {
    /// Anthropic's Messages.
    AnthropicMessages,
    /// OpenAI's Responses.
    OpenAiResponses,
    /// OpenAI's Chat Completions, which many hosts speak.
    OpenAiChat,
    /// Gemini's `generateContent` and `streamGenerateContent`.
    Gemini,
    /// Ollama's own `/api/chat`.
    Ollama,
}

impl Protocol {
    /// Returns the messages of a request: those of the conversation, without system instructions that are elsewhere.
    pub fn messages(self, body: &Value) -> &[Value] {
        let key = match self {
            Self::AnthropicMessages | Self::OpenAiChat | Self::Ollama => "messages",
            Self::OpenAiResponses => "input",
            Self::Gemini => "contents",
        };
        json::items(body, key)
    }
}

/// A request as it reached a provider.
#[derive(Debug, Clone, Copy)]
pub struct ProviderRequest<'a> {
    /// The protocol of the endpoint.
    pub protocol: Protocol,
    /// The host by its prefix in model names: `anthropic`, `openai`, `mistral`, `llamacpp`, ...
    pub provider: &'a str,
    /// The path of the URL. For Gemini it names the model.
    pub path: &'a str,
    /// The body.
    pub body: &'a Value,
}

impl<'a> ProviderRequest<'a> {
    /// Returns the name of the model, or an empty text if there is none.
    pub fn model(&self) -> &'a str {
        match self.protocol {
            Protocol::Gemini => gemini::model_in_path(self.path),
            _ => self.body["model"].as_str().unwrap_or_default(),
        }
    }
}

/// How a request makes its model reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reasoning {
    /// The model answers at once, or nothing is known of it.
    Off,
    /// The model decides whether to reason.
    Adaptive,
    /// The model reasons before every answer.
    Always,
}

impl ProviderRequest<'_> {
    /// Returns whether the model reasons before it answers this request.
    pub fn reasoning(&self) -> Reasoning {
        match (self.protocol, self.provider) {
            (Protocol::AnthropicMessages, _) => anthropic::reasoning(self),
            (Protocol::OpenAiResponses, _) => openai::reasoning(self),
            (Protocol::OpenAiChat, "deepseek") => deepseek::reasoning(self),
            (Protocol::Gemini, _) => gemini::reasoning(self),
            _ => Reasoning::Off,
        }
    }
}
