//! Files below one directory: read, write, edit, list, search.
//!
//! Whatever a path says, the tools stay below the root, because every file is reached through the handle of a
//! directory that was reached the same way (see [`resolved_path`]). Reading is free; changing asks, with a diff (see
//! [`change`]). Everything is bounded: bytes read and written, entries, matches, time.
//!
//! The module decides nothing about approvals: it says what a call would do, and the gate decides.

mod atomic;
pub(crate) mod change;
pub(crate) mod diff;
mod edit;
mod error;
mod file_search;
mod folded_path;
pub(crate) mod judged;
mod list;
mod lock;
mod openat2;
mod operation;
mod protected;
mod python_imports;
mod read;
mod resolved_path;
pub(crate) mod root;
mod run_later;
mod search;
mod search_pool;
mod secret;
mod settings;
pub mod small_file;
mod standard_library;
mod walk;
mod write;
mod writer;

use std::path::PathBuf;
use std::sync::Arc;

use futures::future::BoxFuture;
use llm_do_core::{Name, Opening, Survival, Tool, ToolDefinition, ToolError, Toolset, ToolsetInstance};
use llm_do_secrets::SecretFiles;

use crate::toolset_error::ToolsetError;
use operation::{FileTool, Operation};
use root::{Root, RootConfig};

pub use diff::preview as diff_preview;
pub(crate) use error::FileError;
pub use protected::Protected;
pub(crate) use protected::{Guarded, Reads};
pub use python_imports::PythonReport;
pub use settings::FilesystemSettings;

/// A toolset for the files below one directory.
///
/// What is set is fixed when the toolset is made: settings of one agent make a toolset of its own. Each agent call
/// opens the root anew.
pub struct Filesystem {
    name: Name,
    root_config: Arc<RootConfig>,
    tools: Vec<(Operation, Arc<ToolDefinition>)>,
    directory: PathBuf,
    settings: FilesystemSettings,
    protected: Protected,
    secret_files: SecretFiles,
}

impl Filesystem {
    /// Makes the toolset, or returns what is wrong with its settings. The root of the settings is relative to the
    /// directory.
    pub fn new(
        name: impl Into<Name>,
        directory: impl Into<PathBuf>,
        settings: FilesystemSettings,
    ) -> Result<Self, ToolsetError> {
        let (name, directory) = (name.into(), directory.into());
        settings.check()?;
        let describe = |operation: Operation| {
            let definition = operation.define(&name, &settings.prefix)?;
            Ok((operation, Arc::new(definition)))
        };
        let tools = Operation::all(settings.read_only)
            .into_iter()
            .map(describe)
            .collect::<Result<_, ToolsetError>>()?;
        let (protected, secret_files) = (Protected::default(), SecretFiles::default());
        let root_config = Arc::new(RootConfig::new(&directory, settings.clone(), &protected)?);
        Ok(Self { name, root_config, tools, directory, settings, protected, secret_files })
    }

    /// Protects files, relative to the directory: they are written only after a fresh approval. Some names are
    /// protected anyway.
    pub fn protect(self, protected: &Protected) -> Result<Self, ToolsetError> {
        Self { protected: protected.clone(), ..self }.grounded()
    }

    /// Sets which files are secret: reading one asks, whatever rules and modes say. Without it, no file is an exception.
    pub fn secret_files(self, secret_files: SecretFiles) -> Result<Self, ToolsetError> {
        Self { secret_files, ..self }.grounded()
    }

    fn grounded(mut self) -> Result<Self, ToolsetError> {
        let root_config = RootConfig::new(&self.directory, self.settings.clone(), &self.protected)?;
        self.root_config = Arc::new(root_config.with_secret_files(self.secret_files.clone()));
        Ok(self)
    }

    fn instance(&self, root: Root) -> Instance {
        let root = Arc::new(root);
        let tool = |(operation, definition): &(Operation, Arc<ToolDefinition>)| {
            let (operation, definition) = (*operation, definition.clone());
            Arc::new(FileTool { operation, definition, root: root.clone() }) as Arc<dyn Tool>
        };
        Instance(self.tools.iter().map(tool).collect())
    }
}

impl Toolset for Filesystem {
    fn name(&self) -> &Name {
        &self.name
    }

    fn definitions(&self) -> Vec<Arc<ToolDefinition>> {
        self.tools.iter().map(|(_, definition)| definition.clone()).collect()
    }

    fn survives(&self) -> Survival {
        Survival::Stateless
    }

    fn open<'a>(
        &'a self,
        _opening: Opening<'a>,
    ) -> BoxFuture<'a, Result<Arc<dyn ToolsetInstance>, ToolError>> {
        let root_config = self.root_config.clone();
        Box::pin(async move {
            let opened = tokio::task::spawn_blocking(move || Root::open(root_config)).await?;
            let root =
                opened.map_err(|error| ToolError::new(format!("the root cannot be opened: {error}")))?;
            Ok(Arc::new(self.instance(root)) as Arc<dyn ToolsetInstance>)
        })
    }
}

/// The tools of one agent call. The root is closed with the last of them.
struct Instance(Vec<Arc<dyn Tool>>);

impl ToolsetInstance for Instance {
    fn tools(&self) -> &[Arc<dyn Tool>] {
        &self.0
    }
}
