//! The model trait: one request in, a stream of parts out.
//!
//! A model opens a *session* per agent call. A session is a cache of the encoded history and nothing else:
//! dropping it changes no byte that is sent.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use futures::stream::BoxStream;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    Conversation, Cost, EffortLevels, MediaTokens, Message, ModelSettings, Name, Schema, ServerTool,
    ToolDefinition, Usage,
};

/// The tool through which a model gives a structured answer, where its provider does not enforce a schema.
pub const FINAL_ANSWER: &str = "final_answer";

/// A model that can be asked.
pub trait Model: Send + Sync {
    /// Returns the name as users write it, such as `anthropic:claude-sonnet`.
    fn name(&self) -> &Name;

    /// Describes what the model can do.
    fn profile(&self) -> ModelProfile {
        ModelProfile::default()
    }

    /// Returns whether the provider enforces this schema on an answer, with or without tools beside it. Otherwise the
    /// runtime offers a tool for the answer.
    fn enforces(&self, schema: &Schema, has_tools: bool) -> bool {
        self.profile().enforces(schema, has_tools)
    }

    /// Opens a session for one agent call.
    fn open(&self) -> Box<dyn ModelSession>;

    /// Tells the model that a run goes on in which it had answered so often before, failures included. Only models that
    /// count their answers care.
    fn resumed(&self, _answers: u64) {}
}

/// One agent call's side of a model.
pub trait ModelSession: Send {
    /// Sends one request. The stream ends with [`ModelPart::Finished`]; ending without it means that the
    /// answer was cut.
    fn request<'a>(
        &'a mut self,
        request: ModelRequest<'a>,
    ) -> BoxFuture<'a, Result<ModelStream<'a>, ModelError>>;

    /// Copies what is kept of the conversation so far, for one that goes on from there; nothing: there is nothing
    /// worth copying.
    fn fork(&self) -> Option<Box<dyn ModelSession>> {
        None
    }

    /// Tells the session, before its first request, that its call goes on in which the model had answered so often before.
    fn resumed(&mut self, _answers: u64) {}
}

/// The parts of an answer as they arrive.
pub type ModelStream<'a> = BoxStream<'a, Result<ModelPart, ModelError>>;

/// One request to a model. It borrows the conversation: nothing is copied per turn.
#[derive(Debug, Clone, Copy)]
pub struct ModelRequest<'a> {
    /// The agent's instructions.
    pub instructions: &'a str,
    /// The history, oldest first.
    pub conversation: &'a Conversation,
    /// The tools on offer, always in the same order.
    pub tools: &'a [Arc<ToolDefinition>],
    /// The tools that the provider runs itself, as far as they are permitted.
    pub server_tools: &'a [ServerTool],
    /// The schema of the answer, where the provider is to enforce it.
    pub output_schema: Option<&'a Schema>,
    /// The agent's settings.
    pub settings: &'a ModelSettings,
    /// The most output tokens that the budget allows.
    pub max_output: Option<u64>,
}

/// One part of a streamed answer.
#[derive(Debug, Clone, PartialEq)]
pub enum ModelPart {
    /// More text.
    Text(String),
    /// More thinking.
    Thinking(String),
    /// Something about the request that a person should know: what was left out, what a cache will miss.
    Notice(String),
    /// The whole answer; always the last part.
    Finished(ModelResponse),
}

/// A complete answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ModelResponse {
    /// The message.
    pub message: Arc<Message>,
    /// Why the model stopped.
    pub stop: StopReason,
    /// What was used.
    pub usage: Usage,
    /// What the provider's own tools did, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub server_calls: Vec<ServerCall>,
}

impl ModelResponse {
    /// An answer for which no tool of the provider ran.
    pub fn new(message: impl Into<Arc<Message>>, stop: StopReason, usage: Usage) -> Self {
        Self { message: message.into(), stop, usage, server_calls: Vec::new() }
    }
}

