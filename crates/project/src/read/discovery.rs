//! Finds out what a path holds: a manifest, agent files, or neither.
//!
//! This module links nothing (see [`crate::load()`]) and looks into no directory above the one that it is given: whoever
//! searches parent directories decides how far that goes.

use std::path::{Path, PathBuf};

use crate::diagnostic::Diagnostics;
use crate::file_reader::FileReader;
use crate::read::agent_file::AgentFile;
pub use crate::read::is_agent_file;
use crate::read::overrides::Overrides;
use crate::read::worker_file;
use crate::read::{self, MANIFESTS};

/// Returns the manifest of a directory, if it has one.
pub fn manifest_in(directory: &Path) -> Option<PathBuf> {
    MANIFESTS.iter().map(|name| directory.join(name)).find(|path| path.exists())
}

/// Returns the agent files that lie in a directory, in order.
pub fn agent_files_in(directory: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    files.retain(|path| is_agent_file(path));
    files.sort();
    files
}

/// Returns whether a directory holds a project: a manifest, agent files, or YAML workers.
pub fn is_project_directory(directory: &Path) -> bool {
    manifest_in(directory).is_some()
        || !agent_files_in(directory).is_empty()
        || !worker_file::registered(directory).is_empty()
}

/// What a manifest says about an agent file.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Membership {
    /// The project has this agent, and a run starts with it.
    Entry,
    /// The project has this agent under this name; none if the header of the file gives no name.
    Agent(Option<String>),
    /// The project does not list the file.
    NotListed,
    /// The manifest cannot be read, so that nobody knows.
    Unreadable,
}

/// Returns what a manifest says about an agent file. Links are resolved before files are compared.
pub fn membership(manifest: &Path, file: &Path) -> Membership {
    // What is wrong with the project is reported when it is loaded for good.
    let mut ignored = Diagnostics::default();
    let Some(files) = read::read_project(manifest, FileReader::DISK, &Overrides::default(), &mut ignored)
    else {
        return Membership::Unreadable;
    };
    let Ok(real) = file.canonicalize() else { return Membership::NotListed };
    let is_listed = |agent: &&AgentFile| agent.real == real && !agent.is_linked;
    let Some(agent) = files.agents.iter().find(is_listed) else {
        return Membership::NotListed;
    };
    let name = agent.written_name();
    let entry = files.manifest.as_ref().and_then(|file| file.manifest.entry.agent.as_deref());
    match name {
        Some(name) if entry == Some(name) => Membership::Entry,
        name => Membership::Agent(name.map(str::to_owned)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn project(manifest: &str) -> tempfile::TempDir {
        let directory = tempfile::tempdir().unwrap();
        std::fs::create_dir(directory.path().join("agents")).unwrap();
        for name in ["main", "helper", "other"] {
            let text = format!("---\nname: {name}\n---\nHelp.\n");
            std::fs::write(directory.path().join(format!("agents/{name}.agent")), text).unwrap();
        }
        std::fs::write(directory.path().join("project.yaml"), manifest).unwrap();
        directory
    }

    fn membership_in(manifest: &str, file: &str) -> Membership {
        let directory = project(manifest);
        membership(&directory.path().join("project.yaml"), &directory.path().join(file))
    }

    const MANIFEST: &str =
        "version: 1\nentry: {agent: main}\nagent_files: [agents/main.agent, agents/helper.agent]\n";

    #[test]
    fn a_manifest_knows_the_files_that_it_lists() {
        assert_eq!(membership_in(MANIFEST, "agents/main.agent"), Membership::Entry);
        assert_eq!(
            membership_in(MANIFEST, "agents/helper.agent"),
            Membership::Agent(Some("helper".to_owned()))
        );
        assert_eq!(membership_in(MANIFEST, "agents/other.agent"), Membership::NotListed);
        assert_eq!(membership_in(MANIFEST, "agents/missing.agent"), Membership::NotListed);
        assert_eq!(membership_in("version: [", "agents/main.agent"), Membership::Unreadable);
    }

    #[test]
    fn a_directory_of_agent_files_is_a_project_and_an_empty_one_is_not() {
        let directory = project(MANIFEST);
        assert!(is_project_directory(directory.path()));
        assert!(is_project_directory(&directory.path().join("agents")));
        std::fs::create_dir(directory.path().join("notes")).unwrap();
        assert!(!is_project_directory(&directory.path().join("notes")));
        assert_eq!(manifest_in(&directory.path().join("agents")), None);
    }
}
