//! The front matter of agent files.

use std::collections::BTreeMap;

use llm_do_core::{ModelSettings, ServerTool};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::code::ClassPurpose;
use crate::manifest::{AttachmentSection, LimitsSection};

/// The header of an agent file. The text below it is the agent's instructions.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Header {
    /// Where editors find the schema of this header.
    #[serde(default, rename = "$schema")]
    #[expect(dead_code, reason = "for editors")]
    pub(crate) schema: Option<String>,
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
    pub(crate) model_settings: Option<ModelSettings>,
    /// Single tools.
    #[serde(default)]
    pub(crate) tools: Vec<String>,
    /// Toolsets and other agents: names, or names with settings.
    #[serde(default)]
    pub(crate) toolsets: Toolsets,
    /// The input as a Python class, as `schemas.py:Class`.
    #[serde(default)]
    pub(crate) input_model_ref: Option<String>,
    /// The JSON Schema of the input.
    #[serde(default)]
    pub(crate) input_schema: Option<Map<String, Value>>,
    /// A template that makes the prompt from the input.
    #[serde(default)]
    pub(crate) prompt: Option<String>,
    /// The JSON Schema of the answer, or a Python class as `schemas.py:Class`.
    #[serde(default)]
    pub(crate) output_schema: Option<OutputSchema>,
    /// Tools that the provider runs.
    #[serde(default)]
    pub(crate) server_side_tools: Vec<ServerTool>,
    /// Approval rules by tool name or glob.
    #[serde(default)]
    pub(crate) approval: BTreeMap<String, Level>,
    /// Names or globs of tools that only a person or code may call: the model is not offered them.
    #[serde(default)]
    pub(crate) manual_only: Vec<String>,
    /// What the agent and everything below it may do at most.
    #[serde(default)]
    pub(crate) access: Option<AccessLevel>,
    /// Budgets of the agent and everything below it.
    #[serde(default)]
    pub(crate) limits: Option<LimitsSection>,
    /// Which files the agent takes, with its input and with each result of its calls.
    #[serde(default)]
    pub(crate) attachment_policy: Option<AttachmentSection>,
    /// Names or globs of the agents that may be called from here; none: all.
    #[serde(default)]
    pub(crate) agents: Vec<String>,
    /// Whether this agent is the entry of the project.
    #[serde(default)]
    pub(crate) entry: bool,
    /// Whether the instructions are a template over the input.
    #[serde(default)]
    pub(crate) template: bool,
    /// Whether an agent or code created this file, and may replace it. Holds in the directory of such agents only.
    #[serde(default)]
    pub(crate) generated: bool,
    /// Whether tools that create agents must leave this file alone.
    #[serde(default)]
    pub(crate) locked: bool,
    /// Agents that this one can start as programs.
    #[serde(default)]
    pub(crate) programs: Vec<Program>,
    /// Whether long results become file descriptors.
    #[serde(default)]
    pub(crate) file_descriptors: Option<bool>,
    /// Files whose content the agent starts with.
    #[serde(default)]
    pub(crate) preload: Vec<String>,
    /// What the agent is told about its surroundings: everything, nothing, or a list.
    #[serde(default)]
    pub(crate) env_info: Option<EnvironmentInfo>,
    /// Tests of the agent, run offline.
    #[serde(default)]
    pub(crate) tests: Vec<Map<String, Value>>,
}

impl Header {
    /// Returns the Python classes that the header names: the key, the reference and what it is for.
    pub(crate) fn classes(&self) -> impl Iterator<Item = (&'static str, &str, ClassPurpose)> {
        let output = match &self.output_schema {
            Some(OutputSchema::Reference(reference)) => Some(reference.as_str()),
            _ => None,
        };
        let input = self.input_model_ref.as_deref();
        let input = input.map(|reference| ("input_model_ref", reference, ClassPurpose::Input));
        let output = output.map(|reference| ("output_schema", reference, ClassPurpose::Output));
        input.into_iter().chain(output)
    }
}

/// The toolsets and agents of an agent: a list, or the older mapping from names to settings.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(untagged)]
pub(crate) enum Toolsets {
    /// Names, or names with settings.
    List(Vec<ToolsetEntry>),
    /// Names with settings. `_approval_config` among them holds approval rules.
    Mapping(Map<String, Value>),
}

impl Default for Toolsets {
    fn default() -> Self {
        Self::List(Vec::new())
    }
}

impl Toolsets {
    /// Returns the names with their settings, in order.
    pub(crate) fn entries(&self) -> Vec<(&str, &Value)> {
        match self {
            Self::List(list) => list.iter().flat_map(ToolsetEntry::entries).collect(),
            Self::Mapping(map) => map.iter().map(|(name, settings)| (name.as_str(), settings)).collect(),
        }
    }
}

/// A toolset or agent: its name, or a mapping from its name to settings.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(untagged)]
pub(crate) enum ToolsetEntry {
    Name(String),
    WithSettings(Map<String, Value>),
}

impl ToolsetEntry {
    fn entries(&self) -> Vec<(&str, &Value)> {
        match self {
            Self::Name(name) => vec![(name, &Value::Null)],
            Self::WithSettings(map) => map.iter().map(|(name, settings)| (name.as_str(), settings)).collect(),
        }
    }
}

/// The schema of an answer: inline, or a Python class.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(untagged)]
pub(crate) enum OutputSchema {
    Inline(Map<String, Value>),
    Reference(String),
}

/// An agent that another one can start as a program.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "checked here; programs are started by a later version, and a notice says so")]
pub(crate) struct Program {
    /// The name by which it is started.
    pub(crate) name: String,
    /// Its file, relative to this one.
    pub(crate) file: String,
    /// What it does.
    #[serde(default)]
    pub(crate) description: Option<String>,
}

/// What an agent is told about its surroundings.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "checked here; used by a later version, and a notice says so")]
pub(crate) enum EnvironmentInfo {
    All(bool),
    Some(Vec<String>),
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
