//! The user's own configuration, `config.toml`: which settings it has, and how they reach a run.
//!
//! It belongs to the user, so nothing in it is a power of a project. It is read once per process, and only by commands
//! that need it. Where the file is and how it is opened is in [`mod@file`], changing it in [`edit`].

mod check;
mod edit;
mod error;
mod file;
mod parse;
mod settings;

use std::path::{Path, PathBuf};
use std::sync::{LazyLock, OnceLock};

use llm_do::approval::ApprovalMode;
use llm_do::model::{ModelOverride, UserModels, providers};
use llm_do::project::LoadedProject;

pub(crate) use edit::{get, leaves, parse_key, set, unset};
pub(crate) use error::ConfigError;
pub(crate) use file::{UserDirectory, lock_private, read_private, shown, write_private};
pub(crate) use parse::parse;
pub(crate) use settings::{ApprovalModeSetting, ContentTrust, RecordSection, Settings, is_built_in};

use crate::command_error::CommandError;
use crate::output;
use crate::text::visible_line;

/// The name of the file.
const FILE: &str = "config.toml";

/// The configuration of the user, as it was read.
#[derive(Debug, Default)]
pub(crate) struct UserConfig {
    /// What it says.
    pub(crate) settings: Settings,
    /// The file, whether it exists or not; nothing if there is no directory for it.
    pub(crate) path: Option<PathBuf>,
    /// The text of the file.
    pub(crate) text: String,
}

static CURRENT: OnceLock<Result<UserConfig, ConfigError>> = OnceLock::new();
static DEFAULTS: LazyLock<UserConfig> = LazyLock::new(UserConfig::default);

/// Returns the configuration, which is read at the first call. A directory inside the project is not the user's.
pub(crate) fn current(project: Option<&Path>) -> Result<&'static UserConfig, CommandError> {
    let loaded = CURRENT.get_or_init(|| UserConfig::load(project));
    loaded.as_ref().map_err(|error| error.clone().into())
}

/// Reads the configuration for commands that work without it. If it cannot be used, the defaults hold in this process, and
/// what is wrong is returned.
pub(crate) fn current_or_defaults(project: Option<&Path>) -> (&'static UserConfig, Option<ConfigError>) {
    let (loaded, error) = match UserConfig::load(project) {
        Ok(config) => (config, None),
        Err(error) => {
            let path = error.path().to_path_buf();
            (UserConfig { path: Some(path), ..UserConfig::default() }, Some(error))
        }
    };
    let used = CURRENT.get_or_init(|| Ok(loaded));
    (used.as_ref().unwrap_or(&DEFAULTS), error)
}

impl UserConfig {
    fn load(project: Option<&Path>) -> Result<Self, ConfigError> {
        let Some(path) = path(project) else { return Ok(Self::default()) };
        let text = match read_private(&path) {
            Ok(text) => text.unwrap_or_default(),
            Err(reason) => return Err(ConfigError::new(&path, reason)),
        };
        let settings = parse(&text).map_err(|error| error.in_file(&path))?;
        Ok(Self { settings, path: Some(path), text })
    }

    /// Returns whether changed code of a trusted project is asked about instead of being named in a notice.
    pub(crate) fn trust_content_asks(&self) -> bool {
        self.settings.trust.content == ContentTrust::Ask
    }

    /// Returns the model of agents that name none, if the manifest names none either.
    pub(crate) fn default_model(&self) -> Option<&str> {
        self.settings.model.as_deref()
    }

    /// Combines the mode of the user with that of a project: a project may be stricter, and never looser.
    pub(crate) fn approval_mode(&self, project: Option<ApprovalMode>) -> ApprovalMode {
        let strictness = |mode: &ApprovalMode| match mode {
            ApprovalMode::ApproveAll => 0,
            ApprovalMode::Prompt => 1,
            ApprovalMode::Park => 2,
            ApprovalMode::RejectAll => 3,
        };
        let own = self.settings.approvals.mode.map(ApprovalMode::from);
        own.into_iter().chain(project).max_by_key(strictness).unwrap_or_default()
    }

    /// Returns the user's models and providers, which every project may name.
    pub(crate) fn models(&self) -> UserModels {
        let Settings { aliases, models, providers, .. } = &self.settings;
        let declared = providers.iter().filter(|(name, _)| !is_built_in(name));
        let overrides = models.iter().map(|(pattern, section)| ModelOverride {
            pattern: pattern.clone(),
            price: section.price,
            profile: section.profile,
        });
        UserModels {
            aliases: aliases.clone(),
            providers: declared.map(|(name, section)| section.declared(name)).collect(),
            overrides: overrides.collect(),
        }
    }

    /// The addresses of built-in providers, each as the last variable that may hold it: every variable that is set
    /// takes precedence.
    pub(crate) fn addresses(&self) -> Vec<(&'static str, String)> {
        let of_provider = |provider: &llm_do::model::BuiltinProvider| {
            let section = self.settings.providers.get(provider.name)?;
            Some((*provider.base_url_env.last()?, section.base_url.clone()))
        };
        providers().iter().filter_map(of_provider).collect()
    }

    /// Returns the path as a person would write it.
    pub(crate) fn shown_path(&self) -> String {
        self.path.as_deref().map_or_else(|| FILE.to_owned(), shown)
    }
}

/// Returns the approval mode of a project for a user, and says if the configuration approves everything.
pub(crate) fn mode_of(project: &LoadedProject, user: &UserConfig) -> ApprovalMode {
    let mode = user.approval_mode(project.named_approval_mode());
    if mode == ApprovalMode::ApproveAll && user.settings.approvals.mode.is_some() {
        let path = user.shown_path();
        output::early_notice(&format!("calls that must ask are approved: `approvals.mode` in {path}"));
    }
    mode
}

/// Returns the path of the file, and says why a variable that names another directory is ignored.
pub(crate) fn path(project: Option<&Path>) -> Option<PathBuf> {
    let found = UserDirectory::Config.find(project);
    if let Some(notice) = &found.notice {
        output::early_notice(&visible_line(notice));
    }
    found.path.map(|directory| directory.join(FILE))
}
