//! The table of what models can do.
//!
//! The rows are read from top to bottom, and each says only what it changes: first what a protocol can, then families
//! of models wherever they are hosted, then hosts. A family begins with its newest members, so that a model which is
//! younger than this table is taken for one of them; the older ones follow.
//!
//! What is refused is worse than what is left out, so what is not known counts as not supported.

use llm_do_core::Effort as Level;
use llm_do_core::Effort::{High, Low, Max, Medium, Minimal, Xhigh};
use llm_do_core::NativeOutput::{Always, Never, WithoutTools};
use llm_do_core::ThinkingStyle::{Budget, Effort, Unasked};
use llm_do_core::{EffortLevels, ProfileOverride};

use super::{ProfileRow, RowScope};
use crate::wire::request_rules::{ForcedToolChoice, ReasoningContent, Rule, ThinkingField};

pub(super) const NOTHING: ProfileOverride = ProfileOverride {
    native_output: None,
    max_output: None,
    images: None,
    documents: None,
    sampling: None,
    thinking: None,
    effort_levels: None,
    context_window: None,
};

const fn protocol(name: &'static str, says: ProfileOverride) -> ProfileRow {
    ProfileRow { of: RowScope::Protocol(name), models: &["*"], says, server_tools: None, rules: &[] }
}

const fn family(models: &'static [&'static str], says: ProfileOverride) -> ProfileRow {
    ProfileRow { of: RowScope::Anywhere, models, says, server_tools: None, rules: &[] }
}

const fn host(name: &'static str, models: &'static [&'static str], says: ProfileOverride) -> ProfileRow {
    ProfileRow { of: RowScope::Provider(name), models, says, server_tools: None, rules: &[] }
}

const fn tools(
    name: &'static str,
    models: &'static [&'static str],
    tools: &'static [&'static str],
) -> ProfileRow {
    ProfileRow { of: RowScope::Protocol(name), models, says: NOTHING, server_tools: Some(tools), rules: &[] }
}

