//! The front matter of agent files.

use std::collections::BTreeMap;

use llm_do_core::{Access, Approval, ModelSettings, Name, ServerTool};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::code::ClassPurpose;
use crate::document::Node;
use crate::format::manifest::{AttachmentSection, LimitsSection};
use crate::source::SourceFile;

/// A header with its document, for checks that need nothing else of an agent.
#[derive(Clone, Copy)]
pub(crate) struct HeaderDocument<'a> {
    pub(crate) source: &'a SourceFile,
    /// The header with the spans of its fields.
    pub(crate) node: &'a Node,
    pub(crate) header: &'a Header,
}

/// The header of an agent file. The text below it is the agent's instructions.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Header {
    /// Where editors find the schema of this header.
    #[serde(default, rename = "$schema")]
    #[expect(dead_code, reason = "for editors")]
    pub(crate) schema: Option<String>,
    /// The name by which the agent is called: letters, digits, `_` and `-`.
    #[schemars(regex(pattern = Name::PATTERN))]
    pub(crate) name: String,
    /// What the agent does, as its callers read it.
    #[serde(default)]
    pub(crate) description: Option<String>,
    /// The model, as `provider:model`.
    #[serde(default)]
    pub(crate) model: Option<String>,
    /// Globs that the model of the run or project must match, if `model` names none.
    #[serde(default)]
    pub(crate) compatible_models: Option<Vec<String>>,
    /// Models to use when the first one is down.
    #[serde(default)]
    pub(crate) fallback_models: Vec<String>,
    /// Settings of the requests.
    #[serde(default)]
    pub(crate) model_settings: Option<ModelSettings>,
    /// Single tools: names, or how the agent is offered a tool. A tool of a listed toolset can be named here to change
    /// how it is offered.
    #[serde(default)]
    pub(crate) tools: Vec<ToolEntry>,
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
    /// Limits of the agent and everything below it.
    #[serde(default)]
    pub(crate) limits: Option<LimitsSection>,
    /// Which files the agent accepts, with its input and with each result of its calls.
    #[serde(default)]
    pub(crate) attachment_policy: Option<AttachmentSection>,
    /// Names or globs of the agents that may be called from here, including agents that are created later; empty: all.
    #[serde(default)]
    pub(crate) agents: Vec<String>,
    /// Whether this agent is the entry of the project.
    #[serde(default)]
    pub(crate) entry: bool,
    /// Whether the instructions are a template, filled from the input.
    #[serde(default)]
    pub(crate) template: bool,
    /// Whether an agent or code created this file, and may replace it. Applies only in the directory of generated agents.
    #[serde(default)]
    pub(crate) generated: bool,
    /// Whether tools that create agents must not replace this file.
    #[serde(default)]
    pub(crate) locked: bool,
    /// Agents that this one can start as programs.
    #[serde(default)]
    pub(crate) programs: Vec<ProgramLink>,
    /// Whether long texts become file descriptors, or how.
    #[serde(default)]
    pub(crate) file_descriptors: Option<FileDescriptors>,
    /// Files whose content is put before the instructions, relative to this file.
    #[serde(default)]
    pub(crate) preload: Vec<String>,
    /// What the agent is told about its environment: everything, nothing, a list of facts, or details.
    #[serde(default)]
    pub(crate) env_info: Option<EnvironmentInfo>,
    /// Which of its own settings the agent may change while it runs, and how far.
    #[serde(default)]
    pub(crate) tuning: Option<TuningSection>,
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

/// A tool: its name, or how the agent is offered it.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(untagged)]
pub(crate) enum ToolEntry {
    Name(String),
    Changed(ToolSection),
}

impl ToolEntry {
    pub(crate) fn name(&self) -> &str {
        match self {
            Self::Name(name) => name,
            Self::Changed(section) => &section.name,
        }
    }

    pub(crate) fn alias(&self) -> Option<&str> {
        match self {
            Self::Name(_) => None,
            Self::Changed(section) => section.alias.as_deref(),
        }
    }

    /// Returns whether the tool is offered under another name or in other words. More access alone is neither.
    pub(crate) fn is_reworded(&self) -> bool {
        match self {
            Self::Name(_) => false,
            Self::Changed(ToolSection { name: _, alias, description, access: _, param_descriptions }) => {
                alias.is_some() || description.is_some() || !param_descriptions.is_empty()
            }
        }
    }
}

/// How one agent is offered a tool.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ToolSection {
    /// The tool's own name.
    pub(crate) name: String,
    /// The name under which it is offered to the model.
    #[serde(default)]
    #[schemars(regex(pattern = Name::PATTERN))]
    pub(crate) alias: Option<String>,
    /// Replaces its description.
    #[serde(default)]
    pub(crate) description: Option<String>,
    /// The access that it needs, if that is more than its own.
    #[serde(default)]
    pub(crate) access: Option<AccessLevel>,
    /// Replaces descriptions of parameters.
    #[serde(default)]
    pub(crate) param_descriptions: BTreeMap<String, String>,
}

