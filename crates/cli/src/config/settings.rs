//! The format of the configuration. The JSON Schema and the reference page are made from these types.

use std::collections::BTreeMap;
use std::fmt;

use llm_do::approval::ApprovalMode;
use llm_do::model::{DeclaredProvider, ProfileOverride};
use llm_do::usage::PriceList;
use schemars::JsonSchema;
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

/// The protocol of a provider that says nothing else.
const DEFAULT_API: &str = "openai-chat";

/// The settings of a user.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Settings {
    /// The model of agents that name none, as `provider:model` or an alias. `LLM_DO_MODEL` and the `model` of a
    /// manifest take precedence.
    pub(crate) model: Option<String>,
    /// Other names for models (`fast = "openai:gpt-5-mini"`), which can be written wherever a model is named.
    pub(crate) aliases: BTreeMap<String, String>,
    /// What holds for single models instead of what llm-do knows, by name or glob (`openai:gpt-5*`). The first one
    /// that matches wins. A project's `profile` does not change it, and its `price` only if that is higher.
    #[serde(deserialize_with = "in_order")]
    #[schemars(with = "BTreeMap<String, ModelSection>")]
    pub(crate) models: Vec<(String, ModelSection)>,
    /// Providers of models by the prefix of their models: others than the built-in ones, or another address for a
    /// built-in one. A project cannot redeclare them.
    pub(crate) providers: BTreeMap<String, ProviderSection>,
    /// How calls are approved.
    pub(crate) approvals: ApprovalsSection,
    /// How projects are trusted.
    pub(crate) trust: TrustSection,
    /// Which files are not secret, although they look so.
    pub(crate) secret_files: SecretFilesSection,
    /// How much the record of runs keeps. Runs that can be resumed stay until `llm-do runs prune` removes them.
    pub(crate) record: RecordSection,
}

/// What holds for some models.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct ModelSection {
    /// What they cost.
    pub(crate) price: Option<PriceList>,
    /// What they can do.
    pub(crate) profile: ProfileOverride,
}

/// A provider of the user.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ProviderSection {
    /// Its address, with `http://` or `https://`.
    pub(crate) base_url: String,
    /// The protocol that it speaks, by the prefix of a built-in provider; `openai-chat` by default.
    #[serde(default)]
    pub(crate) api: Option<String>,
    /// The environment variable that holds its key. `llm-do auth login` can store the key instead.
    #[serde(default)]
    pub(crate) api_key_env: Option<String>,
    /// Headers that are sent with each request.
    #[serde(default)]
    pub(crate) headers: BTreeMap<String, String>,
}

/// How calls are approved.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct ApprovalsSection {
    /// What happens to calls that must ask: the mode of projects that name none, and the loosest one that a project
    /// may name. `--approve` takes precedence. Without it a project's own mode holds, else `prompt`.
    pub(crate) mode: Option<ApprovalModeSetting>,
}

/// What happens to calls that must ask.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ApprovalModeSetting {
    /// They are asked about.
    Prompt,
    /// They are denied.
    RejectAll,
    /// They are allowed; what is blocked stays blocked.
    ApproveAll,
}

/// How projects are trusted.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct TrustSection {
    /// What happens if the code of a trusted project changed since its last run: `notice` (the default) names the
    /// files, `ask` asks first and refuses without a terminal.
    pub(crate) content: ContentTrust,
}

/// Which files are not secret, although they look so.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct SecretFilesSection {
    /// Globs, relative to the directory of the project, of files that may be read in every project without a question.
    /// A project's own `secret_files.allow` is added to them.
    pub(crate) allow: Vec<String>,
}

/// How much the record of runs keeps.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct RecordSection {
    /// Runs that ended more days ago are removed; 90 by default.
    pub(crate) keep_days: Option<u64>,
    /// If your record has more bytes, the runs that ended first are removed; 2147483648 (2 GiB) by default.
    pub(crate) keep_bytes: Option<u64>,
}

/// What happens to changed code of a trusted project.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ContentTrust {
    /// It runs, and the files are named.
    #[default]
    Notice,
    /// A person is asked first.
    Ask,
}

impl ProviderSection {
    /// The provider as the models know it.
    pub(crate) fn declared(&self, name: &str) -> DeclaredProvider {
        DeclaredProvider {
            name: name.to_owned(),
            protocol: self.api.clone().unwrap_or_else(|| DEFAULT_API.to_owned()),
            base_url: self.base_url.clone(),
            key_env: self.api_key_env.clone(),
            headers: self.headers.clone(),
            is_users: true,
        }
    }
}

/// Returns whether a name is that of a provider that needs no declaration, or of an offline one.
pub(crate) fn is_built_in(name: &str) -> bool {
    llm_do::model::provider_names().contains(&name)
}

impl ApprovalModeSetting {
    /// The word by which it is written.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Prompt => "prompt",
            Self::RejectAll => "reject_all",
            Self::ApproveAll => "approve_all",
        }
    }
}

impl From<ApprovalModeSetting> for ApprovalMode {
    fn from(mode: ApprovalModeSetting) -> Self {
        match mode {
            ApprovalModeSetting::Prompt => Self::Prompt,
            ApprovalModeSetting::RejectAll => Self::RejectAll,
            ApprovalModeSetting::ApproveAll => Self::ApproveAll,
        }
    }
}

/// Reads a table in the order in which it is written.
fn in_order<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<(String, ModelSection)>, D::Error> {
    struct InOrder;
    impl<'de> Visitor<'de> for InOrder {
        type Value = Vec<(String, ModelSection)>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a table of models")
        }

        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
            let mut entries = Vec::new();
            while let Some(entry) = map.next_entry()? {
                entries.push(entry);
            }
            Ok(entries)
        }
    }
    deserializer.deserialize_map(InOrder)
}
