//! Reads manifests and agent files into a linked project, or says everything that is wrong with them.
//!
//! [`load`] reads a manifest (`project.json`, `.yaml`, `.toml`), a directory, a lone agent or program file, checks it
//! against the schemas that its types make, and links it against a [`Catalogue`]. Nothing of the project is
//! executed, and no model or tool is called.

mod agent_draft;
mod agent_file;
mod attachment_policy;
mod catalogue;
mod check;
mod code;
mod diagnostic;
pub mod discovery;
mod document;
mod entry;
mod header;
mod headers;
mod input_schema;
mod link;
mod listing;
mod load;
mod manifest;
mod model_settings;
mod offered;
mod older;
mod powers;
mod preamble;
mod program;
mod program_file;
mod programs;
mod python;
mod python_names;
mod reach;
mod reach_text;
mod restricted;
mod run_settings;
mod services;
mod set;
mod template;
mod toolsets;
mod tuning;
mod worker_file;
mod worker_keys;
mod workshop;

use std::path::Path;

use llm_do_trust::Powers;

pub use agent_draft::AgentDraft;
pub use catalogue::{Catalogue, Machine, NoToolsets, ProgramInput, ProjectFiles, WantedToolset};
pub use check::{header_schema, manifest_schema};
pub use code::{
    ClassPurpose, Code, CodeClass, CodeModel, CodePlace, CodeProblem, CodeProvider, Defined, ReachModel,
    WantedClass, WantedCode, WantedFunction,
};
pub use diagnostic::{Diagnostic, Diagnostics, Severity};
pub use headers::{HeaderProblem, header_problem};
pub use link::LoadedProject;
pub use manifest::{AttachmentSection, LimitsSection, McpServer, Provider};
pub use python_names::{PYTHON_NAMES, PythonEra, PythonName, PythonNameKind, find_python_name, python_names};
pub use reach::{Reach, ReachedAgent, ReachedCall, ReachedKind, ReachedProvider};
pub use workshop::Workshop;

/// Reads and links a project. All problems are found in one pass.
pub fn load(path: impl AsRef<Path>, catalogue: &dyn Catalogue) -> Result<LoadedProject, Diagnostics> {
    load_changed(path, &[], catalogue)
}

/// Checks a project without running any of its code, and lists what only running it would show.
pub fn check_static(path: impl AsRef<Path>, changes: &[String], catalogue: &dyn Catalogue) -> Diagnostics {
    let mut out = Diagnostics::default();
    let changes = set::Changes::read(changes, &mut out);
    if let Some(files) = load::load(path.as_ref(), &changes, &mut out) {
        link::check(files, catalogue, &mut out);
    }
    out
}

/// Reads and links a project without running any of its code. What only code defines is missing, and is listed in
/// [`LoadedProject::unseen`].
pub fn load_static(
    path: impl AsRef<Path>,
    changes: &[String],
    catalogue: &dyn Catalogue,
) -> Result<LoadedProject, Diagnostics> {
    read(path, changes, |files, out| link::link_static(files, catalogue, out))
}

/// Reads and links a project without anything that nobody agreed to: its code is not run, its own providers are not known,
/// and rules and settings that loosen what is asked about are left out.
pub fn load_restricted(
    path: impl AsRef<Path>,
    changes: &[String],
    catalogue: &dyn Catalogue,
) -> Result<LoadedProject, Diagnostics> {
    read(path, changes, |files, out| link::link_restricted(files, catalogue, out))
}

/// Reads and links a project with changes over its files: `KEY=VALUE` sets a key of the manifest,
/// `agents.NAME.KEY=VALUE` one of an agent.
pub fn load_changed(
    path: impl AsRef<Path>,
    changes: &[String],
    catalogue: &dyn Catalogue,
) -> Result<LoadedProject, Diagnostics> {
    load_agreed(path, changes, None, catalogue)
}

/// Reads and links a project as [`load_changed`] does, and refuses powers beyond those that somebody agreed to before
/// any code runs.
pub fn load_agreed(
    path: impl AsRef<Path>,
    changes: &[String],
    agreed: Option<&Powers>,
    catalogue: &dyn Catalogue,
) -> Result<LoadedProject, Diagnostics> {
    read(path, changes, |files, out| link::link(files, agreed, catalogue, out))
}

fn read(
    path: impl AsRef<Path>,
    changes: &[String],
    link: impl FnOnce(load::Files, &mut Diagnostics) -> Option<LoadedProject>,
) -> Result<LoadedProject, Diagnostics> {
    let mut out = Diagnostics::default();
    let changes = set::Changes::read(changes, &mut out);
    match load::load(path.as_ref(), &changes, &mut out).and_then(|files| link(files, &mut out)) {
        Some(project) if !out.has_errors() => Ok(project),
        _ => Err(out),
    }
}