/// An agent that another one can start as a program.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ProgramLink {
    /// The name by which it is started.
    #[schemars(regex(pattern = Name::PATTERN))]
    pub(crate) name: String,
    /// Its file, relative to this one: an agent file, or a program file (`.toml`, `.yaml`).
    pub(crate) file: String,
    /// What it does; the default is the description of the agent.
    #[serde(default)]
    pub(crate) description: Option<String>,
}

/// What becomes of long texts: whether they become file descriptors, or in detail.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(untagged)]
pub(crate) enum FileDescriptors {
    Enabled(bool),
    Section(DescriptorSection),
}

/// How long texts become file descriptors.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct DescriptorSection {
    /// Whether they do; otherwise they are cut.
    #[serde(default)]
    pub(crate) enabled: Option<bool>,
    /// How many characters a result may have before it does.
    #[serde(default)]
    #[schemars(range(min = 100))]
    pub(crate) limit: Option<u64>,
    /// How many characters a page has at most.
    #[serde(default)]
    #[schemars(range(min = 100))]
    pub(crate) page_size: Option<u64>,
    /// How many characters an input may have before it does; otherwise as many as fit into the context window of the
    /// model, if the agent is run, and 8,000 if it is called.
    #[serde(default)]
    #[schemars(range(min = 100))]
    pub(crate) input_limit: Option<u64>,
    /// Whether long inputs become file descriptors too.
    #[serde(default)]
    pub(crate) page_user_input: Option<bool>,
    /// Whether text that the model marks as `<ref id="name">` can be referred to.
    #[serde(default)]
    pub(crate) references: Option<bool>,
}

/// What an agent is told about its surroundings.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(untagged)]
pub(crate) enum EnvironmentInfo {
    All(bool),
    Some(Vec<String>),
    Section(EnvironmentSection),
}

impl EnvironmentInfo {
    /// The directory whose files are listed to the agent, if it names the fact `file_map`. All facts are without it.
    pub(crate) fn file_map_root(&self) -> Option<&str> {
        let (names, root) = match self {
            Self::All(_) => return None,
            Self::Some(names) => (names, None),
            Self::Section(section) => match &section.variables {
                Some(Variables::Some(names)) => (names, section.file_map_root.as_deref()),
                Some(Variables::All(_)) | None => return None,
            },
        };
        names.iter().any(|name| name == "file_map").then_some(root.unwrap_or("."))
    }

    /// Removes the fact `file_map`.
    pub(crate) fn remove_file_map(&mut self) {
        let names = match self {
            Self::All(_) => return,
            Self::Some(names) => names,
            Self::Section(section) => match &mut section.variables {
                Some(Variables::Some(names)) => names,
                Some(Variables::All(_)) | None => return,
            },
        };
        names.retain(|name| name != "file_map");
    }
}

/// What an agent is told about its surroundings, in detail. Every other key is a line of its own: `key: text`.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
pub(crate) struct EnvironmentSection {
    /// The facts: `all`, or a list of their names.
    #[serde(default)]
    pub(crate) variables: Option<Variables>,
    /// Environment variables, by the label under which they are shown. None that holds a key is read.
    #[serde(default)]
    pub(crate) env_vars: BTreeMap<String, String>,
    /// The directory that the fact `file_map` lists, relative to the project.
    #[serde(default)]
    pub(crate) file_map_root: Option<String>,
    /// How many files are listed at most.
    #[serde(default)]
    #[schemars(range(min = 1, max = 1_000))]
    pub(crate) file_map_max_files: Option<usize>,
    /// Whether the sizes of files are listed.
    #[serde(default)]
    pub(crate) file_map_show_size: Option<bool>,
    /// Commands of other tools that read such files. They are never run.
    #[serde(default)]
    pub(crate) commands: Option<Value>,
    /// Lines of the author.
    #[serde(flatten)]
    pub(crate) custom: BTreeMap<String, String>,
}

/// Facts: all, or a list of their names.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(untagged)]
pub(crate) enum Variables {
    All(AllFacts),
    Some(Vec<String>),
}

impl Variables {
    /// All facts.
    pub(crate) fn all() -> Self {
        Self::All(AllFacts::All)
    }
}

#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum AllFacts {
    All,
}

/// Which of its own settings an agent may change, each as its least and greatest value.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct TuningSection {
    /// The lowest and the highest temperature.
    #[serde(default)]
    pub(crate) temperature: Option<(f64, f64)>,
    /// The lowest and the highest number of output tokens.
    #[serde(default)]
    pub(crate) max_tokens: Option<(u64, u64)>,
    /// Names or globs of models.
    #[serde(default)]
    pub(crate) models: Vec<String>,
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

impl From<AccessLevel> for Access {
    fn from(level: AccessLevel) -> Self {
        match level {
            AccessLevel::Read => Self::Read,
            AccessLevel::Write => Self::Write,
            AccessLevel::Admin => Self::Admin,
        }
    }
}

impl From<Level> for Approval {
    fn from(level: Level) -> Self {
        match level {
            Level::PreApproved => Self::PreApproved,
            Level::Ask => Self::Ask,
            Level::Blocked => Self::Blocked,
        }
    }
}
