//! Runs programs for a model: listed ones only, without a shell, under the eyes of the gate.
//!
//! The text of a call is read once ([`parse`]); the words that come out are what is judged ([`policy`]),
//! shown and executed ([`execute`]). Pipelines and `&&`, `||`, `;` are built here from processes and pipes.
//! Nothing else of a shell exists: no variables, wildcards, redirects or substitutions.
//!
//! Programs are found in fixed directories, see a fixed environment and an empty standard input, and are
//! killed with everything they started when their time is over or the call is cancelled ([`llm_do_sandbox`]). git is
//! run so that a repository cannot choose programs ([`git`], [`repository`]).
//!
//! What is judged harmless, or approved, still runs in a sandbox ([`confinement`]), so that a wrong judgment
//! is not the end.

mod capture;
mod characters;
mod concerns;
mod confinement;
mod execute;
mod execution_env;
mod flags;
mod git;
mod git_config_paths;
mod git_secrets;
mod parse;
mod policy;
mod private_paths;
mod programs;
mod protection;
mod repository;
mod root;
mod secret_walk;
mod secrets;
mod session;
mod settings;
mod syntax_error;
#[cfg(test)]
mod texts;
mod tool;
mod unquote;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures::future::{self, BoxFuture};
use llm_do_core::{
    Approval, Name, Opening, Survival, Tool, ToolDefinition, ToolError, Toolset, ToolsetInstance,
};
use llm_do_secrets::SecretFiles;
use serde_json::Value;

use self::confinement::Confinement;
use self::execution_env::ExecutionEnv;
use self::policy::Policy;
use self::programs::{GIT_READERS, READERS};
use self::session::ShellSession;
use self::settings::MAX_TIMEOUT;
use self::tool::{ShellTool, definition};
use crate::filesystem::{Guarded, Protected};
use crate::toolset_error::ToolsetError;
use llm_do_sandbox::sandbox_status;

pub use settings::{Operands, ReadScope, SandboxMode, ShellRule, ShellSettings, Unlisted, WriteScope};

/// A toolset with one tool, `shell`, that runs listed programs in a directory.
///
/// An agent may give settings of its own: they take the place of those given here, but the rules of a preset
/// stay.
pub struct Shell {
    name: Name,
    project: PathBuf,
    preset: Preset,
    settings: ShellSettings,
    guarded: Arc<Guarded>,
    secret_files: Arc<SecretFiles>,
    definition: Arc<ToolDefinition>,
}

/// What a preset brings, whatever the settings say.
#[derive(Debug, Clone, Default)]
struct Preset {
    rules: Vec<ShellRule>,
    only_reads: bool,
}

impl Shell {
    /// Makes a shell in a project's directory.
    pub fn new(
        name: impl Into<Name>,
        root: impl Into<PathBuf>,
        settings: ShellSettings,
    ) -> Result<Self, ToolsetError> {
        Self::with_preset(name.into(), root.into(), Preset::default(), settings)
    }

    /// A shell for looking around: `ls`, `cat`, `grep`, `find`, `git log` and their like. What could write,
    /// run something else or read outside the directory asks; other programs are blocked. Whatever is approved or
    /// set, the sandbox lets nothing be written and closes the network, where the system has one.
    pub fn read_only(name: impl Into<Name>, root: impl Into<PathBuf>) -> Result<Self, ToolsetError> {
        let programs = READERS.iter().map(|program| ShellRule::new(program, Approval::PreApproved));
        let git =
            GIT_READERS.iter().map(|word| ShellRule::new("git", Approval::PreApproved).subcommand(word));
        let preset = Preset { rules: programs.chain(git).collect(), only_reads: true };
        Self::with_preset(name.into(), root.into(), preset, ShellSettings::default())
    }

    /// A shell for tidying up: `ls` runs at once, `mv` asks; other programs are blocked.
    pub fn file_ops(name: impl Into<Name>, root: impl Into<PathBuf>) -> Result<Self, ToolsetError> {
        let rules = vec![ShellRule::new("ls", Approval::PreApproved), ShellRule::new("mv", Approval::Ask)];
        let preset = Preset { rules, only_reads: false };
        Self::with_preset(name.into(), root.into(), preset, ShellSettings::default())
    }

    /// The rules that a preset brings.
    pub(crate) fn preset_rules(&self) -> &[ShellRule] {
        &self.preset.rules
    }

