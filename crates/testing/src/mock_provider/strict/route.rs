//! Which provider an address belongs to.

use http::Uri;
use llm_do_provider_rules::Protocol;

/// How the provider of a request is found.
pub(super) enum Route {
    /// All requests go to one.
    Fixed(Protocol),
    /// By the address.
    ByAddress,
}

/// The addresses of the built-in providers, with the names that the rules know them by.
const HOSTS: &[(&str, &str)] = &[
    ("api.anthropic.com", "anthropic"),
    ("api.openai.com", "openai"),
    ("generativelanguage.googleapis.com", "gemini"),
    ("127.0.0.1:11434", "ollama"),
    ("openrouter.ai", "openrouter"),
    ("api.groq.com", "groq"),
    ("api.deepseek.com", "deepseek"),
    ("api.mistral.ai", "mistral"),
    ("api.x.ai", "xai"),
    ("api.together.xyz", "together"),
    ("api.fireworks.ai", "fireworks"),
    ("127.0.0.1:1234", "lmstudio"),
    ("127.0.0.1:8080", "llamacpp"),
    ("127.0.0.1:8000", "vllm"),
];

impl Route {
    /// Returns protocol and provider.
    pub(super) fn find(&self, uri: &Uri) -> (Protocol, &'static str) {
        match self {
            Self::Fixed(protocol) => (*protocol, maker(*protocol)),
            Self::ByAddress => {
                let address = uri.authority().map(ToString::to_string).unwrap_or_default();
                let host = HOSTS.iter().find(|(host, _)| *host == address);
                (protocol(uri.path()), host.map_or("other", |(_, name)| *name))
            }
        }
    }
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
