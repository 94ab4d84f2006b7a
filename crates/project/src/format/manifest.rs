//! The manifest: `project.json`, `project.yaml` or `project.toml`.
//!
//! These types are the format: the JSON Schema that editors use is generated from them, and documents are
//! checked against that schema before they are read into them.

use std::collections::BTreeMap;
use std::time::Duration;

use llm_do_core::{PriceList, ProfileOverride};
use schemars::JsonSchema;
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

use crate::document::Node;
use crate::source::SourceFile;

/// A manifest with its document.
pub(crate) struct ManifestFile {
    pub(crate) source: SourceFile,
    pub(crate) node: Node,
    pub(crate) manifest: Manifest,
}

/// A project.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Manifest {
    /// Where editors find the schema of this file.
    #[serde(default, rename = "$schema")]
    #[expect(dead_code, reason = "for editors")]
    pub(crate) schema: Option<String>,
    /// The version of the format: 1.
    #[expect(dead_code, reason = "checked before the manifest is read")]
    pub(crate) version: u64,
    /// The model of agents that name none, as `provider:model`.
    #[serde(default)]
    pub(crate) model: Option<String>,
    /// What a run starts with; without it, the one agent that says `entry: true` or the one entry that code defines.
    #[serde(default)]
    pub(crate) entry: EntrySection,
    /// Agent files, relative to the manifest; globs are allowed.
    #[serde(default)]
    pub(crate) agent_files: Vec<String>,
    /// Python files, relative to the manifest; globs are allowed.
    #[serde(default)]
    pub(crate) python_files: Vec<String>,
    /// The Python interpreter; by default that of the project's `.venv`, `$VIRTUAL_ENV` or the `PATH`.
    #[serde(default)]
    pub(crate) python: Option<String>,
    /// Variables with keys of built-in model providers that Python files may see; they see all others.
    #[serde(default)]
    pub(crate) python_env: Vec<String>,
    /// How many seconds the Python files may take to load; 30 by default.
    #[serde(default)]
    #[schemars(range(min = 0.1, max = 86400.0))]
    pub(crate) python_load_seconds: Option<f64>,
    /// Whether the command line may give the input.
    #[serde(default = "yes")]
    pub(crate) allow_cli_input: bool,
    /// The directory of agents that agents create.
    #[serde(default)]
    pub(crate) generated_agents_dir: Option<String>,
    /// MCP servers by name. Agents list such a name under `toolsets`.
    #[serde(default)]
    pub(crate) mcp_servers: BTreeMap<String, McpServer>,
    /// Additional providers of models, by the prefix of their models.
    #[serde(default)]
    pub(crate) providers: BTreeMap<String, Provider>,
    /// Prices and profiles of models, by name or glob (`openai:gpt-5*`). The first one
    /// that matches wins.
    #[serde(default, deserialize_with = "in_order")]
    #[schemars(with = "BTreeMap<String, ModelSection>")]
    pub(crate) models: Vec<(String, ModelSection)>,
    /// Toolsets by name: built-in ones with settings of this project.
    #[serde(default)]
    pub(crate) toolsets: BTreeMap<String, ToolsetSection>,
    /// Which files may be read without a question though they look secret.
    #[serde(default)]
    pub(crate) secret_files: SecretFilesSection,
    /// How runs behave.
    #[serde(default)]
    pub(crate) runtime: RuntimeSection,
    /// Values that tools ask for by name.
    #[serde(default)]
    pub(crate) context: BTreeMap<String, Value>,
}

impl Manifest {
    /// Returns how long the Python files may take to load, where the manifest says it.
    pub(crate) fn python_load_limit(&self) -> Option<Duration> {
        self.python_load_seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
    }
}

fn yes() -> bool {
    true
}

/// What a run starts with: an agent or a function, not both.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct EntrySection {
    /// The name of an agent.
    #[serde(default)]
    pub(crate) agent: Option<String>,
    /// A function, as `path.py:name`.
    #[serde(default)]
    pub(crate) function: Option<String>,
    /// The input if the command line gives none.
    #[serde(default)]
    pub(crate) args: Option<Map<String, Value>>,
}

/// A server that speaks the Model Context Protocol: a program to start, or an address.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct McpServer {
    /// The program that is started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// Its arguments.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub args: Vec<String>,
    /// Environment variables that it gets; it inherits none that hold secrets.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// Its working directory, relative to the manifest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// The address of a server that runs already.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// Headers that are sent to the address.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// Put before the names of its tools.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prefix: Option<String>,
}

/// A provider of models besides the built-in ones.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Provider {
    /// The protocol that it speaks, by the prefix of a built-in provider such as `openai-chat`.
    pub api: String,
    /// Its address.
    pub base_url: String,
    /// The environment variable that holds its key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api_key_env: Option<String>,
    /// Headers that are sent with each request. They carry no keys.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
}

