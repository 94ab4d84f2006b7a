//! What the files of a project may name besides each other: built-in toolsets, providers, programs.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use llm_do_core::{AgentArgs, AgentSpec, Name, Tool, Toolset};
use llm_do_models::{PROTOCOLS, StandardModels, provider_names, providers};
use llm_do_project::{
    Catalog, Code, CodeProblem, CodeRunner, EmbeddingProgram, Host, Machine, ModelCatalog, ProgramInput,
    RecordedFiles, ToolsetCatalog, WantedCode, WantedToolset,
};
use llm_do_python::{PythonSettings, python_code, python_interpreter, python_syntax_problems};
use llm_do_runtime::EntrySpec;
use llm_do_tools::{
    ToolsetEnv, ToolsetRequest, built_in, built_in_names, lone_tools, tool_home, toolset_powers,
};
use llm_do_trust::Power;

use crate::dynamic_agents;
use crate::user_models::UserModels;

/// Keys of model providers that other programs read.
const OTHER_KEYS: &[&str] = &["ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN"];

/// Everything that comes with llm-do.
#[derive(Clone, Default)]
pub struct StandardCatalog {
    env: ToolsetEnv,
    python: PythonSettings,
    search_path: Option<OsString>,
    tools: Vec<Arc<dyn Tool>>,
    toolsets: Vec<Arc<dyn Toolset>>,
    entries: Vec<EntrySpec>,
    inputs: Vec<ProgramInput>,
    /// Whether a program adds tools and toolsets of its own.
    is_embedded: bool,
    user: UserModels,
    allowed_secret_files: Vec<String>,
    recorded_files: Option<RecordedFiles>,
}

impl StandardCatalog {
    /// A catalog for a process that works in a directory.
    pub fn new(directory: impl Into<PathBuf>) -> Self {
        let home = std::env::var_os("HOME").map(PathBuf::from);
        let env = ToolsetEnv { directory: directory.into(), home, ..ToolsetEnv::default() };
        Self { env, ..Self::default() }
    }

    /// Adds a tool of the embedding program, which agents list under `tools`.
    #[must_use]
    pub fn with_tool(mut self, tool: impl Into<Arc<dyn Tool>>) -> Self {
        self.tools.push(tool.into());
        self
    }

    /// Adds a toolset of the embedding program, which agents list under `toolsets`. It takes the place of a built-in
    /// toolset of the same name.
    #[must_use]
    pub fn with_toolset(mut self, toolset: impl Toolset + 'static) -> Self {
        self.toolsets.push(Arc::new(toolset));
        self
    }

    /// Gives an agent in a file a typed input.
    #[must_use]
    pub fn with_input_of<T: AgentArgs>(mut self, agent: impl Into<Name>) -> Self {
        let spec = AgentSpec::new(agent, "").input_of::<T>();
        if let (Some(schema), Some(prompt)) = (spec.input, spec.prompt) {
            self.inputs.push(ProgramInput { agent: spec.name, schema, prompt });
        }
        self
    }

    /// Reports missing tools and toolsets with how a program adds them.
    pub(crate) fn embedded(mut self) -> Self {
        self.is_embedded = true;
        self
    }

    /// Adds code of the embedding program that can be the root of a run.
    #[must_use]
    pub fn with_entry(mut self, entry: EntrySpec) -> Self {
        self.entries.push(entry);
        self
    }

    /// Protects a file or directory of the process itself: toolsets write there only after a fresh approval.
    #[must_use]
    pub fn protect(mut self, path: impl Into<PathBuf>) -> Self {
        self.env.own.push(path.into());
        self
    }

    /// Keeps toolsets out of a directory of the process itself, such as where it keeps its records: they neither read
    /// nor write there, whatever anybody approves.
    #[must_use]
    pub fn private(mut self, path: impl Into<PathBuf>) -> Self {
        self.env.private.push(path.into());
        self
    }

    /// Keeps toolsets from writing to a directory of the process itself, such as its cache.
    #[must_use]
    pub fn read_only(mut self, path: impl Into<PathBuf>) -> Self {
        self.env.read_only.push(path.into());
        self
    }

    /// Reads manifest, agent files and prompts from a record, and not from the disk. What such a project may do without a
    /// question is judged as that of a project on disk.
    #[must_use]
    pub fn recorded_files(mut self, files: RecordedFiles) -> Self {
        self.recorded_files = Some(files);
        self
    }

    /// Sets how the Python files of projects are run.
    #[must_use]
    pub fn python(mut self, settings: PythonSettings) -> Self {
        self.python = settings;
        self
    }

    /// Lets projects name the models and providers of the user, which they cannot redeclare.
    #[must_use]
    pub fn user_models(mut self, user: UserModels) -> Self {
        self.user = user;
        self
    }

    /// Takes files that match one of these globs, relative to the project, not to be secret, in every project.
    #[must_use]
    pub fn allow_secret_files(mut self, globs: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.allowed_secret_files.extend(globs.into_iter().map(Into::into));
        self
    }

    /// Looks programs up in these directories, written as in `PATH`; otherwise none is looked up.
    #[must_use]
    pub fn search_path(mut self, path: impl Into<OsString>) -> Self {
        self.search_path = Some(path.into());
        self
    }
}

impl Catalog for StandardCatalog {
    fn shared(&self) -> Arc<dyn Catalog> {
        Arc::new(self.clone())
    }
}

impl ToolsetCatalog for StandardCatalog {
    fn toolsets(&self) -> Vec<&str> {
        built_in_names().into_iter().chain([dynamic_agents::NAME]).collect()
    }