/// One use of a tool that runs at the provider.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ServerCall {
    /// The provider's id of the call.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub id: String,
    /// The tool, by the name of [`ServerTool::name`] where it is one of them, else by the provider's own.
    pub name: Name,
    /// What it was given.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub input: Value,
    /// What it gave, as far as the provider shows it; nothing where the provider has not finished it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<Value>,
    /// Whether it failed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_error: bool,
}

/// Why a model stopped.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StopReason {
    /// It had said everything.
    EndTurn,
    /// It waits for tool results.
    ToolUse,
    /// The output limit cut it; its tool calls are not run.
    MaxTokens,
    /// It met a stop sequence.
    StopSequence,
    /// It, or a filter, refused.
    Refusal,
    /// The provider paused a long turn and wants to go on.
    Pause,
    /// A reason that only the provider knows.
    Other(String),
}

/// What a model can do, and how it wants to be asked.
///
/// It is data: the table comes with the providers, and a project may overrule it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelProfile {
    /// Whether the provider enforces a schema on the answer; otherwise the runtime offers a tool for it.
    pub native_output: NativeOutput,
    /// Whether the provider enforces only objects without open maps.
    pub closed_output_only: bool,
    /// Output tokens reserved where neither agent nor request says how many, and asked for where the provider
    /// wants a number.
    pub default_max_output: u64,
    /// Whether it accepts images.
    pub images: bool,
    /// Whether it accepts PDF documents.
    pub documents: bool,
    /// Whether it takes the settings of sampling (`temperature`, `top_p`).
    pub sampling: bool,
    /// How thinking is requested.
    pub thinking: ThinkingStyle,
    /// The levels of effort that it accepts. With only `none` among them, thinking is either on or off.
    pub effort_levels: EffortLevels,
    /// The tools that its provider can run, by name.
    pub server_tools: &'static [&'static str],
    /// How many input tokens attachments cost at most.
    pub media: MediaTokens,
    /// How many tokens it reads at once, its answer included, if that is known.
    pub context_window: Option<u64>,
}

/// Whether a provider enforces a schema on the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum NativeOutput {
    /// It does not.
    Never,
    /// Only where no tools are on offer.
    WithoutTools,
    /// It does.
    Always,
}

/// How a model is told to think.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ThinkingStyle {
    /// It is not: it never thinks, or always.
    Unasked,
    /// By a number of tokens.
    Budget,
    /// By a word.
    Effort,
}

impl ModelProfile {
    /// Returns whether the provider enforces the schema of an answer, with or without tools beside it.
    pub fn enforces_output(&self, has_tools: bool) -> bool {
        match self.native_output {
            NativeOutput::Never => false,
            NativeOutput::WithoutTools => !has_tools,
            NativeOutput::Always => true,
        }
    }

    /// Returns whether the provider enforces this schema on an answer, with or without tools beside it.
    pub fn enforces(&self, schema: &Schema, has_tools: bool) -> bool {
        let source = schema.source();
        let is_closed = source.get("type").is_some_and(|kind| kind == "object") && !is_open(source);
        self.enforces_output(has_tools) && (!self.closed_output_only || is_closed)
    }
}

/// The keywords that say what a value is; a schema without any of them takes whatever comes.
const SAYING: &[&str] = &["type", "properties", "enum", "const", "$ref", "anyOf", "allOf", "oneOf"];

/// Returns whether a schema takes fields that it does not name, anywhere in it. An object that names its fields and is
/// silent about others counts as closed.
fn is_open(schema: &Value) -> bool {
    let Value::Object(map) = schema else { return schema != &Value::Bool(false) };
    let is_object = map.get("type").is_some_and(|kind| {
        kind == "object" || kind.as_array().is_some_and(|kinds| kinds.iter().any(|kind| kind == "object"))
    });
    let any_open = |key: &str| match map.get(key) {
        Some(Value::Object(schemas)) => schemas.values().any(is_open),
        Some(Value::Array(schemas)) => schemas.iter().any(is_open),
        _ => false,
    };
    !SAYING.iter().any(|key| map.contains_key(*key))
        || is_object && !map.contains_key("properties")
        || map.get("additionalProperties").is_some_and(|more| more != &Value::Bool(false))
        || map.contains_key("patternProperties")
        || ["properties", "$defs", "definitions", "anyOf", "allOf", "oneOf", "prefixItems"]
            .into_iter()
            .any(any_open)
        || map.get("items").is_some_and(is_open)
}

