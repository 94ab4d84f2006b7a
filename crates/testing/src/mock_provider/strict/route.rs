//! Which provider an address belongs to.

use http::Uri;
use llm_do_models::{BuiltinProvider, providers};
use llm_do_provider_rules::Protocol;

/// How the provider of a request is found.
pub(super) enum Route {
    /// All requests go to one.
    Fixed(Protocol),
    /// By the address.
    ByAddress,
}

impl Route {
    /// Returns protocol and provider.
    pub(super) fn find(&self, uri: &Uri) -> (Protocol, &'static str) {
        match self {
            Self::Fixed(protocol) => (*protocol, maker(*protocol)),
            Self::ByAddress => {
                let provider = providers().iter().find(|provider| is_at(provider, uri));
                (protocol(uri.path()), provider.map_or("other", |provider| provider.name))
            }
        }
    }
}

fn is_at(provider: &BuiltinProvider, uri: &Uri) -> bool {
    provider.base_url.parse::<Uri>().is_ok_and(|own| own.authority() == uri.authority())
}

fn maker(protocol: Protocol) -> &'static str {
    match protocol {
        Protocol::AnthropicMessages => "anthropic",
        Protocol::OpenAiResponses | Protocol::OpenAiChat => "openai",
        Protocol::Gemini => "gemini",
        Protocol::Ollama => "ollama",
    }
}

fn protocol(path: &str) -> Protocol {
    match () {
        () if path.ends_with("/messages") => Protocol::AnthropicMessages,
        () if path.ends_with("/responses") => Protocol::OpenAiResponses,
        () if path.contains("enerateContent") => Protocol::Gemini,
        () if path.ends_with("/api/chat") => Protocol::Ollama,
        () => Protocol::OpenAiChat,
    }
}
