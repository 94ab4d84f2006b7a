//! Names that only code which was not run can define, and what may have been meant if it does not.

use std::path::{Path, PathBuf};

use llm_do_core::misspelled;

use super::python::top_level_names;

/// No larger file is looked at.
const MAX_BYTES: u64 = 1024 * 1024;

/// A name that nothing but code which was not run can define.
pub(crate) struct AssumedName {
    /// What is named, such as "the tool `count`".
    pub(super) what: String,
    /// What may be a misspelling of it, such as "the agent `chef`".
    pub(super) near: Option<String>,
}

impl AssumedName {
    /// A name for which no other one can be meant.
    pub(super) fn new(what: String) -> Self {
        Self { what, near: None }
    }

    /// A name of some kind, and other names that exist, each with its kind.
    pub(super) fn with_near(kind: &str, name: &str, known: &[(&str, &str)]) -> Self {
        let near = misspelled(name, known.iter().map(|(_, known)| *known).filter(|known| *known != name));
        let found = known.iter().find(|(_, known)| Some(*known) == near);
        let near = found.map(|(kind, known)| format!("the {kind} `{known}`"));
        Self { what: format!("the {kind} `{name}`"), near }
    }
}

/// Returns the texts of Python files, as far as they can be read.
pub(super) fn texts(files: &[PathBuf]) -> Vec<String> {
    files.iter().filter(|file| is_small(file)).filter_map(|file| std::fs::read_to_string(file).ok()).collect()
}

fn is_small(file: &Path) -> bool {
    file.metadata().is_ok_and(|metadata| metadata.is_file() && metadata.len() <= MAX_BYTES)
}

/// Returns the names that Python files define at their top level, as functions and values.
pub(super) fn names_in(texts: &[String]) -> Vec<&str> {
    texts.iter().flat_map(|text| top_level_names(text)).collect()
}

/// Returns whether Python files may define agents. A file that never mentions any makes none, unless it takes all
/// names of another one.
pub(super) fn may_define_agents(files: &[PathBuf]) -> bool {
    let texts = texts(files);
    let may = |text: &String| text.contains("import *") || text.to_lowercase().contains("agent");
    texts.len() < files.len() || texts.iter().any(may)
}
