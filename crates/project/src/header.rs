//! The front matter of agent files.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::manifest::LimitsSection;

/// The header of an agent file. The text below it is the agent's instructions.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Header {
    /// The name by which the agent is called: letters, digits, `_` and `-`.
    #[schemars(regex(pattern = r"^[A-Za-z0-9_-]{1,64}$"))]
    pub(crate) name: String,
    /// What the agent does, for whoever may call it.
    #[serde(default)]
    pub(crate) description: Option<String>,
    /// The model, as `provider:model`.
    #[serde(default)]
    pub(crate) model: Option<String>,
    /// Globs that the model of the run or project must match, where `model` names none.
    #[serde(default)]
    pub(crate) compatible_models: Option<Vec<String>>,
    /// Models to turn to when the first one is down.
    #[serde(default)]
    pub(crate) fallback_models: Vec<String>,
    /// Settings of the requests.
    #[serde(default)]
    pub(crate) model_settings: Option<Settings>,
    /// Single tools.
    #[serde(default)]
    pub(crate) tools: Vec<String>,
    /// Toolsets and other agents: names, or names with settings.
    #[serde(default)]
    pub(crate) toolsets: Vec<ToolsetEntry>,
    /// The JSON Schema of the input.
    #[serde(default)]
    pub(crate) input_schema: Option<Map<String, Value>>,
    /// A template that makes the prompt from the input.
    #[serde(default)]
    pub(crate) prompt: Option<String>,
    /// The JSON Schema of the answer.
    #[serde(default)]
    pub(crate) output_schema: Option<Map<String, Value>>,
    /// Approval rules by tool name or glob.
    #[serde(default)]
    pub(crate) approval: BTreeMap<String, Level>,
    /// What the agent and everything below it may do at most.
    #[serde(default)]
    pub(crate) access: Option<AccessLevel>,
    /// Budgets of the agent and everything below it.
    #[serde(default)]
    pub(crate) limits: Option<LimitsSection>,
    /// Names or globs of the agents that may be called from here; none: all.
    #[serde(default)]
    pub(crate) agents: Vec<String>,
    /// Whether this agent is the entry of the project.
    #[serde(default)]
    pub(crate) entry: bool,
}

/// Settings of an agent's requests.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(default)]
pub(crate) struct Settings {
    /// Sampling temperature.
    pub(crate) temperature: Option<f64>,
    /// Output tokens per request.
    pub(crate) max_tokens: Option<u64>,
    /// Settings that only one provider knows.
    #[serde(flatten)]
    pub(crate) extra: Map<String, Value>,
}

/// A toolset or agent: its name, or a mapping from its name to settings.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(untagged)]
pub(crate) enum ToolsetEntry {
    Name(String),
    WithSettings(BTreeMap<String, Value>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Level {
    PreApproved,
    Ask,
    Blocked,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum AccessLevel {
    Read,
    Write,
    Admin,
}
