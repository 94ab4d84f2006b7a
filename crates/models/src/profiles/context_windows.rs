//! How many tokens models read at once.
//!
//! The table holds what providers document for their own families, and less rather than more if members differ. What is
//! not in it is unknown: a server on the own machine, for example, decides by its settings. A project can say it with
//! `models.NAME.profile.context_window`.

use llm_do_core::ModelProfile;

use crate::model_patterns::{matches, plain_name};

/// Tokens of input and output together; the first pattern that matches decides.
const WINDOWS: &[(&str, u64)] = &[
    ("claude*", 200_000),
    ("gpt-5*chat*", 128_000),
    ("gpt-5*", 400_000),
    ("gpt-4.1*", 1_047_576),
    ("gpt-4o*", 128_000),
    ("gpt-4-turbo*", 128_000),
    ("gpt-4", 8_192),
    ("gpt-4-0613", 8_192),
    ("gpt-3.5-turbo*", 16_385),
    ("gpt-oss*", 131_072),
    ("o1-mini*", 128_000),
    ("o1-preview*", 128_000),
    ("o1*", 200_000),
    ("o3*", 200_000),
    ("o4-mini*", 200_000),
    ("gemini-*image*", 32_768),
    ("gemini-*", 1_048_576),
    ("grok-4*", 256_000),
    ("grok-3*", 131_072),
    ("deepseek-chat", 64_000),
    ("deepseek-reasoner", 64_000),
    ("mistral-large-latest", 128_000),
    ("mistral-medium-latest", 128_000),
    ("mistral-small-latest", 128_000),
];

/// What the test and script models read at once: as much as a usual hosted model.
const OFFLINE: u64 = 200_000;

/// The profile of models that ask nobody.
pub(crate) fn offline_profile() -> ModelProfile {
    ModelProfile { context_window: Some(OFFLINE), ..ModelProfile::default() }
}

/// Providers whose servers run on machines of their users, who choose how much is read.
const LOCAL: &[&str] = &["ollama", "llamacpp", "lmstudio", "vllm"];

/// Returns how many tokens a model reads at once, if that is known. The model is written without its provider.
pub(crate) fn window_of(protocol: &str, provider: &str, model: &str) -> Option<u64> {
    if protocol == "ollama" || LOCAL.contains(&provider) {
        return None;
    }
    let plain = plain_name(&model.to_lowercase());
    WINDOWS.iter().find(|(pattern, _)| matches(&plain, pattern)).map(|(_, window)| *window)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_family_is_known_wherever_it_is_hosted_except_on_the_own_machine() {
        assert_eq!(window_of("anthropic", "anthropic", "claude-sonnet-4-5"), Some(200_000));
        assert_eq!(window_of("openai-chat", "openrouter", "anthropic/claude-sonnet-4.5"), Some(200_000));
        assert_eq!(window_of("openai", "openai", "gpt-5-mini"), Some(400_000));
        assert_eq!(window_of("openai", "openai", "gpt-5-chat-latest"), Some(128_000));
        assert_eq!(window_of("gemini", "gemini", "gemini-2.5-pro"), Some(1_048_576));
        assert_eq!(window_of("ollama", "ollama", "gpt-oss:20b"), None);
        assert_eq!(window_of("openai-chat", "acme", "house-model"), None);
    }
}
