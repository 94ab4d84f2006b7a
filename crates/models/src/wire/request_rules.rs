//! What a request leaves out or changes so that the provider accepts it, beyond what a
//! [`ModelProfile`](llm_do_core::ModelProfile) says.
//!
//! The encoders read these rules and know no model by its name. The rows that set them are in the table of
//! [`profiles`](crate::profiles).

use llm_do_core::Effort;

/// What a request to a model must keep to.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct RequestRules {
    /// The fewest and the most tokens of thinking that can be asked for.
    pub(crate) thinking_tokens: (u64, u64),
    /// Whether the model thinks if the request does not mention it.
    pub(crate) thinks_by_default: bool,
    /// The field of Chat Completions that controls thinking.
    pub(crate) thinking_field: ThinkingField,
    /// The highest effort that is accepted while thinking is off.
    pub(crate) max_effort_while_off: Effort,
    /// The fewest and the most output tokens that can be asked for.
    pub(crate) output_tokens: (u64, u64),
    /// The field of Chat Completions that limits the output.
    pub(crate) output_limit_field: &'static str,
    /// The highest temperature.
    pub(crate) max_temperature: f64,
    /// Whether `temperature` and `top_p` exclude each other.
    pub(crate) temperature_or_top_p: bool,
    /// Whether `temperature` and `top_p` are accepted while the model thinks.
    pub(crate) sampling_while_thinking: bool,
    /// How many stop sequences are accepted.
    pub(crate) max_stops: usize,
    /// Whether stop sequences may consist of white space.
    pub(crate) blank_stops: bool,
    /// The field of Chat Completions for the seed, if there is one.
    pub(crate) seed_field: Option<&'static str>,
    /// Whether usage in streams is asked for by `stream_options`.
    pub(crate) stream_options: bool,
    /// How many tools are accepted.
    pub(crate) max_tools: usize,
    /// Whether function tools are accepted while the model thinks.
    pub(crate) tools_while_thinking: bool,
    /// Whether the tools of the provider and of the client can be offered together.
    pub(crate) mixed_tools: bool,
    /// When a tool call can be forced.
    pub(crate) forced_tool_choice: ForcedToolChoice,
    /// The models of the same provider, besides the model itself, whose opaque blocks the model accepts.
    pub(crate) replays_from: &'static [&'static str],
    /// When assistant messages of Chat Completions hold `reasoning_content`.
    pub(crate) reasoning_content: ReasoningContent,
    /// Whether the first call of each turn needs a thought signature.
    pub(crate) thought_signatures: bool,
    /// Whether instructions have a role or a field of their own.
    pub(crate) system_role: bool,
    /// Whether a conversation may begin with the assistant.
    pub(crate) assistant_first: bool,
    /// Whether a conversation may end with the assistant, which then goes on with its message.
    pub(crate) assistant_last: bool,
    /// Whether a message of the user may follow the results of tools directly.
    pub(crate) user_after_tool: bool,
}

/// How a host of Chat Completions is told to think.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ThinkingField {
    /// `reasoning_effort` with a level.
    ReasoningEffort,
    /// `reasoning` with a level or a number of tokens (OpenRouter).
    Reasoning,
    /// `thinking` that is enabled or disabled, and `reasoning_effort` with a level (DeepSeek).
    Thinking,
}

/// When a request can force the model to call a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ForcedToolChoice {
    Always,
    NotWhileThinking,
    Never,
}

/// When assistant messages hold `reasoning_content`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReasoningContent {
    /// When the model gave it.
    AsGiven,
    /// Always, empty if the model gave none.
    Required,
    /// Never.
    Refused,
}

impl Default for RequestRules {
    fn default() -> Self {
        Self {
            thinking_tokens: (1, u64::MAX),
            thinks_by_default: false,
            thinking_field: ThinkingField::ReasoningEffort,
            max_effort_while_off: Effort::Max,
            output_tokens: (1, u64::MAX),
            output_limit_field: "max_tokens",
            max_temperature: 2.0,
            temperature_or_top_p: false,
            sampling_while_thinking: true,
            max_stops: usize::MAX,
            blank_stops: true,
            seed_field: Some("seed"),
            stream_options: true,
            max_tools: usize::MAX,
            tools_while_thinking: true,
            mixed_tools: false,
            forced_tool_choice: ForcedToolChoice::Always,
            replays_from: &[],
            reasoning_content: ReasoningContent::AsGiven,
            thought_signatures: false,
            system_role: true,
            assistant_first: true,
            assistant_last: true,
            user_after_tool: true,
        }
    }
}

/// One rule that a row of the table sets.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Rule {
    ThinkingTokens(u64, u64),
    ThinksByDefault(bool),
    ThinkingField(ThinkingField),
    MaxEffortWhileOff(Effort),
    MinOutput(u64),
    MaxOutput(u64),
    OutputLimitField(&'static str),
    MaxTemperature(f64),
    TemperatureOrTopP,
    SamplingWhileThinking(bool),
    MaxStops(usize),
    NoBlankStops,
    SeedField(Option<&'static str>),
    NoStreamOptions,
    MaxTools(usize),
    ToolsWhileThinking(bool),
    MixedTools(bool),
    ForcedToolChoice(ForcedToolChoice),
    ReplaysFrom(&'static [&'static str]),
    ReasoningContent(ReasoningContent),
    ThoughtSignatures(bool),
    NoSystemRole,
    NotAssistantFirst,
    AssistantLast(bool),
    NoUserAfterTool,
}

impl Rule {
    /// Sets the rule.
    pub(crate) fn apply(self, rules: &mut RequestRules) {
        match self {
            Self::ThinkingTokens(min, max) => rules.thinking_tokens = (min, max),
            Self::ThinksByDefault(thinks) => rules.thinks_by_default = thinks,
            Self::ThinkingField(field) => rules.thinking_field = field,
            Self::MaxEffortWhileOff(effort) => rules.max_effort_while_off = effort,
            Self::MinOutput(min) => rules.output_tokens.0 = min,
            Self::MaxOutput(max) => rules.output_tokens.1 = max,
            Self::OutputLimitField(field) => rules.output_limit_field = field,
            Self::MaxTemperature(max) => rules.max_temperature = max,
            Self::TemperatureOrTopP => rules.temperature_or_top_p = true,
            Self::SamplingWhileThinking(accepted) => rules.sampling_while_thinking = accepted,
            Self::MaxStops(max) => rules.max_stops = max,
            Self::NoBlankStops => rules.blank_stops = false,
            Self::SeedField(field) => rules.seed_field = field,
            Self::NoStreamOptions => rules.stream_options = false,
            Self::MaxTools(max) => rules.max_tools = max,
            Self::ToolsWhileThinking(accepted) => rules.tools_while_thinking = accepted,
            Self::MixedTools(accepted) => rules.mixed_tools = accepted,
            Self::ForcedToolChoice(when) => rules.forced_tool_choice = when,
            Self::ReplaysFrom(models) => rules.replays_from = models,
            Self::ReasoningContent(when) => rules.reasoning_content = when,
            Self::ThoughtSignatures(needed) => rules.thought_signatures = needed,
            Self::NoSystemRole => rules.system_role = false,
            Self::NotAssistantFirst => rules.assistant_first = false,
            Self::AssistantLast(accepted) => rules.assistant_last = accepted,
            Self::NoUserAfterTool => rules.user_after_tool = false,
        }
    }
}
