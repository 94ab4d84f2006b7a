//! The names of providers: the part of a model's name before the colon.

/// A protocol that providers speak, by the prefix of the provider that made it.
pub const PROTOCOLS: &[&str] = &["anthropic", "openai", "openai-chat", "gemini", "ollama"];

/// Every prefix that needs no declaration in a manifest.
pub const PROVIDERS: &[&str] = &[
    "test",
    "script",
    "anthropic",
    "openai",
    "openai-chat",
    "gemini",
    "google",
    "google-gla",
    "ollama",
    "openrouter",
    "groq",
    "deepseek",
    "mistral",
    "xai",
    "together",
    "fireworks",
    "azure",
    "lmstudio",
    "llamacpp",
    "vllm",
];
