//! What a project is linked against: the toolsets, models and programs that exist outside its files.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use llm_do_core::{Name, Prompt, Schema, Tool, Toolset};
use llm_do_runtime::EntrySpec;
use llm_do_trust::Power;
use serde_json::Value;

use crate::code::{Code, CodeProblem, WantedCode};
use crate::file_reader::RecordedFiles;
use crate::project_files::ProjectFiles;

/// Knows what the files of a project may name besides each other.
///
/// The parts are traits of their own, so that code that checks models asks for nothing else, and a catalog implements
/// only the methods that it has an answer for.
pub trait Catalog: ToolsetCatalog + EmbeddingProgram + CodeRunner + ModelCatalog + Host {
    /// Returns the same catalog for whoever keeps it: agents may be created as long as a project runs.
    fn shared(&self) -> Arc<dyn Catalog>;
}

/// Knows the built-in toolsets that agents and manifests may name.
pub trait ToolsetCatalog: Send + Sync {
    /// Returns the names of all built-in toolsets.
    fn toolsets(&self) -> Vec<&str>;

    /// Makes a built-in toolset.
    ///
    /// # Errors
    ///
    /// Returns what is wrong with its settings.
    fn toolset(&self, wanted: WantedToolset<'_>) -> Result<Arc<dyn Toolset>, String>;

    /// Returns the built-in toolset of a tool that agents may list alone.
    fn tool_home(&self, _tool: &str) -> Option<&str> {
        None
    }

    /// Returns the tools that agents may list alone, for hints about misspelled names.
    fn lone_tools(&self) -> Vec<&str> {
        Vec::new()
    }

    /// Returns the powers that a built-in toolset has by its settings: what it does without a question that it would
    /// not do by default.
    fn toolset_powers(&self, _wanted: WantedToolset<'_>) -> Vec<Power> {
        Vec::new()
    }
}

/// Knows what the program that embeds the library adds: tools, toolsets, entries and typed inputs.
pub trait EmbeddingProgram: Send + Sync {
    /// Returns the tools of the embedding program, which agents list under `tools`.
    fn program_tools(&self) -> &[Arc<dyn Tool>] {
        &[]
    }

    /// Returns the toolsets of the embedding program, which agents list under `toolsets`.
    fn program_toolsets(&self) -> &[Arc<dyn Toolset>] {
        &[]
    }

    /// Returns the entries of the embedding program.
    fn program_entries(&self) -> &[EntrySpec] {
        &[]
    }

    /// Returns the typed inputs that the embedding program gives to agents in files.
    fn program_inputs(&self) -> &[ProgramInput] {
        &[]
    }

    /// Returns how a tool or toolset of the embedding program is added, for agents that list one that is missing.
    fn program_hint(&self) -> Option<&str> {
        None
    }
}

/// Runs the Python files of a project. The methods have defaults that run nothing.
pub trait CodeRunner: Send + Sync {
    /// Returns the interpreter that would run the Python files of a project, as a person would write it.
    fn interpreter(&self, _root: &Path, named: Option<&str>) -> String {
        named.unwrap_or("python3").to_owned()
    }

    /// Returns the syntax errors of Python files, which are not run for it.
    fn syntax_problems(&self, _files: &[PathBuf], _root: &Path) -> Vec<CodeProblem> {
        Vec::new()
    }

    /// Runs the Python files of a project and finds what they define. Called only when everything else about the
    /// project is right.
    fn code(&self, _wanted: WantedCode<'_>) -> Result<Code, Vec<CodeProblem>> {
        let message = "Python files cannot be run here".to_owned();
        Err(vec![CodeProblem { location: None, message, hint: None }])
    }
}

/// Knows the models and providers that manifests and agents may name.
pub trait ModelCatalog: Send + Sync {
    /// Returns the environment variables that hold keys of built-in providers.
    fn key_variables(&self) -> Vec<&str> {
        Vec::new()
    }

    /// Returns the prefixes of models that are known without the manifest. If there are none, they are not checked.
    fn providers(&self) -> Vec<&str> {
        Vec::new()
    }

    /// Returns the model that the user gave another name.
    fn alias(&self, _name: &str) -> Option<&str> {
        None
    }

    /// Returns the names with a provider that a name without one may mean.
    fn full_model_names(&self, _model: &str) -> Vec<String> {
        Vec::new()
    }

    /// Returns what is wrong with a model's name beyond its provider, as far as that is known without asking it.
    fn model_problem(&self, _model: &str, _root: &Path) -> Option<String> {
        None
    }

    /// Returns the protocols that providers of a manifest may speak. If there are none, they are not checked.
    fn protocols(&self) -> Vec<&str> {
        Vec::new()
    }
}

/// Knows the machine and the user on whose behalf a project is loaded.
pub trait Host: Send + Sync {
    /// Returns an environment variable of the process, for agents that are told about it.
    fn variable(&self, _name: &str) -> Option<String> {
        None
    }

    /// Returns whether a file belongs to llm-do itself, such as its records and the keys of the user: then no project
    /// reads it.
    fn is_private(&self, _path: &Path) -> bool {
        false
    }

    /// Returns what is known about the machine, for agents that are told about it.
    fn machine(&self) -> Machine {
        Machine::default()
    }

    /// Returns globs, relative to the project, of files that the user does not regard as secret. They apply to every
    /// project, also to one without its powers.
    fn allowed_secret_files(&self) -> &[String] {
        &[]
    }

    /// Returns the files of the project that are read from a record instead of the disk.
    fn recorded_files(&self) -> Option<&RecordedFiles> {
        None
    }

    /// Returns whether a program can be started. Only its presence is looked at.
    fn has_program(&self, _program: &str) -> bool {
        true
    }
}

/// The input of one agent as a type of the embedding program.
#[derive(Debug, Clone)]
pub struct ProgramInput {
    /// The agent.
    pub agent: Name,
    /// The schema of the type.
    pub schema: Schema,
    /// What the model reads.
    pub prompt: Prompt,
}

/// What is known about the machine that a project runs on.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Machine {
    /// The working directory of the process.
    pub directory: Option<PathBuf>,
    /// The name of the machine.
    pub hostname: Option<String>,
    /// The name of the user.
    pub username: Option<String>,
}

/// A built-in toolset as a project wants it.
#[derive(Debug, Clone, Copy)]
pub struct WantedToolset<'a> {
    /// The built-in name.
    pub built_in: &'a str,
    /// The name under which agents list it.
    pub name: &'a Name,
    /// Its settings, or null.
    pub settings: &'a Value,
    /// What the manifest sets for it, where one agent sets something else: an agent may narrow it, not loosen it.
    pub section: Option<&'a Value>,
    /// The directory of the project.
    pub root: &'a Path,
    /// The files that decide what the project does.
    pub files: &'a ProjectFiles,
}

/// A catalog of nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoToolsets;

impl Catalog for NoToolsets {
    fn shared(&self) -> Arc<dyn Catalog> {
        Arc::new(*self)
    }
}

impl ToolsetCatalog for NoToolsets {
    fn toolsets(&self) -> Vec<&str> {
        Vec::new()
    }

    fn toolset(&self, wanted: WantedToolset<'_>) -> Result<Arc<dyn Toolset>, String> {
        Err(format!("there is no toolset `{}`", wanted.built_in))
    }
}

impl EmbeddingProgram for NoToolsets {}

impl CodeRunner for NoToolsets {}

impl ModelCatalog for NoToolsets {}

impl Host for NoToolsets {}