    fn toolset(&self, wanted: WantedToolset<'_>) -> Result<Arc<dyn Toolset>, String> {
        match wanted.built_in {
            dynamic_agents::NAME => dynamic_agents::from_settings(&wanted),
            _ => built_in(&request(&wanted), &self.env).map_err(|error| error.to_string()),
        }
    }

    fn toolset_powers(&self, wanted: WantedToolset<'_>) -> Vec<Power> {
        toolset_powers(&request(&wanted), &self.env)
    }

    fn tool_home(&self, tool: &str) -> Option<&str> {
        dynamic_agents::TOOLS.contains(&tool).then_some(dynamic_agents::NAME).or_else(|| tool_home(tool))
    }

    fn lone_tools(&self) -> Vec<&str> {
        lone_tools().into_iter().chain(dynamic_agents::TOOLS).collect()
    }
}

impl EmbeddingProgram for StandardCatalog {
    fn program_tools(&self) -> &[Arc<dyn Tool>] {
        &self.tools
    }

    fn program_toolsets(&self) -> &[Arc<dyn Toolset>] {
        &self.toolsets
    }

    fn program_entries(&self) -> &[EntrySpec] {
        &self.entries
    }

    fn program_inputs(&self) -> &[ProgramInput] {
        &self.inputs
    }

    fn program_hint(&self) -> Option<&str> {
        self.is_embedded
            .then_some("the program adds its own with `llm_do::loader(..).tool(..)` and `.toolset(..)`")
    }
}

impl CodeRunner for StandardCatalog {
    /// The keys of model providers stay here: code that a project brings sees those that its manifest names.
    fn code(&self, wanted: WantedCode<'_>) -> Result<Code, Vec<CodeProblem>> {
        let mut settings = self.python.clone();
        let is_withheld = |name: &OsString| {
            let built_in = providers().iter().flat_map(|provider| provider.key_env.iter().copied());
            let keys = built_in
                .chain(self.user.key_variables())
                .chain(wanted.keys.iter().map(String::as_str))
                .chain(OTHER_KEYS.iter().copied());
            keys.into_iter().any(|key| name == key)
                && !wanted.variables.iter().any(|variable| name == variable.as_str())
        };
        settings.environment.retain(|(name, _)| !is_withheld(name));
        python_code(wanted, &self.env, &settings)
    }

    fn syntax_problems(&self, files: &[PathBuf], root: &Path) -> Vec<CodeProblem> {
        python_syntax_problems(files, root, &self.python)
    }

    fn interpreter(&self, root: &Path, named: Option<&str>) -> String {
        python_interpreter(named, root, &self.env.directory, &self.python)
    }
}

impl ModelCatalog for StandardCatalog {
    fn key_variables(&self) -> Vec<&str> {
        providers()
            .iter()
            .flat_map(|provider| provider.key_env)
            .copied()
            .chain(OTHER_KEYS.iter().copied())
            .chain(self.user.key_variables())
            .collect()
    }

    fn providers(&self) -> Vec<&str> {
        let own = self.user.providers.iter().map(|provider| provider.name.as_str());
        provider_names().into_iter().chain(own).collect()
    }

    fn alias(&self, name: &str) -> Option<&str> {
        self.user.aliases.get(name).map(String::as_str)
    }

    fn full_model_names(&self, model: &str) -> Vec<String> {
        llm_do_models::full_names(model)
    }

    fn model_problem(&self, model: &str, root: &Path) -> Option<String> {
        StandardModels::new(root).offline_problem(model)
    }

    fn protocols(&self) -> Vec<&str> {
        PROTOCOLS.to_vec()
    }
}

impl Host for StandardCatalog {
    fn variable(&self, name: &str) -> Option<String> {
        std::env::var(name).ok()
    }

    fn is_private(&self, path: &Path) -> bool {
        let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_path_buf());
        let path = real(path);
        self.env.private.iter().any(|directory| path.starts_with(real(directory)))
    }

    fn machine(&self) -> Machine {
        let username = ["USER", "LOGNAME", "USERNAME"].iter().find_map(|name| self.variable(name));
        Machine { directory: Some(self.env.directory.clone()), hostname: hostname(), username }
    }

    fn allowed_secret_files(&self) -> &[String] {
        &self.allowed_secret_files
    }

    fn recorded_files(&self) -> Option<&RecordedFiles> {
        self.recorded_files.as_ref()
    }

    fn has_program(&self, program: &str) -> bool {
        match &self.search_path {
            Some(path) => which::which_in(program, Some(path), &self.env.directory).is_ok(),
            None => true,
        }
    }
}

/// Returns a toolset that a project lists as the crate of the built-in toolsets knows it.
fn request<'a>(wanted: &WantedToolset<'a>) -> ToolsetRequest<'a> {
    ToolsetRequest {
        built_in: wanted.built_in,
        name: wanted.name,
        settings: wanted.settings,
        section: wanted.section,
        root: wanted.root,
        protected_paths: &wanted.files.paths,
        protected_globs: &wanted.files.globs,
        allowed_secrets: &wanted.files.allowed_secrets,
    }
}

#[cfg(unix)]
fn hostname() -> Option<String> {
    let name = rustix::system::uname().nodename().to_string_lossy().into_owned();
    (!name.is_empty()).then_some(name)
}

#[cfg(not(unix))]
fn hostname() -> Option<String> {
    std::env::var("COMPUTERNAME").ok()
}
