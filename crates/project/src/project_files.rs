//! The files that decide what a project does.

use std::path::{Path, PathBuf};

use llm_do_secrets::SecretFiles;

/// The files that decide what a project does: whoever writes one of them changes what runs later.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProjectFiles {
    /// The manifest, agent files, Python files, programs of MCP servers, and the directory of generated agents.
    pub paths: Vec<PathBuf>,
    /// Globs relative to the project whose matches, also later ones, are read or run.
    pub globs: Vec<String>,
    /// Globs relative to the project of files that look secret and may be read without a question.
    pub allowed_secrets: Vec<String>,
}

impl ProjectFiles {
    /// Returns which files of a project are secret.
    ///
    /// # Errors
    ///
    /// Returns what is wrong with a glob, or why the root cannot be found.
    pub fn secret_files(&self, root: &Path) -> Result<SecretFiles, String> {
        let root = root.canonicalize().map_err(|error| format!("`{}`: {error}", root.display()))?;
        SecretFiles::new(root, self.allowed_secrets.iter().map(String::as_str))
    }
}
