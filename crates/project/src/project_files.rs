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
    /// Fails if the root does not exist, or if a glob cannot be used.
    pub fn secret_files(&self, root: &Path) -> Result<SecretFiles, SecretFilesError> {
        let real = root.canonicalize();
        let real = real.map_err(|source| SecretFilesError::Root { root: root.to_path_buf(), source })?;
        SecretFiles::new(real, self.allowed_secrets.iter().map(String::as_str))
            .map_err(|problem| SecretFilesError::Glob(problem.to_string()))
    }
}

/// Why the secret files of a project cannot be told apart from others.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SecretFilesError {
    /// The directory of the project cannot be found.
    #[error("`{}`: {source}", root.display())]
    Root {
        /// The directory.
        root: PathBuf,
        /// Why it cannot be found.
        source: std::io::Error,
    },
    /// A glob of allowed files cannot be used.
    #[error("{0}")]
    Glob(String),
}
