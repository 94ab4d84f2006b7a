//! What a random conversation is made of.

use llm_do::model::{Effort, ModelSettings, Thinking, ToolChoice, providers};
use llm_do_testing::Chance;

/// A part of conversations that can be switched off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Feature {
    /// Tools that the model calls.
    Tools,
    /// Tools with schemas that not every provider takes.
    UnusualSchemas,
    /// Tools that give nothing back, and messages and answers without text.
    BlankTexts,
    /// Tools that fail.
    FailingTools,
    /// Tools whose calls a person denies.
    DeniedCalls,
    /// Tools of the provider.
    ServerTools,
    /// An answer with a schema.
    OutputSchema,
    /// `thinking` in the settings.
    Thinking,
    /// `effort` in the settings.
    Effort,
    /// `temperature` in the settings.
    Temperature,
    /// `top_p` in the settings.
    TopP,
    /// `stop` in the settings.
    Stop,
    /// `max_tokens` in the settings.
    MaxTokens,
    /// `seed` in the settings.
    SamplingSeed,
    /// `tool_choice` in the settings.
    ToolChoice,
    /// `parallel_tool_calls` in the settings.
    ParallelCalls,
    /// Answers in streams.
    Streams,
    /// Models to fall back on.
    Fallbacks,
    /// Another model between turns.
    ModelChanges,
    /// The agent changes its own settings.
    Tune,
    /// The agent goes back in its conversation.
    Goto,
    /// The agent forks itself.
    Fork,
    /// The person goes back in the conversation, or forks it.
    SessionChanges,
    /// Images and PDFs in messages.
    Attachments,
    /// Images and PDFs in results.
    ResultAttachments,
    /// Errors of providers.
    Faults,
    /// Connections that are cut.
    CutConnections,
}

impl Feature {
    pub(crate) const ALL: &[Self] = &[
        Self::Tools,
        Self::UnusualSchemas,
        Self::BlankTexts,
        Self::FailingTools,
        Self::DeniedCalls,
        Self::ServerTools,
        Self::OutputSchema,
        Self::Thinking,
        Self::Effort,
        Self::Temperature,
        Self::TopP,
        Self::Stop,
        Self::MaxTokens,
        Self::SamplingSeed,
        Self::ToolChoice,
        Self::ParallelCalls,
        Self::Streams,
        Self::Fallbacks,
        Self::ModelChanges,
        Self::Tune,
        Self::Goto,
        Self::Fork,
        Self::SessionChanges,
        Self::Attachments,
        Self::ResultAttachments,
        Self::Faults,
        Self::CutConnections,
    ];
}

/// Models of all providers, old and new ones.
const MODELS: &[&str] = &[
    "anthropic:claude-3-7-sonnet-latest",
    "anthropic:claude-sonnet-4-20250514",
    "anthropic:claude-opus-4-1",
    "anthropic:claude-haiku-4-5",
    "anthropic:claude-sonnet-4-5",
    "anthropic:claude-opus-4-5",
    "anthropic:claude-sonnet-4-6",
    "anthropic:claude-opus-4-6",
    "anthropic:claude-opus-4-7",
    "anthropic:claude-opus-4-8",
    "anthropic:claude-sonnet-5",
    "anthropic:claude-opus-5",
    "anthropic:claude-opus-5-5",
    "anthropic:claude-fable-5",
    "anthropic:claude-mythos-5",
    "openai:gpt-4o",
    "openai:gpt-4.1",
    "openai:o3",
    "openai:o4-mini",
    "openai:gpt-5",
    "openai:gpt-5-mini",
    "openai:gpt-5-pro",
    "openai:gpt-5-codex",
    "openai:gpt-5-chat-latest",
    "openai:gpt-5.1",
    "openai:gpt-5.1-codex-max",
    "openai:gpt-5.2",
    "openai:gpt-5.2-pro",
    "openai:gpt-5.4",
    "openai:gpt-5.4-mini",
    "openai:gpt-5.5",
    "openai:gpt-5.6-sol",
    "openai:gpt-6-sol",
    "openai-chat:gpt-4-turbo",
    "openai-chat:gpt-4o",
    "openai-chat:o1",
    "openai-chat:o3",
    "openai-chat:gpt-5",
    "openai-chat:gpt-5.1",
    "openai-chat:gpt-5.4",
    "openai-chat:gpt-5.6-sol",
    "gemini:gemini-2.0-flash",
    "gemini:gemini-2.5-pro",
    "gemini:gemini-2.5-flash",
    "gemini:gemini-2.5-flash-lite",
    "gemini:gemini-3-flash-preview",
    "gemini:gemini-3-pro-preview",
    "gemini:gemini-3.7-flash",
    "ollama:qwen3",
    "ollama:gpt-oss:20b",
    "mistral:mistral-large-latest",
    "mistral:mistral-small-2603",
    "mistral:magistral-medium-latest",
    "deepseek:deepseek-v4-pro",
    "deepseek:deepseek-chat",
    "xai:grok-3-mini",
    "xai:grok-4.3",
    "xai:grok-4.5",
    "xai:grok-4.6",
    "groq:openai/gpt-oss-120b",
    "groq:qwen/qwen3-32b",
    "groq:llama-3.3-70b-versatile",
    "openrouter:anthropic/claude-sonnet-4.5",
    "openrouter:openai/gpt-5",
    "llamacpp:qwen3",
    "vllm:qwen3",
    "together:m",
    "fireworks:m",
    "lmstudio:m",
];

