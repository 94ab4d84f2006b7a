//! Reads manifests and agent files into a linked project, or says everything that is wrong with them.
//!
//! [`load`] reads a manifest (`project.json`, `.yaml`, `.toml`), a directory or a lone agent file, checks it
//! against the schemas that its types make, and links it against a catalogue of toolsets. Nothing of the
//! project is executed, and no model or tool is called.

mod agent_file;
mod check;
mod diagnostic;
mod document;
mod header;
mod link;
mod load;
mod manifest;
mod older;
mod template;

use std::path::Path;

pub use check::{header_schema, manifest_schema};
pub use diagnostic::{Diagnostic, Diagnostics, Severity};
pub use link::{Catalogue, LoadedProject, NoToolsets};

/// Reads and links a project. All problems are found in one pass.
pub fn load(path: impl AsRef<Path>, catalogue: &dyn Catalogue) -> Result<LoadedProject, Diagnostics> {
    let mut out = Diagnostics::default();
    let loaded = load::load(path.as_ref(), &mut out).and_then(|files| link::link(files, catalogue, &mut out));
    match loaded {
        Some(project) if !out.has_errors() => Ok(project),
        _ => Err(out),
    }
}