impl Default for ModelProfile {
    fn default() -> Self {
        Self {
            native_output: NativeOutput::Never,
            closed_output_only: false,
            default_max_output: 8_192,
            images: true,
            documents: true,
            sampling: true,
            thinking: ThinkingStyle::Unasked,
            effort_levels: EffortLevels::ALL,
            server_tools: &[],
            media: MediaTokens::default(),
            context_window: None,
        }
    }
}

/// Why a model gave no answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, thiserror::Error)]
pub struct ModelError {
    /// The kind, on which policy depends.
    pub kind: ModelErrorKind,
    /// The provider's own words.
    pub message: String,
    /// How long the provider asks to wait.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after: Option<Duration>,
    /// Whether the provider asks not to be sent the same request again, whatever the kind.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_final: bool,
    /// What the provider charged for the attempt.
    #[serde(default)]
    pub cost: AttemptCost,
}

/// What a provider charged for an attempt that failed.
///
/// A budget gives the whole reservation back for [`AttemptCost::Nothing`] and keeps all of it for
/// [`AttemptCost::Unknown`]: a limit must hold even if the provider charged everything that it could.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AttemptCost {
    /// Nothing: the provider refused the request, or never received it.
    Nothing,
    /// What the provider reported for the whole attempt.
    Known(Box<Usage>),
    /// Unknown: the provider may have processed the request. What it had reported before the attempt broke off, if
    /// anything, is a lower bound.
    Unknown(Option<Box<Usage>>),
}

impl Default for AttemptCost {
    fn default() -> Self {
        Self::Unknown(None)
    }
}

impl AttemptCost {
    /// Returns what the provider reported.
    pub fn reported(&self) -> Option<&Usage> {
        match self {
            Self::Nothing => None,
            Self::Known(usage) => Some(usage),
            Self::Unknown(usage) => usage.as_deref(),
        }
    }

    /// What an answer cost that reports this usage. One that reports no tokens is of unknown cost, unless it is known to be
    /// free.
    pub fn from_answer(usage: &Usage) -> Self {
        if usage.tokens() > 0 || usage.cost.unpriced == 0 {
            Self::Known(Box::new(*usage))
        } else {
            Self::Unknown(Some(Box::new(*usage)))
        }
    }

    /// Returns what is counted for the attempt: a request, and what the provider reported.
    pub fn counted(&self) -> Usage {
        match self {
            Self::Nothing => Usage { requests: 1, ..Usage::default() },
            Self::Known(usage) | Self::Unknown(Some(usage)) => **usage,
            Self::Unknown(None) => {
                let cost = Cost { unpriced: 1, ..Cost::default() };
                Usage { requests: 1, cost, ..Usage::default() }
            }
        }
    }

    /// Applies a function to what the provider reported.
    #[must_use]
    pub fn map(self, change: impl FnOnce(Usage) -> Usage) -> Self {
        match self {
            Self::Nothing => Self::Nothing,
            Self::Known(usage) => Self::Known(Box::new(change(*usage))),
            Self::Unknown(usage) => Self::Unknown(usage.map(|usage| Box::new(change(*usage)))),
        }
    }
}

impl fmt::Display for ModelError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.kind.describe(), self.message)
    }
}