#[test]
fn every_built_in_provider_has_a_conversation() {
    // Azure has no address of its own.
    let with_address = providers().iter().filter(|provider| !provider.base_url.is_empty());
    let names: Vec<&str> = with_address.map(|provider| provider.name).collect();
    let prefixes: Vec<&str> = MODELS.iter().filter_map(|model| model.split(':').next()).collect();
    let missing: Vec<_> = names.into_iter().filter(|name| !prefixes.contains(name)).collect();
    assert!(missing.is_empty(), "no model in MODELS of {missing:?}");
}

const EFFORTS: &[Effort] =
    &[Effort::None, Effort::Minimal, Effort::Low, Effort::Medium, Effort::High, Effort::Xhigh, Effort::Max];

/// A conversation: a seed, and the features that it may have.
pub(crate) struct Plan {
    pub(crate) seed: u64,
    features: Vec<Feature>,
}

impl Plan {
    pub(crate) fn new(seed: u64, features: Vec<Feature>) -> Self {
        Self { seed, features }
    }

    pub(crate) fn has(&self, feature: Feature) -> bool {
        self.features.contains(&feature)
    }

    /// Returns the chance of one decision, which does not depend on other decisions.
    pub(crate) fn chance(&self, decision: &str) -> Chance {
        Chance::at(self.seed, &[decision])
    }

    /// Returns the chance of a feature in so many of a hundred conversations.
    pub(crate) fn feature(&self, feature: Feature, percent: u64) -> Option<Chance> {
        let mut chance = self.chance(&format!("{feature:?}"));
        (chance.percent(percent) && self.has(feature)).then_some(chance)
    }

    /// Returns whether the agent has the tool `look`, and perhaps others.
    pub(crate) fn has_tools(&self) -> bool {
        self.feature(Feature::Tools, 75).is_some()
    }

    pub(crate) fn model(&self, decision: &str) -> &'static str {
        let model: &&str = self.chance(decision).one_of(MODELS);
        model
    }

    pub(crate) fn settings(&self) -> ModelSettings {
        let pick = |feature: Feature, values: &[f64]| {
            self.feature(feature, 30).map(|mut chance| *chance.one_of(values))
        };
        ModelSettings {
            thinking: self.feature(Feature::Thinking, 50).map(|mut chance| thinking(&mut chance)),
            effort: self.feature(Feature::Effort, 40).map(|mut chance| *chance.one_of(EFFORTS)),
            temperature: pick(Feature::Temperature, &[0.0, 0.3, 1.0, 1.7, 2.0]),
            top_p: pick(Feature::TopP, &[0.1, 0.9, 1.0]),
            stop: self.feature(Feature::Stop, 20).map(|mut chance| stops(&mut chance)).unwrap_or_default(),
            max_tokens: self
                .feature(Feature::MaxTokens, 40)
                .map(|mut chance| *chance.one_of(&[1, 15, 1_024, 4_096, 40_000, 100_000, 500_000])),
            seed: self.feature(Feature::SamplingSeed, 20).map(|_| 7),
            tool_choice: self
                .feature(Feature::ToolChoice, 30)
                .map(|mut chance| tool_choice(&mut chance, self.has_tools())),
            parallel_tool_calls: self
                .feature(Feature::ParallelCalls, 30)
                .map(|mut chance| chance.percent(50)),
            stream: Some(self.feature(Feature::Streams, 50).is_some()),
            ..ModelSettings::default()
        }
    }
}

fn thinking(chance: &mut Chance) -> Thinking {
    *chance.one_of(&[
        Thinking::Wanted(true),
        Thinking::Wanted(true),
        Thinking::Wanted(false),
        Thinking::Tokens(1),
        Thinking::Tokens(2_000),
        Thinking::Tokens(30_000),
        Thinking::Tokens(100_000),
    ])
}

fn stops(chance: &mut Chance) -> Vec<String> {
    let count = chance.between(1, 4);
    (0..count).map(|n| format!("STOP{n}")).collect()
}

/// A choice names only a tool that the agent has.
fn tool_choice(chance: &mut Chance, has_tools: bool) -> ToolChoice {
    match chance.below(4) {
        0 => ToolChoice::Auto,
        1 => ToolChoice::None,
        2 if has_tools => ToolChoice::Tool("look".to_owned()),
        _ => ToolChoice::Required,
    }
}
