//! The model trait: one request in, a stream of parts out.
//!
//! A model opens a *session* per agent call. A session is a cache of the encoded history and nothing else:
//! dropping it changes no byte that is sent.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use futures::stream::BoxStream;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{Conversation, Message, Name, Schema, ToolDefinition, Usage};

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

    /// Opens a session for one agent call.
    fn open(&self) -> Box<dyn ModelSession>;
}

/// One agent call's side of a model.
pub trait ModelSession: Send {
    /// Sends one request. The stream ends with [`ModelPart::Finished`]; ending without it means that the
    /// answer was cut.
    fn request<'a>(
        &'a mut self,
        request: ModelRequest<'a>,
    ) -> BoxFuture<'a, Result<ModelStream<'a>, ModelError>>;
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

/// Settings of an agent's requests.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ModelSettings {
    /// Sampling temperature.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    /// Output tokens per request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u64>,
    /// Settings that only one provider knows.
    #[serde(skip_serializing_if = "Value::is_null")]
    pub extra: Value,
}

/// What a model can do, as far as the runtime must know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelProfile {
    /// Whether the provider enforces a schema on the answer; otherwise the runtime offers a tool for it.
    pub native_output: bool,
    /// Output tokens reserved where neither agent nor request says how many.
    pub default_max_output: u64,
}

impl Default for ModelProfile {
    fn default() -> Self {
        Self { native_output: false, default_max_output: 8_192 }
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
    /// What was used before it failed, where it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
}

impl fmt::Display for ModelError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.kind.words(), self.message)
    }
}

/// The kinds of model errors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
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
    /// A content filter refused.
    ContentFilter,
}

impl ModelErrorKind {
    /// Says whether the provider, not the request, is at fault: another model may do, and the run cannot go on.
    pub fn is_outage(self) -> bool {
        matches!(
            self,
            Self::RateLimit | Self::Quota | Self::Overloaded | Self::Server | Self::Network | Self::Truncated
        )
    }

    /// Returns the kind in words.
    pub fn words(self) -> &'static str {
        match self {
            Self::NoModel => "no model",
            Self::Auth => "not authorised",
            Self::NotFound => "model not found",
            Self::Invalid => "invalid request",
            Self::ContextOverflow => "conversation too long",
            Self::RateLimit => "rate limit",
            Self::Quota => "quota exhausted",
            Self::Overloaded => "provider overloaded",
            Self::Server => "provider error",
            Self::Network => "network error",
            Self::Truncated => "answer cut off",
            Self::ContentFilter => "content filter",
        }
    }
}

impl ModelError {
    /// An error of a kind with the provider's words.
    pub fn new(kind: ModelErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), retry_after: None, usage: None }
    }
}

/// Finds models by name. Resolution is lazy: an agent that is never called needs no key.
pub trait Models: Send + Sync {
    /// Returns the model of that name.
    fn resolve(&self, name: &str) -> Result<Arc<dyn Model>, ModelError>;
}

/// A catalogue that knows no model.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoModels;

impl Models for NoModels {
    fn resolve(&self, name: &str) -> Result<Arc<dyn Model>, ModelError> {
        Err(ModelError::new(
            ModelErrorKind::NoModel,
            format!("no catalogue of models is set, so `{name}` cannot be found"),
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