/// What holds for some models.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct ModelSection {
    /// What they cost; replaces the built-in price.
    pub(crate) price: Option<PriceList>,
    /// What they can do.
    pub(crate) profile: ProfileOverride,
}

/// Reads a mapping in the order in which it is written.
fn in_order<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<(String, ModelSection)>, D::Error> {
    let written = Map::<String, Value>::deserialize(deserializer)?;
    let read = |(name, section)| Ok((name, serde_json::from_value(section).map_err(D::Error::custom)?));
    written.into_iter().map(read).collect()
}

/// A built-in toolset with settings.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ToolsetSection {
    /// The built-in toolset.
    pub(crate) toolset: String,
    /// Its settings.
    #[serde(default)]
    pub(crate) settings: Value,
    /// Names or globs of its tools that only a person or code may call: no model is offered them.
    #[serde(default)]
    pub(crate) manual_only: Vec<String>,
}

/// Which files may be read without a question though they look secret.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct SecretFilesSection {
    /// Globs relative to the manifest, such as `tests/fixtures/**`.
    pub(crate) allow: Vec<String>,
}

/// How runs behave.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct RuntimeSection {
    /// What happens to calls that must ask.
    pub(crate) approval_mode: Option<ApprovalModeKey>,
    /// Nested agents on one path.
    #[schemars(range(min = 1, max = 64))]
    pub(crate) max_depth: Option<u32>,
    /// Agents that agents may create while the program runs; the default is 64.
    #[serde(default)]
    pub(crate) max_created_agents: Option<u64>,
    /// Requests to models, and tools that call nothing, that run side by side; the default is 32.
    #[schemars(range(min = 1, max = 4096))]
    pub(crate) max_parallel: Option<u32>,
    /// Bytes of results of calls at the same time; the default is 256 MiB.
    pub(crate) max_result_bytes: Option<u64>,
    /// Bytes that a prompt template may make; the default is 1 MiB.
    #[schemars(range(min = 1, max = 67_108_864_u32))]
    pub(crate) max_template_bytes: Option<usize>,
    /// Limits of a run.
    pub(crate) limits: Option<LimitsSection>,
    /// Requests to one model per turn, including the first, if it fails transiently; the default is 5.
    #[schemars(range(min = 1, max = 20))]
    pub(crate) model_attempts: Option<u32>,
    /// Whether a denial is a result (the default) or ends the run.
    pub(crate) return_permission_errors: Option<bool>,
    /// Whether calls of agents must ask.
    pub(crate) agent_calls_require_approval: bool,
    /// Whether calls of agents with attachments must ask.
    pub(crate) agent_attachments_require_approval: bool,
    /// Exceptions for single agents.
    pub(crate) agent_approval_overrides: BTreeMap<String, AgentOverride>,
    /// Which files agents accept, if their own policy does not differ.
    pub(crate) attachment_policy: Option<AttachmentSection>,
    /// How to sign in to the provider; only `oauth_off` is supported.
    pub(crate) auth_mode: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ApprovalModeKey {
    Prompt,
    ApproveAll,
    RejectAll,
}

/// When calls of one agent must ask.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct AgentOverride {
    /// Every call.
    pub(crate) calls_require_approval: Option<bool>,
    /// Calls with attachments.
    pub(crate) attachments_require_approval: Option<bool>,
}

/// Which files an agent takes, with its input and with each result of its calls.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct AttachmentSection {
    /// The number of files; the default is 4.
    #[schemars(range(max = 1_000))]
    pub max_attachments: Option<u32>,
    /// Their total size in bytes; the default is 10,000,000.
    #[schemars(range(max = 1_073_741_824_u64))]
    pub max_total_bytes: Option<u64>,
    /// Suffixes of file names, such as `.png`, case-insensitive; empty: all.
    pub allowed_suffixes: Option<Vec<String>>,
    /// Suffixes of file names that are refused, even if they are allowed.
    pub denied_suffixes: Option<Vec<String>>,
}

/// Budgets.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct LimitsSection {
    /// Model turns of one agent call.
    #[schemars(range(min = 1, max = 4_294_967_295_u32))]
    pub turns: Option<u32>,
    /// Equal failing calls in a row after which an agent is stopped; the default is 3.
    #[schemars(range(min = 2, max = 4_294_967_295_u32))]
    pub repeats: Option<u32>,
    /// Tool and agent calls; the default is 10,000 for a run.
    pub tool_calls: Option<u64>,
    /// Requests to models; the default is 1,000 for a run.
    pub requests: Option<u64>,
    /// Tokens, in and out.
    pub tokens: Option<u64>,
    /// US dollars.
    #[schemars(range(min = 0.0))]
    pub cost: Option<f64>,
    /// Seconds of running time.
    #[schemars(range(min = 0.0))]
    pub time: Option<f64>,
}
