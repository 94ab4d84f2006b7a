//! Reads manifests and agent files into a linked project, or reports everything that is wrong with them.
//!
//! [`load`] reads a manifest (`project.json`, `.yaml`, `.toml`), a directory, a lone agent or program file, checks it
//! against the schemas that its types make, and links it against a [`Catalog`]. Nothing of the project is
//! executed, and no model or tool is called.

mod bundle;
mod catalog;
mod code;
mod create;
mod diagnostic;
mod document;
mod file_reader;
mod format;
mod globs;
mod link;
mod loaded;
mod needs;
mod preamble;
mod project_files;
mod python_names;
mod reach;
mod read;
mod source;
mod suggest;

use std::path::Path;

use llm_do_trust::Powers;

use file_reader::FileReader;

pub use bundle::read_bundle;
pub use catalog::{
    Catalog, CodeRunner, EmbeddingProgram, Host, Machine, ModelCatalog, NoToolsets, ProgramInput,
    ToolsetCatalog, WantedToolset,
};
pub use code::{
    ClassPurpose, Code, CodeClass, CodeLocation, CodeModel, CodeProblem, CodeProvider, Defined, ReachModel,
    WantedClass, WantedCode, WantedFunction,
};
pub use create::{AgentDraft, AgentDraftError, Workshop};
pub use diagnostic::{Diagnostic, Diagnostics, Severity};
pub use file_reader::RecordedFiles;
pub use format::{
    AttachmentSection, HeaderProblem, LimitsSection, McpServer, Provider, header_problem, header_schema,
    manifest_schema,
};
pub use loaded::LoadedProject;
pub use project_files::{ProjectFiles, SecretFilesError};
pub use python_names::{PYTHON_NAMES, PythonEra, PythonName, PythonNameKind, find_python_name, python_names};
pub use reach::{Reach, ReachedAgent, ReachedCall, ReachedKind, ReachedProvider};
pub use read::discovery;

/// Reads and links a project. All problems are found in one pass.
pub fn load(path: impl AsRef<Path>, catalog: &dyn Catalog) -> Result<LoadedProject, Diagnostics> {
    load_changed(path, &[], catalog)
}

/// Checks a project without running any of its code, and lists what only running it would show.
pub fn check_static(path: impl AsRef<Path>, changes: &[String], catalog: &dyn Catalog) -> Diagnostics {
    let mut out = Diagnostics::default();
    let changes = read::overrides::Overrides::read(changes, &mut out);
    let reader = FileReader::new(catalog.recorded_files());
    if let Some(files) = read::read_project(path.as_ref(), reader, &changes, &mut out) {
        link::check(files, catalog, &mut out);
    }
    out
}

/// Reads and links a project without running any of its code. What only code defines is missing, and is listed in
/// [`LoadedProject::unseen`].
pub fn load_static(
    path: impl AsRef<Path>,
    changes: &[String],
    catalog: &dyn Catalog,
) -> Result<LoadedProject, Diagnostics> {
    read_and_link(path, changes, catalog, |files, out| link::link_static(files, catalog, out))
}

/// Reads and links a project without anything that nobody agreed to: its code is not run, its own providers are not known,
/// and rules and settings that loosen what is asked about are left out.
pub fn load_restricted(
    path: impl AsRef<Path>,
    changes: &[String],
    catalog: &dyn Catalog,
) -> Result<LoadedProject, Diagnostics> {
    read_and_link(path, changes, catalog, |files, out| link::link_restricted(files, catalog, out))
}

/// Reads and links a project with changes over its files: `KEY=VALUE` sets a key of the manifest,
/// `agents.NAME.KEY=VALUE` one of an agent.
pub fn load_changed(
    path: impl AsRef<Path>,
    changes: &[String],
    catalog: &dyn Catalog,
) -> Result<LoadedProject, Diagnostics> {
    load_agreed(path, changes, None, catalog)
}

/// Reads and links a project as [`load_changed`] does, and refuses powers beyond those that somebody agreed to before
/// any code runs.
pub fn load_agreed(
    path: impl AsRef<Path>,
    changes: &[String],
    agreed: Option<&Powers>,
    catalog: &dyn Catalog,
) -> Result<LoadedProject, Diagnostics> {
    read_and_link(path, changes, catalog, |files, out| link::link(files, agreed, catalog, out))
}

fn read_and_link(
    path: impl AsRef<Path>,
    changes: &[String],
    catalog: &dyn Catalog,
    link: impl FnOnce(read::Files, &mut Diagnostics) -> Option<LoadedProject>,
) -> Result<LoadedProject, Diagnostics> {
    let mut out = Diagnostics::default();
    let changes = read::overrides::Overrides::read(changes, &mut out);
    let reader = FileReader::new(catalog.recorded_files());
    let files = read::read_project(path.as_ref(), reader, &changes, &mut out);
    match files.and_then(|files| link(files, &mut out)) {
        Some(project) if !out.has_errors() => Ok(project),
        _ => Err(out),
    }
}
