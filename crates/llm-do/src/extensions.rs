//! What this crate adds to types of the crates below it.
//!
//! The runtime knows no providers and the loader no runtime, so what needs both is a method that comes from here.

use std::path::PathBuf;
use std::sync::Arc;

use llm_do_core::{ModelError, ModelErrorKind, Name, Toolset};
use llm_do_models::{
    DeclaredProvider, DescribedModel, DescribedProvider, Environment, StandardModels, StandardPrices,
};
use llm_do_project::{
    CodeModel, CodeProvider, LoadedProject, ProjectFiles, Provider, ToolsetCatalog, WantedToolset, Workshop,
};
use llm_do_runtime::{Project, ProjectBuilder, Runtime, RuntimeBuilder, ToolsetSource};
use serde_json::Value;

use crate::catalog::StandardCatalog;
use crate::user_models::UserModels;

/// What this crate adds to [`Runtime`].
pub trait RuntimeExt {
    /// Begins a runtime that knows the built-in models by name, and their prices.
    ///
    /// Script files are found below the working directory, keys of providers in the environment of this process.
    /// [`Runtime::builder`] begins one that knows no models.
    fn standard(project: Project) -> RuntimeBuilder;
}

impl RuntimeExt for Runtime {
    fn standard(project: Project) -> RuntimeBuilder {
        let models = StandardModels::new(".").environment(Environment::from_process());
        Self::builder(project).models(models).prices(StandardPrices::new())
    }
}

/// What this crate adds to [`LoadedProject`].
pub trait LoadedProjectExt {
    /// Begins a runtime for the project, as its manifest says.
    ///
    /// Script files are found below its directory, keys of providers in the environment of this process.
    fn runtime(&self) -> RuntimeBuilder;

    /// Returns the models that the project may name: the built-in providers, its own, and scripts below its directory.
    fn models(&self, environment: Environment) -> StandardModels;

    /// Returns the models that the project may name, and those of the user, which it cannot redeclare.
    fn models_for_user(&self, environment: Environment, user: &UserModels) -> StandardModels;
}

impl LoadedProjectExt for LoadedProject {
    fn runtime(&self) -> RuntimeBuilder {
        let builder = Runtime::builder(self.project.clone())
            .models(self.models(Environment::from_process()))
            .prices(StandardPrices::new().with_overrides(self.model_overrides.clone()));
        self.configure(builder).provide(self.workshop())
    }

    fn models(&self, environment: Environment) -> StandardModels {
        self.models_for_user(environment, &UserModels::default())
    }

    fn models_for_user(&self, environment: Environment, user: &UserModels) -> StandardModels {
        let models = user.add_to(StandardModels::new(&self.root).environment(environment));
        let models = models.overrides(self.model_overrides.clone());
        let models = self.providers.iter().map(declared_provider).fold(models, StandardModels::provider);
        self.code_providers().iter().map(described_provider).fold(models, StandardModels::described)
    }
}

/// A provider that the manifest declares.
fn declared_provider((name, provider): (&String, &Provider)) -> DeclaredProvider {
    DeclaredProvider {
        name: name.clone(),
        protocol: provider.api.clone(),
        base_url: provider.base_url.clone(),
        key_env: provider.api_key_env.clone(),
        headers: provider.headers.clone(),
        is_users: false,
    }
}

/// A provider that the project's code brings.
fn described_provider(provider: &CodeProvider) -> DescribedProvider {
    let reach = provider.reach.clone();
    let describe = move |model: &str| {
        let model =
            reach(model).map_err(|failure| ModelError::new(ModelErrorKind::NoModel, failure.message))?;
        let CodeModel { api, base_url, key, headers, model } = model;
        Ok(DescribedModel { protocol: api, base_url, key, headers: headers.into_iter().collect(), model })
    };
    DescribedProvider { name: provider.name.to_string(), describe: Arc::new(describe) }
}

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