const fn rules(name: &'static str, models: &'static [&'static str], rules: &'static [Rule]) -> ProfileRow {
    ProfileRow { of: RowScope::Protocol(name), models, says: NOTHING, server_tools: None, rules }
}

const fn levels(levels: &[Level]) -> ProfileOverride {
    ProfileOverride { effort_levels: Some(EffortLevels::new(levels)), ..NOTHING }
}

/// The levels of a model that takes `temperature` as long as it does not think.
const fn sampled_levels(among: &[Level]) -> ProfileOverride {
    ProfileOverride { sampling: Some(true), ..levels(among) }
}

/// The levels of a model that always thinks, unlike others of its family.
const fn always_thinking(among: &[Level]) -> ProfileOverride {
    ProfileOverride { sampling: Some(false), ..levels(among) }
}

/// A server that enforces schemas by a grammar: with one, no tool is ever called.
const LOCAL: ProfileOverride = ProfileOverride {
    native_output: Some(WithoutTools),
    max_output: Some(4_096),
    documents: Some(false),
    sampling: Some(true),
    thinking: Some(Unasked),
    ..NOTHING
};

/// A host of open models.
const HOSTED: ProfileOverride = ProfileOverride {
    native_output: Some(Never),
    max_output: Some(8_192),
    documents: Some(false),
    sampling: Some(true),
    thinking: Some(Unasked),
    ..NOTHING
};

const TEXT_ONLY: ProfileOverride = ProfileOverride { images: Some(false), documents: Some(false), ..NOTHING };

pub(super) static TABLE: &[ProfileRow] = &[
    // ---- Protocols: what holds for models that no family knows.
    protocol("anthropic", ProfileOverride { documents: Some(false), thinking: Some(Budget), ..NOTHING })
        .with(&[
            Rule::ThinkingTokens(1_024, u64::MAX),
            Rule::SamplingWhileThinking(false),
            Rule::ForcedToolChoice(ForcedToolChoice::NotWhileThinking),
        ]),
    // Limits of Anthropic's own models. Other servers that speak its protocol take what they take.
    host("anthropic", &["*"], NOTHING).with(CLAUDE_LIMITS),
    rules("anthropic", &["claude*"], CLAUDE_LIMITS),
    protocol("openai", ProfileOverride { native_output: Some(Always), ..NOTHING })
        .with(&[Rule::MinOutput(16), Rule::MaxTools(128)]),
    protocol("openai-chat", ProfileOverride { documents: Some(false), ..NOTHING }),
    protocol("gemini", ProfileOverride { native_output: Some(WithoutTools), ..NOTHING }).with(&[
        Rule::MaxStops(5),
        Rule::NotAssistantFirst,
        Rule::AssistantLast(false),
    ]),
    protocol("ollama", ProfileOverride { thinking: Some(Effort), ..LOCAL }),
    // ---- Claude. From Opus 4.7 on, `temperature` and numbers of thinking tokens are refused.
    family(
        &["claude*"],
        ProfileOverride {
            native_output: Some(Always),
            max_output: Some(32_000),
            images: Some(true),
            documents: Some(true),
            sampling: Some(false),
            thinking: Some(Effort),
            effort_levels: Some(LOW_TO_MAX),
            ..NOTHING
        },
    )
    .with(&[
        Rule::ThinksByDefault(true),
        Rule::MaxOutput(128_000),
        Rule::TemperatureOrTopP,
        Rule::ForcedToolChoice(ForcedToolChoice::Always),
        Rule::ReplaysFrom(&["claude*"]),
        Rule::AssistantLast(false),
    ]),
    family(&["claude-fable*", "claude-mythos*"], NOTHING)
        .with(&[Rule::ForcedToolChoice(ForcedToolChoice::Never)]),
    family(&["claude-opus-5", "claude-opus-5-20*"], levels(&[OFF, Low, Medium, High, Xhigh, Max]))
        .with(&[Rule::MaxEffortWhileOff(High)]),
    family(&["claude-sonnet-5", "claude-sonnet-5-20*"], levels(&[OFF, Low, Medium, High, Xhigh, Max])),
    family(&["claude-opus-4-7*", "claude-opus-4-8*"], levels(&[OFF, Low, Medium, High, Xhigh, Max]))
        .with(&[Rule::ThinksByDefault(false)]),
    family(
        &["claude-opus-4-6*", "claude-sonnet-4-6*"],
        ProfileOverride { sampling: Some(true), ..levels(&[OFF, Low, Medium, High, Max]) },
    )
    .with(&[Rule::ThinksByDefault(false)]),
    family(
        &["claude-*-4-5*", "claude-4-5*", "claude-opus-4-1*", "claude-4-1*"],
        ProfileOverride {
            sampling: Some(true),
            thinking: Some(Budget),
            effort_levels: Some(EffortLevels::ALL),
            ..NOTHING
        },
    )
    .with(CLAUDE_TO_4_5),
    family(
        &["claude-opus-4", "claude-opus-4-0*", "claude-opus-4-2025*", "claude-4-opus*", "claude-sonnet-4"],
        OLDER_CLAUDE,
    )
    .with(CLAUDE_TO_4_5),
    family(&["claude-sonnet-4-0*", "claude-sonnet-4-2025*", "claude-4-sonnet*", "claude-3-7*"], OLDER_CLAUDE)
        .with(CLAUDE_TO_4_5),
    family(
        &["claude-opus-4", "claude-opus-4-0*", "claude-opus-4-1*", "claude-opus-4-2025*", "claude-4-opus*"],
        NOTHING,
    )
    .with(&[Rule::MaxOutput(32_000)]),
    family(&["claude-4-1*"], NOTHING).with(&[Rule::MaxOutput(32_000)]),
    family(
        &["claude-3-5*"],
        ProfileOverride { max_output: Some(8_192), thinking: Some(Unasked), ..OLDER_CLAUDE },
    )
    .with(CLAUDE_TO_4_5),
    family(&["claude-3-5*"], NOTHING).with(&[Rule::MaxOutput(8_192)]),
    family(
        &["claude-3-haiku*", "claude-3-opus*", "claude-3-sonnet*"],
        ProfileOverride {
            max_output: Some(4_096),
            documents: Some(false),
            thinking: Some(Unasked),
            ..OLDER_CLAUDE
        },
    )
    .with(CLAUDE_TO_4_5),
    family(
        &["claude-2*", "claude-instant*", "claude-v*"],
        ProfileOverride {
            max_output: Some(4_096),
            images: Some(false),
            documents: Some(false),
            thinking: Some(Unasked),
            ..OLDER_CLAUDE
        },
    )
    .with(CLAUDE_TO_4_5),
    family(&["claude-3-haiku*", "claude-3-opus*", "claude-3-sonnet*"], NOTHING)
        .with(&[Rule::MaxOutput(4_096)]),
    family(&["claude-2*", "claude-instant*", "claude-v*"], NOTHING).with(&[Rule::MaxOutput(4_096)]),
    // ---- OpenAI. While a model thinks, `temperature` is refused; GPT-5 and the o series always think.
    family(
        &["gpt-*", "o1*", "o3*", "o4*", "codex-*"],
        ProfileOverride {
            native_output: Some(Always),
            max_output: Some(32_000),
            images: Some(true),
            documents: Some(true),
            sampling: Some(false),
            thinking: Some(Effort),
            effort_levels: Some(LOW_TO_HIGH),
            ..NOTHING
        },
    )
    .with(&[
        Rule::ThinksByDefault(true),
        Rule::SamplingWhileThinking(false),
        Rule::MaxStops(0),
        Rule::OutputLimitField("max_completion_tokens"),
        Rule::ReplaysFrom(&["gpt-5*", "gpt-6*", "o1*", "o3*", "o4*", "codex-*"]),
    ]),
    family(&["o1*"], NOTHING).with(&[Rule::MaxStops(4)]),
    family(
        &["o1-mini*", "o1-preview*"],
        ProfileOverride { native_output: Some(Never), thinking: Some(Unasked), ..TEXT_ONLY },
    )
    .with(&[Rule::NoSystemRole, Rule::ReplaysFrom(&[])]),
    family(&["o3-mini*"], TEXT_ONLY).with(&[Rule::MaxStops(4)]),
    family(&["gpt-5", "gpt-5-20*", "gpt-5-mini*", "gpt-5-nano*"], levels(&[Minimal, Low, Medium, High])),
    family(&["gpt-5-pro*"], levels(&[High])),
    family(&["gpt-5.1*"], sampled_levels(&[OFF, Low, Medium, High])).with(&[Rule::ThinksByDefault(false)]),
    family(&["gpt-5.2*", "gpt-5.3*", "gpt-5.4*"], sampled_levels(&[OFF, Low, Medium, High, Xhigh]))
        .with(&[Rule::ThinksByDefault(false)]),
    family(&["gpt-5.4-mini*", "gpt-5.4-nano*"], levels(&[OFF, Low, Medium, High])),
    family(&["gpt-5.5*"], sampled_levels(&[OFF, Low, Medium, High, Xhigh])),
    family(
        &["gpt-5.6*", "gpt-6*-sol*", "gpt-6*-luna*", "gpt-6*-terra*"],
        sampled_levels(&[OFF, Low, Medium, High, Xhigh, Max]),
    ),
    family(&["gpt-5.*-pro*"], always_thinking(&[Medium, High, Xhigh])).with(&[Rule::ThinksByDefault(true)]),
    family(&["gpt-5.*-codex*"], always_thinking(&[Low, Medium, High, Xhigh]))
        .with(&[Rule::ThinksByDefault(true)]),
    family(&["gpt-5.1-codex*"], levels(&[Low, Medium, High])),
    family(&["gpt-5.1-codex-mini*"], levels(&[Medium, High])),
    family(&["gpt-5.1-codex-max*"], levels(&[Low, Medium, High, Xhigh])),
    family(&["gpt-5.*-chat*"], always_thinking(&[Medium])).with(&[Rule::ThinksByDefault(true)]),
    family(
        &["gpt-5-chat*", "chatgpt-*", "gpt-4.5*", "gpt-4o*"],
        ProfileOverride {
            native_output: Some(Always),
            max_output: Some(16_384),
            images: Some(true),
            documents: Some(true),
            sampling: Some(true),
            thinking: Some(Unasked),
            ..NOTHING
        },
    )
    .with(NEVER_THINKS),
    family(&["gpt-4.1*"], ProfileOverride { sampling: Some(true), thinking: Some(Unasked), ..NOTHING })
        .with(NEVER_THINKS),
    family(
        &["gpt-4o-2024-05-13*"],
        ProfileOverride { native_output: Some(Never), max_output: Some(4_096), ..NOTHING },
    ),
    family(
        &["gpt-4", "gpt-4-*", "gpt-3.5*"],
        ProfileOverride {
            native_output: Some(Never),
            max_output: Some(4_096),
            images: Some(false),
            documents: Some(false),
            sampling: Some(true),
            thinking: Some(Unasked),
            ..NOTHING
        },
    )
    .with(NEVER_THINKS),
    family(&["gpt-4-turbo*", "gpt-4-vision*"], ProfileOverride { images: Some(true), ..NOTHING }),
    family(&["gpt-*-search*"], ProfileOverride { sampling: Some(false), ..NOTHING }),
    family(
        &["gpt-oss*"],
        ProfileOverride {
            native_output: Some(Never),
            max_output: Some(16_384),
            sampling: Some(true),
            ..TEXT_ONLY
        },
    )
    .with(NEVER_THINKS),
    family(&["gpt-oss*"], NOTHING)
        .with(&[Rule::ThinksByDefault(true), Rule::ForcedToolChoice(ForcedToolChoice::Never)]),
    // ---- Gemini. From 3 on, schemas and tools go together and thinking is told by a word.
    family(
        &["gemini-*"],
        ProfileOverride {
            native_output: Some(Always),
            max_output: Some(32_000),
            images: Some(true),
            documents: Some(true),
            sampling: Some(true),
            thinking: Some(Effort),
            effort_levels: Some(LOW_TO_HIGH),
            ..NOTHING
        },
    )
    .with(&[Rule::ThinksByDefault(true), Rule::MixedTools(true), Rule::ThoughtSignatures(true)]),
    family(
        &["gemini-3-flash*", "gemini-3.1-flash*", "gemini-3.5-flash*"],
        levels(&[Minimal, Low, Medium, High]),
    ),
    family(
        &["gemini-2*"],
        ProfileOverride {
            native_output: Some(WithoutTools),
            thinking: Some(Budget),
            effort_levels: Some(EffortLevels::ALL),
            ..NOTHING
        },
    )
    .with(&[Rule::ThinkingTokens(1, 24_576), Rule::MixedTools(false), Rule::ThoughtSignatures(false)]),
    family(&["gemini-2*-flash-lite*"], NOTHING).with(&[Rule::ThinkingTokens(512, 24_576)]),
    family(&["gemini-2*-pro*"], levels(&[Minimal, Low, Medium, High, Xhigh, Max]))
        .with(&[Rule::ThinkingTokens(128, 32_768)]),
    family(
        &["gemini-2.0*", "gemini-1*"],
        ProfileOverride {
            native_output: Some(WithoutTools),
            max_output: Some(8_192),
            thinking: Some(Unasked),
            ..NOTHING
        },
    )
    .with(&[Rule::ThinksByDefault(false), Rule::MixedTools(false), Rule::ThoughtSignatures(false)]),
    family(&["gemma-*"], HOSTED).with(&[Rule::NoSystemRole]),
    // ---- Others.
    family(&["deepseek*"], ProfileOverride { images: Some(false), ..HOSTED }),
    family(&["deepseek-reasoner*", "deepseek-r1*"], ProfileOverride { max_output: Some(32_000), ..NOTHING })
        .with(&[
            Rule::ThinksByDefault(true),
            Rule::ForcedToolChoice(ForcedToolChoice::NotWhileThinking),
            Rule::ReasoningContent(ReasoningContent::Refused),
        ]),
    family(
        &["grok-*"],
        ProfileOverride {
            native_output: Some(Always),
            max_output: Some(16_384),
            images: Some(true),
            thinking: Some(Effort),
            effort_levels: Some(LOW_TO_HIGH),
            ..HOSTED
        },
    )
    .with(&[Rule::ThinksByDefault(true), Rule::MaxStops(0)]),
    family(&["grok-4.3*"], levels(&[OFF, Low, Medium, High])),
    family(&["grok-4.6*"], levels(&[Low, Medium, High, Xhigh])),
    family(
        &["grok-4", "grok-4-*", "grok-4.1*", "grok-4.20*", "grok-code*"],
        ProfileOverride { thinking: Some(Unasked), ..NOTHING },
    ),
    family(&["grok-*non-reasoning*"], NOTHING).with(&[Rule::ThinksByDefault(false), Rule::MaxStops(4)]),
    family(
        &["grok-2*", "grok-3*"],
        ProfileOverride {
            native_output: Some(WithoutTools),
            images: Some(false),
            thinking: Some(Unasked),
            ..NOTHING
        },
    )
    .with(&[Rule::ThinksByDefault(false), Rule::MaxStops(4)]),
    family(&["grok-2-vision*"], ProfileOverride { images: Some(true), ..NOTHING }),
    family(&["grok-3-mini*"], ProfileOverride { thinking: Some(Effort), ..levels(&[Low, High]) })
        .with(&[Rule::ThinksByDefault(true), Rule::MaxStops(0)]),
    family(&["kimi*", "qwen*coder*"], NOTHING).with(&[Rule::ForcedToolChoice(ForcedToolChoice::Never)]),
    family(&["magistral*"], NOTHING).with(&[Rule::ThinksByDefault(true)]),
    family(
        &[
            "codestral*",
            "devstral*",
            "open-mi*",
            "mistral-nemo*",
            "mistral-7b*",
            "mistral-tiny*",
            "mistral-saba*",
        ],
        TEXT_ONLY,
    ),
    // ---- Chat Completions of OpenAI: newer models take no tools while they think.
    rules("openai-chat", &["gpt-*"], &[Rule::ToolsWhileThinking(false)]),
    rules(
        "openai-chat",
        &["gpt-5", "gpt-5-*", "gpt-5.1*", "gpt-5.2*", "gpt-5.3*", "gpt-4*", "gpt-3*", "gpt-oss*"],
        &[Rule::ToolsWhileThinking(true)],
    ),
    // ---- Hosts.
    host("openai-chat", &["*"], NOTHING)
        .with(&[Rule::MaxTools(128), Rule::OutputLimitField("max_completion_tokens")]),
    host("azure", &["*"], ProfileOverride { documents: Some(false), ..NOTHING })
        .with(&[Rule::MaxTools(128), Rule::OutputLimitField("max_completion_tokens")]),
    host("azure", &["mistral*", "ministral*", "codestral*"], NOTHING)
        .with(&[Rule::OutputLimitField("max_tokens")]),
    host(
        "openrouter",
        &["*"],
        ProfileOverride {
            native_output: Some(Never),
            thinking: Some(Effort),
            effort_levels: Some(EffortLevels::ALL),
            ..NOTHING
        },
    )
    .with(&[
        Rule::ThinkingField(ThinkingField::Reasoning),
        Rule::ToolsWhileThinking(true),
        Rule::OutputLimitField("max_tokens"),
    ]),
    host("openrouter", &["anthropic/*"], NOTHING)
        .with(&[Rule::ForcedToolChoice(ForcedToolChoice::NotWhileThinking)]),
    host(
        "openrouter",
        &["openai/gpt-*", "openai/o*"],
        ProfileOverride { native_output: Some(Always), ..NOTHING },
    ),
    host(
        "openrouter",
        &["openai/gpt-3.5*", "openai/gpt-4", "openai/gpt-4-*", "openai/gpt-oss*"],
        ProfileOverride { native_output: Some(Never), ..NOTHING },
    ),
    host("groq", &["*"], ProfileOverride { images: Some(false), ..HOSTED }).with(&[Rule::MaxStops(4)]),
    host("groq", &["llama-4*"], ProfileOverride { images: Some(true), ..NOTHING }),
    host("groq", &["gpt-oss*"], ProfileOverride { thinking: Some(Effort), ..NOTHING }),
    host("deepseek", &["*"], ProfileOverride { thinking: Some(Effort), ..levels(&[OFF, Low, High, Max]) })
        .with(&[
            Rule::ThinksByDefault(true),
            Rule::ThinkingField(ThinkingField::Thinking),
            Rule::SeedField(None),
            Rule::ForcedToolChoice(ForcedToolChoice::NotWhileThinking),
            Rule::ReasoningContent(ReasoningContent::Required),
        ]),
    // The host serves V4 under these names, too, and decides by the name whether it thinks.
    host("deepseek", &["deepseek-reasoner*"], ProfileOverride { thinking: Some(Unasked), ..NOTHING }),
    host(
        "deepseek",
        &["deepseek-chat*", "deepseek-v3*", "deepseek-coder*"],
        ProfileOverride { thinking: Some(Unasked), ..NOTHING },
    )
    .with(&[
        Rule::ThinksByDefault(false),
        Rule::ForcedToolChoice(ForcedToolChoice::Always),
        Rule::ReasoningContent(ReasoningContent::AsGiven),
    ]),
    host("mistral", &["*"], NOTHING).with(&[
        Rule::SeedField(Some("random_seed")),
        Rule::NoStreamOptions,
        Rule::NotAssistantFirst,
        Rule::AssistantLast(false),
        Rule::NoUserAfterTool,
    ]),
    host(
        "mistral",
        &["mistral-small-2603*", "mistral-medium-3.5*", "mistral-medium-3-5*"],
        ProfileOverride { thinking: Some(Effort), ..levels(&[OFF, High]) },
    ),
    host("together", &["*"], HOSTED),
    host("together", &["gpt-oss*"], ProfileOverride { thinking: Some(Effort), ..NOTHING }),
    host("fireworks", &["*"], HOSTED),
    host("fireworks", &["gpt-oss*"], ProfileOverride { thinking: Some(Effort), ..NOTHING }),
    host(
        "ollama",
        &["*"],
        ProfileOverride { thinking: Some(Effort), effort_levels: Some(EffortLevels::new(&[OFF])), ..LOCAL },
    ),
    host("ollama", &["gpt-oss*"], levels(&[Low, Medium, High])),
    host("llamacpp", &["*"], LOCAL).with(&[Rule::AssistantLast(false)]),
    host("lmstudio", &["*"], LOCAL),
    host("vllm", &["*"], LOCAL),
    // ---- Tools that providers run, by protocol: first for models that no family knows.
    tools("anthropic", &["*"], &["web_search", "web_fetch", "code_execution"]),
    tools(
        "anthropic",
        &["claude-2*", "claude-instant*", "claude-v*", "claude-3-haiku*", "claude-3-opus*"],
        &[],
    ),
    tools("anthropic", &["claude-3-sonnet*"], &[]),
    tools("openai", &["*"], &["web_search", "code_execution", "image_generation"]),
    tools("openai", &["gpt-3.5*", "gpt-4", "gpt-4-*", "o1-mini*", "o1-preview*", "gpt-oss*"], &[]),
    tools("gemini", &["*"], &["web_search", "web_fetch", "code_execution"]),
    tools("gemini", &["gemini-1*", "gemma-*"], &[]),
];

/// What Anthropic refuses of all its models.
const CLAUDE_LIMITS: &[Rule] = &[Rule::MaxTemperature(1.0), Rule::NoBlankStops];

/// What Claude up to 4 has in common.
const OLDER_CLAUDE: ProfileOverride = ProfileOverride {
    native_output: Some(Never),
    sampling: Some(true),
    thinking: Some(Budget),
    effort_levels: Some(EffortLevels::ALL),
    ..NOTHING
};

/// The rules of Claude up to 4.5.
const CLAUDE_TO_4_5: &[Rule] = &[
    Rule::ThinksByDefault(false),
    Rule::MaxOutput(64_000),
    Rule::ForcedToolChoice(ForcedToolChoice::NotWhileThinking),
    Rule::AssistantLast(true),
];

/// The rules of models of OpenAI that do not reason.
const NEVER_THINKS: &[Rule] = &[
    Rule::ThinksByDefault(false),
    Rule::SamplingWhileThinking(true),
    Rule::MaxStops(4),
    Rule::OutputLimitField("max_tokens"),
    Rule::ReplaysFrom(&[]),
];

/// Among the levels of a model: thinking can be switched off.
const OFF: Level = Level::None;

const LOW_TO_HIGH: EffortLevels = EffortLevels::new(&[Low, Medium, High]);

const LOW_TO_MAX: EffortLevels = EffortLevels::new(&[Low, Medium, High, Xhigh, Max]);
