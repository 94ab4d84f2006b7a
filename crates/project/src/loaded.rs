//! A project that was read and linked, ready to be run.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use llm_do_core::{Approval, ModelOverride, Name, ProjectBundle};
use llm_do_runtime::{OutlinedCallable, Project, RuntimeBuilder};
use llm_do_trust::Powers;
use serde_json::{Map, Value};

use crate::bundle::DefiningFiles;
use crate::catalog::Catalog;
use crate::code::{Code, CodeProvider};
use crate::diagnostic::Diagnostics;
use crate::format::manifest::{ManifestFile, McpServer, Provider};
use crate::format::run_settings::RunSettings;
use crate::project_files::ProjectFiles;

/// A project read from files, ready to be run.
pub struct LoadedProject {
    /// The linked project.
    pub project: Project,
    /// The agent that a run starts with.
    pub entry: Name,
    /// The input where nobody gives one.
    pub args: Option<Map<String, Value>>,
    /// Whether the command line may give the input.
    pub allow_cli_input: bool,
    /// The directory of the project.
    pub root: PathBuf,
    /// The model of agents that name none.
    pub model: Option<String>,
    /// Providers besides the built-in ones.
    pub providers: BTreeMap<String, Provider>,
    /// What holds for single models, in the order of the manifest: the first that matches wins.
    pub model_overrides: Vec<ModelOverride>,
    /// MCP servers.
    pub mcp_servers: BTreeMap<String, McpServer>,
    /// What a conversation begins with, each sent as if a person had written it.
    pub demo: Vec<String>,
    /// What the author should know.
    pub notices: Diagnostics,
    /// What the project does without anybody being asked.
    pub powers: Powers,
    /// What only code defines, if that was not run: such tools and toolsets are missing.
    pub unseen: Vec<String>,
    pub(crate) settings: RunSettings,
    pub(crate) context: BTreeMap<String, Value>,
    pub(crate) manifest: Option<Arc<ManifestFile>>,
    pub(crate) generated: PathBuf,
    pub(crate) files: ProjectFiles,
    pub(crate) defining: DefiningFiles,
    pub(crate) code: Option<Arc<Code>>,
    pub(crate) code_files: Vec<PathBuf>,
    pub(crate) catalog: Arc<dyn Catalog>,
}

impl LoadedProject {
    /// Returns the names of all providers that the project itself brings, in its manifest or its code.
    pub fn provider_names(&self) -> impl Iterator<Item = &str> {
        let of_code = self.code_providers().iter().map(|provider| provider.name.as_str());
        self.providers.keys().map(String::as_str).chain(of_code)
    }

    /// Returns the files that decide what the project does: its manifest, agents and code.
    pub fn own_files(&self) -> &[PathBuf] {
        &self.files.paths
    }

    /// Returns the files that define the project, as they were read, for the record of its runs. Secret files are not among
    /// them.
    pub fn bundle(&self) -> ProjectBundle {
        self.defining.bundle()
    }

    /// Returns the files of code that were run, as they are written.
    pub fn code_files(&self) -> &[PathBuf] {
        &self.code_files
    }

    /// Returns whether the project has code, whether or not it was run.
    pub fn has_code(&self) -> bool {
        !self.code_files.is_empty()
    }

    /// Returns whether the code of the project was run to load it.
    pub fn ran_code(&self) -> bool {
        self.code.is_some()
    }

    /// Returns the variables with keys of model providers that code sees.
    pub fn code_variables(&self) -> &[String] {
        self.manifest.as_ref().map(|file| file.manifest.python_env.as_slice()).unwrap_or_default()
    }

    /// Returns the providers of models that the project's code brings.
    pub fn code_providers(&self) -> &[CodeProvider] {
        self.code.as_deref().map(|code| code.providers.as_slice()).unwrap_or_default()
    }

    /// Applies what the manifest says about runs, and the project's root, to a runtime.
    pub fn configure(&self, builder: RuntimeBuilder) -> RuntimeBuilder {
        let settings = &self.settings;
        let defining = self.defining.clone();
        let builder = builder
            .approval_mode(settings.mode)
            .limits(settings.limits.clone())
            .agent_calls(settings.policy.clone())
            .denials_end_runs(settings.denials_end_runs)
            .retry(settings.retry)
            .root(&self.root)
            .bundle(move || defining.bundle())
            .secret_files(self.files.secret_files(&self.root).unwrap_or_default());
        let context = self.context.iter();
        context.fold(builder, |builder, (name, value)| builder.provide_named(name.as_str(), value.clone()))
    }

    /// Returns the limits that the manifest sets, for whoever sets others beside them.
    pub fn limits(&self) -> &llm_do_core::Limits {
        &self.settings.limits
    }

    /// Returns the approval that a call needs by its definition, the agent's rules, and the manifest.
    pub fn approval_of(&self, callable: &OutlinedCallable) -> Approval {
        self.settings.judged(callable).0
    }

    /// Returns the approval mode that the manifest names, if it names one.
    pub fn named_approval_mode(&self) -> Option<llm_do_core::ApprovalMode> {
        self.manifest.as_ref()?.manifest.runtime.approval_mode.as_ref()?;
        Some(self.settings.mode)
    }

    /// Returns how the manifest treats what must ask.
    pub fn approval_mode(&self) -> llm_do_core::ApprovalMode {
        self.settings.mode
    }
}
