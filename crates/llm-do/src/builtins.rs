//! The built-in toolsets for projects that are built in code.

use std::path::PathBuf;
use std::sync::Arc;

use llm_do_core::{Name, Toolset};
use llm_do_project::{Catalog, ProjectFiles, WantedToolset, Workshop};
use llm_do_runtime::{ProjectBuilder, ToolsetSource};
use serde_json::Value;

use crate::StandardCatalog;

/// What this crate adds to [`ProjectBuilder`].
pub trait ProjectBuilderExt {
    /// Lets agents list the built-in toolsets and tools by name, as agents in files do. `filesystem_project` and
    /// `shell_readonly` work below the given directory.
    ///
    /// ```
    /// use llm_do::prelude::*;
    /// use serde_json::json;
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let agent = AgentSpec::new("main", "You keep notes.")
    ///     .toolset_with("filesystem_project", json!({"read_only": true}))
    ///     .tool("calculator");
    /// let project = Project::builder().agent(agent).builtins(".").build()?;
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    fn builtins(self, directory: impl Into<PathBuf>) -> Self;
}

impl ProjectBuilderExt for ProjectBuilder {
    fn builtins(self, directory: impl Into<PathBuf>) -> Self {
        let directory = directory.into();
        let catalog = StandardCatalog::new(".");
        let source = BuiltIns { catalog: catalog.clone(), directory: directory.clone() };
        self.directory(&directory).provide(Workshop::new(directory, Arc::new(catalog))).toolset_source(source)
    }
}

struct BuiltIns {
    catalog: StandardCatalog,
    directory: PathBuf,
}

impl ToolsetSource for BuiltIns {
    fn toolsets(&self) -> Vec<&str> {
        self.catalog.toolsets()
    }

    fn toolset(&self, name: &str, settings: &Value) -> Result<Arc<dyn Toolset>, String> {
        let files = ProjectFiles::default();
        let listed = Name::from(name);
        self.catalog.toolset(WantedToolset {
            built_in: name,
            name: &listed,
            settings,
            section: None,
            root: &self.directory,
            files: &files,
        })
    }

    fn tools(&self) -> Vec<&str> {
        self.catalog.lone_tools()
    }

    fn toolset_of(&self, tool: &str) -> Option<&str> {
        self.catalog.tool_home(tool)
    }
}
