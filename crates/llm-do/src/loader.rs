//! Reads projects of files, together with tools that the embedding program brings.

use std::path::PathBuf;
use std::sync::Arc;

use llm_do_core::{AgentArgs, Name, Tool, Toolset};
use llm_do_project::{LoadedProject, RecordedFiles};
use llm_do_python::PythonSettings;
use llm_do_runtime::EntrySpec;

use crate::catalog::StandardCatalog;
use crate::trusted::{self, LoadError, TrustPolicy};

/// Collects what a project of files is read with. [`crate::loader`] begins one.
#[must_use]
pub struct Loader {
    path: PathBuf,
    changes: Vec<String>,
    policy: TrustPolicy,
    catalog: StandardCatalog,
}

impl Loader {
    pub(crate) fn new(path: PathBuf) -> Self {
        Self {
            path,
            changes: Vec::new(),
            policy: TrustPolicy::default(),
            catalog: StandardCatalog::new(".").embedded(),
        }
    }

    /// Adds a tool, which agents list under `tools`.
    pub fn tool(self, tool: impl Into<Arc<dyn Tool>>) -> Self {
        self.catalog(|catalog| catalog.with_tool(tool))
    }

    /// Adds a toolset, which agents list under `toolsets`, with settings of their own if they give any.
    pub fn toolset(self, toolset: impl Toolset + 'static) -> Self {
        self.catalog(|catalog| catalog.with_toolset(toolset))
    }

    /// Adds code that can be the root of a run.
    pub fn entry(self, entry: EntrySpec) -> Self {
        self.catalog(|catalog| catalog.with_entry(entry))
    }

    /// Gives an agent in a file a typed input: its schema, and what the model reads.
    pub fn input_of<T: AgentArgs>(self, agent: impl Into<Name>) -> Self {
        self.catalog(|catalog| catalog.with_input_of::<T>(agent))
    }

    /// Changes a value of the files, which is written as JSON, such as `runtime.max_depth=3` or
    /// `agents.main.tools=["read_file"]`.
    pub fn set(mut self, change: impl Into<String>) -> Self {
        self.changes.push(change.into());
        self
    }

    /// Sets how the Python files of the project are run.
    pub fn python(self, settings: PythonSettings) -> Self {
        self.catalog(|catalog| catalog.python(settings))
    }

    /// Protects a file or directory of the program: toolsets write there only after a fresh approval.
    pub fn protect(self, path: impl Into<PathBuf>) -> Self {
        self.catalog(|catalog| catalog.protect(path))
    }

    /// Keeps toolsets out of a directory of the program: they neither read nor write there, whatever is approved.
    pub fn private(self, path: impl Into<PathBuf>) -> Self {
        self.catalog(|catalog| catalog.private(path))
    }

    /// Keeps toolsets from writing to a directory of the program.
    pub fn read_only(self, path: impl Into<PathBuf>) -> Self {
        self.catalog(|catalog| catalog.read_only(path))
    }

    /// Reads manifest, agent files and prompts from a record, and not from the disk.
    pub fn recorded_files(self, files: RecordedFiles) -> Self {
        self.catalog(|catalog| catalog.recorded_files(files))
    }

    /// Sets what the project may do without a question; by default it is refused if it has any power.
    pub fn trust(mut self, policy: TrustPolicy) -> Self {
        self.policy = policy;
        self
    }

    /// Reads and links the files, or lists everything that is wrong with them, or the powers that nobody agreed to.
    pub fn load(self) -> Result<LoadedProject, LoadError> {
        trusted::load(&self.path, &self.changes, &self.policy, &self.catalog)
    }

    fn catalog(mut self, change: impl FnOnce(StandardCatalog) -> StandardCatalog) -> Self {
        self.catalog = change(self.catalog);
        self
    }
}