    /// Protects files: a command that names one of them asks each time, unless it can only read. The paths are
    /// relative to the project; some names are protected anyway.
    pub fn protect(mut self, protected: &Protected) -> Result<Self, ToolsetError> {
        self.guarded = Arc::new(protected.below(&self.project)?);
        Ok(self)
    }

    /// Sets which files are secret: a command that would show one asks, whatever rules and modes say, and searches leave
    /// them out. Without it, no file is an exception.
    #[must_use]
    pub fn secret_files(mut self, secret_files: SecretFiles) -> Self {
        self.secret_files = Arc::new(secret_files);
        self
    }

    /// Adds settings to a preset.
    pub fn with_settings(self, settings: ShellSettings) -> Result<Self, ToolsetError> {
        Self::with_preset(self.name, self.project, self.preset, settings)
    }

    fn with_preset(
        name: Name,
        project: PathBuf,
        preset: Preset,
        settings: ShellSettings,
    ) -> Result<Self, ToolsetError> {
        let guarded = Arc::new(Protected::default().below(&project)?);
        let secret_files = Arc::new(SecretFiles::default());
        let session = session(&project, &preset, &settings, guarded.clone(), secret_files.clone())?;
        let mut definition = definition(&name, &settings.prefix, &session.confinement)?;
        definition.notes.extend(free_programs(&settings));
        let definition = Arc::new(definition);
        Ok(Self { name, project, preset, settings, guarded, secret_files, definition })
    }

    fn session(&self, settings: &Value) -> Result<ShellSession, ToolsetError> {
        let (guarded, secret_files) = (self.guarded.clone(), self.secret_files.clone());
        if settings.is_null() {
            return session(&self.project, &self.preset, &self.settings, guarded, secret_files);
        }
        let own: ShellSettings = serde_json::from_value(settings.clone())?;
        if own.prefix != self.settings.prefix {
            return Err(ToolsetError::setting(
                "an agent cannot change `prefix`: set it where the toolset is made",
            ));
        }
        session(&self.project, &self.preset, &own, guarded, secret_files)
    }
}

/// Says which programs the settings let run without a question, besides those of the preset.
fn free_programs(settings: &ShellSettings) -> Option<String> {
    let free = settings.rules.iter().filter(|rule| rule.approval == Approval::PreApproved);
    let mut names: Vec<String> = free.map(ShellRule::shown).collect();
    names.dedup();
    (!names.is_empty()).then(|| format!("rules let these run without a question: {}", names.join(", ")))
}

fn session(
    project: &Path,
    preset: &Preset,
    settings: &ShellSettings,
    guarded: Arc<Guarded>,
    secret_files: Arc<SecretFiles>,
) -> Result<ShellSession, ToolsetError> {
    if !(1..=MAX_TIMEOUT).contains(&settings.timeout) {
        let message = format!("`timeout` is {}, expected 1 to {MAX_TIMEOUT} seconds", settings.timeout);
        return Err(ToolsetError::Setting(message));
    }
    let env = ExecutionEnv::new(project, settings)?;
    Ok(ShellSession {
        policy: Policy::new(&preset.rules, settings)?,
        confinement: Confinement::new(settings, preset.only_reads, &env, sandbox_status())?,
        env,
        guarded,
        secret_files,
        timeout: settings.timeout,
        max_output_bytes: settings.max_output_bytes,
    })
}

impl Toolset for Shell {
    fn name(&self) -> &Name {
        &self.name
    }

    fn definitions(&self) -> Vec<Arc<ToolDefinition>> {
        vec![self.definition.clone()]
    }

    fn survives(&self) -> Survival {
        Survival::Stateless
    }

    fn open<'a>(
        &'a self,
        opening: Opening<'a>,
    ) -> BoxFuture<'a, Result<Arc<dyn ToolsetInstance>, ToolError>> {
        let opened = self.session(opening.settings).map(|session| {
            let tool: Arc<dyn Tool> = Arc::new(ShellTool::new(self.definition.clone(), Arc::new(session)));
            Arc::new(OpenShell([tool])) as Arc<dyn ToolsetInstance>
        });
        Box::pin(future::ready(
            opened.map_err(|error| ToolError::new(format!("toolset `{}`: {error}", self.name))),
        ))
    }
}

/// The tool of one agent call. Its processes end with each call, so there is nothing to close.
struct OpenShell([Arc<dyn Tool>; 1]);

impl ToolsetInstance for OpenShell {
    fn tools(&self) -> &[Arc<dyn Tool>] {
        &self.0
    }
}