/// The kinds of model errors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ModelErrorKind {
    /// No model is named, or the name is not understood.
    NoModel,
    /// The key is missing or wrong.
    Auth,
    /// The provider does not know the model.
    NotFound,
    /// The request was refused as invalid.
    Invalid,
    /// The conversation is too long for the model.
    ContextOverflow,
    /// The request has more bytes, or more of something, than the provider accepts.
    TooLarge,
    /// Too many requests.
    RateLimit,
    /// The account has no quota left.
    Quota,
    /// The provider is overloaded.
    Overloaded,
    /// The provider failed.
    Server,
    /// The provider could not be reached.
    Network,
    /// The answer was cut.
    Truncated,
    /// The answer took longer than it may.
    TimedOut,
    /// The answer, or a part of it, is larger than llm-do reads.
    AnswerTooLarge,
    /// A content filter refused.
    ContentFilter,
}

/// What the runtime does about an error of a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorClass {
    /// The provider is at fault, and the same request may succeed later: it is retried, then another model is asked,
    /// and if all fail the run ends.
    Passing,
    /// The provider is at fault, and waiting does not help: another model is asked, and if all fail the run ends.
    Lasting,
    /// The request or the project is at fault: the caller of the agent gets the error, and the run continues.
    Permanent,
}

impl ModelErrorKind {
    /// Returns what the runtime does about an error of this kind.
    pub fn class(self) -> ErrorClass {
        match self {
            Self::RateLimit | Self::Overloaded | Self::Server | Self::Network | Self::Truncated => {
                ErrorClass::Passing
            }
            Self::Quota | Self::TimedOut => ErrorClass::Lasting,
            Self::NoModel
            | Self::Auth
            | Self::NotFound
            | Self::Invalid
            | Self::ContextOverflow
            | Self::TooLarge
            | Self::AnswerTooLarge
            | Self::ContentFilter => ErrorClass::Permanent,
        }
    }

    /// Returns whether the provider, not the request, is at fault: another model may do, and the run cannot go on.
    pub fn is_outage(self) -> bool {
        self.class() != ErrorClass::Permanent
    }

    /// Returns whether the same request may succeed a little later.
    pub fn is_passing(self) -> bool {
        self.class() == ErrorClass::Passing
    }

    /// Returns the kind in words.
    pub fn describe(self) -> &'static str {
        match self {
            Self::NoModel => "no model",
            Self::Auth => "not authorized",
            Self::NotFound => "model not found",
            Self::Invalid => "invalid request",
            Self::ContextOverflow => "conversation too long",
            Self::TooLarge => "request too large",
            Self::AnswerTooLarge => "answer too large",
            Self::RateLimit => "rate limit",
            Self::Quota => "quota exhausted",
            Self::Overloaded => "provider overloaded",
            Self::Server => "provider error",
            Self::Network => "network error",
            Self::Truncated => "answer cut off",
            Self::TimedOut => "time limit",
            Self::ContentFilter => "content filter",
        }
    }
}

impl ModelError {
    /// Creates an error with the provider's message. What the attempt cost is unknown unless it is said.
    pub fn new(kind: ModelErrorKind, message: impl Into<String>) -> Self {
        let cost = AttemptCost::default();
        Self { kind, message: message.into(), retry_after: None, is_final: false, cost }
    }

    /// Returns whether the same request may succeed a little later.
    pub fn is_passing(&self) -> bool {
        self.kind.is_passing() && !self.is_final
    }

    /// Returns the error of an attempt for which the provider charged nothing.
    #[must_use]
    pub fn not_charged(self) -> Self {
        Self { cost: AttemptCost::Nothing, ..self }
    }

    /// Returns the error of an attempt that may have been charged, with the usage reported before it broke off.
    #[must_use]
    pub fn charged_at_least(self, usage: Option<Usage>) -> Self {
        Self { cost: AttemptCost::Unknown(usage.map(Box::new)), ..self }
    }
}

/// Finds models by name. Resolution is lazy: an agent that is never called needs no key.
pub trait Models: Send + Sync {
    /// Returns the model of that name.
    fn resolve(&self, name: &str) -> Result<Arc<dyn Model>, ModelError>;

    /// Tells a model of the catalog that a run goes on in which it had answered so often before, as
    /// [`Model::resumed`] does.
    fn resumed(&self, _name: &str, _answers: u64) {}

    /// Returns the keys and passwords that the catalog knows now. The runtime masks them in what tools return and print;
    /// it asks again whenever it has resolved a model.
    fn secrets(&self) -> Vec<String> {
        Vec::new()
    }
}

/// A catalog that knows no model.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoModels;

impl Models for NoModels {
    fn resolve(&self, name: &str) -> Result<Arc<dyn Model>, ModelError> {
        Err(ModelError::new(
            ModelErrorKind::NoModel,
            format!("no catalog of models is set, so `{name}` cannot be found"),
        ))
    }
}

/// The model of an agent: by name, or the model itself.
#[derive(Clone)]
pub enum ModelChoice {
    /// A name, resolved when the agent is first called.
    Named(Name),
    /// A model given in code.
    Given(Arc<dyn Model>),
}

impl ModelChoice {
    /// Returns the name.
    pub fn name(&self) -> &Name {
        match self {
            Self::Named(name) => name,
            Self::Given(model) => model.name(),
        }
    }
}

impl fmt::Debug for ModelChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl From<&str> for ModelChoice {
    fn from(name: &str) -> Self {
        Self::Named(name.into())
    }
}

impl From<String> for ModelChoice {
    fn from(name: String) -> Self {
        Self::Named(name.into())
    }
}

impl From<&String> for ModelChoice {
    fn from(name: &String) -> Self {
        Self::Named(name.as_str().into())
    }
}

impl From<Arc<dyn Model>> for ModelChoice {
    fn from(model: Arc<dyn Model>) -> Self {
        Self::Given(model)
    }
}

impl<M: Model + 'static> From<M> for ModelChoice {
    fn from(model: M) -> Self {
        Self::Given(Arc::new(model))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn enforced(profile: &ModelProfile, source: Value) -> bool {
        profile.enforces(&Schema::new(source).unwrap(), false)
    }

    #[test]
    fn a_provider_of_closed_objects_enforces_no_open_maps() {
        let native = ModelProfile { native_output: NativeOutput::Always, ..ModelProfile::default() };
        let closed_only = ModelProfile { closed_output_only: true, ..native.clone() };
        let map = json!({"type": "object", "additionalProperties": {"type": "integer"}});
        let with = |field: Value| json!({"type": "object", "properties": {"a": field}});
        for (schema, is_closed) in [
            (with(json!({"type": "string"})), true),
            (with(with(json!({"type": "array", "items": {"type": "integer"}}))), true),
            (json!({"type": "object", "properties": {}, "additionalProperties": false}), true),
            // A field may have the name of a keyword.
            (json!({"type": "object", "properties": {"additionalProperties": {"type": "string"}}}), true),
            (json!({"type": "string"}), false),
            (json!({"type": "array", "items": {"type": "string"}}), false),
            (json!({"type": "object"}), false),
            (map.clone(), false),
            (with(map.clone()), false),
            (with(json!({"type": "array", "items": map})), false),
            (with(json!({"anyOf": [{"type": "null"}, map]})), false),
            (
                json!({"type": "object", "properties": {"a": {"$ref": "#/$defs/m"}}, "$defs": {"m": map}}),
                false,
            ),
            (
                with(json!({"type": ["object", "null"], "properties": {}, "additionalProperties": true})),
                false,
            ),
            (with(json!({})), false),
            (with(json!(true)), false),
        ] {
            assert_eq!(enforced(&closed_only, schema.clone()), is_closed, "{schema}");
            assert!(enforced(&native, schema));
        }
    }

    #[test]
    fn a_schema_is_enforced_only_where_schemas_are() {
        let schema = Schema::new(json!({"type": "object", "properties": {}})).unwrap();
        let profile = |native_output| ModelProfile { native_output, ..ModelProfile::default() };
        assert!(!profile(NativeOutput::Never).enforces(&schema, false));
        assert!(profile(NativeOutput::WithoutTools).enforces(&schema, false));
        assert!(!profile(NativeOutput::WithoutTools).enforces(&schema, true));
    }
}
