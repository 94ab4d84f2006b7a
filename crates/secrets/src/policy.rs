//! Which files of a project are secret.

use std::path::{Component, Path, PathBuf};

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};
use thiserror::Error;

use crate::config::has_password;
use crate::file_name::{NameRule, name_rule};
use crate::scan::{SecretKind, secrets_in};

/// How much of a file is looked at.
pub const HEAD_BYTES: usize = 64 * 1024;

/// The longest glob that a project may give.
const MAX_GLOB_LEN: usize = 256;

/// Why a glob cannot say which files are not secret.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum SecretGlobError {
    /// It is empty, or longer than a project may write it.
    #[error("a glob has 1 to {MAX_GLOB_LEN} bytes, and this one has {len}")]
    Length {
        /// Its length in bytes.
        len: usize,
    },
    /// It is absolute, or has a part `..`.
    #[error("`{glob}` leads out of the project: write a path from its root")]
    Outside {
        /// The glob.
        glob: String,
    },
    /// Its syntax is wrong. The message of the parser names the glob.
    #[error(transparent)]
    Malformed(globset::Error),
}

/// Decides which files are secret, with the exceptions of one project.
#[derive(Debug, Clone, Default)]
pub struct SecretFiles {
    root: PathBuf,
    allowed: GlobSet,
}

impl SecretFiles {
    /// Makes the rule of a project: files below its root that match one of the globs are not secret.
    ///
    /// # Errors
    ///
    /// Fails at the first glob that is empty, too long, malformed or leads out of the project.
    pub fn new<'g>(
        root: impl Into<PathBuf>,
        globs: impl IntoIterator<Item = &'g str>,
    ) -> Result<Self, SecretGlobError> {
        let mut allowed = GlobSetBuilder::new();
        for glob in globs {
            allowed.add(compiled(glob)?);
        }
        let allowed = allowed.build().map_err(SecretGlobError::Malformed)?;
        Ok(Self { root: root.into(), allowed })
    }

    /// Returns whether the project says that a file is not secret. The path is absolute and without links.
    pub fn allows(&self, path: &Path) -> bool {
        !self.allowed.is_empty()
            && path.strip_prefix(&self.root).is_ok_and(|below| self.allowed.is_match(below))
    }

    /// Returns what is secret about a file with this beginning ([`HEAD_BYTES`]), or nothing if it is an ordinary one.
    ///
    /// The path is absolute and without links: names on the way to the file count.
    pub fn judge(&self, path: &Path, head: &[u8]) -> Option<SecretKind> {
        secret_kind(path, head).filter(|_| !self.allows(path))
    }
}

/// Returns what is secret about a file with this beginning, whatever a project allows.
pub fn secret_kind(path: &Path, head: &[u8]) -> Option<SecretKind> {
    let head = &head[..head.len().min(HEAD_BYTES)];
    match name_rule(path) {
        _ if head.is_empty() => None,
        NameRule::Credentials(what) => Some(SecretKind::Credentials(what)),
        NameRule::Config(format) if has_password(format, &String::from_utf8_lossy(head)) => {
            Some(SecretKind::Password)
        }
        NameRule::Config(_) | NameRule::Ordinary => secrets_in(head).next().map(|secret| secret.kind),
    }
}

fn compiled(glob: &str) -> Result<globset::Glob, SecretGlobError> {
    let leaves = |part: Component<'_>| !matches!(part, Component::Normal(_) | Component::CurDir);
    if glob.len() > MAX_GLOB_LEN || glob.is_empty() {
        return Err(SecretGlobError::Length { len: glob.len() });
    }
    if Path::new(glob).components().any(leaves) {
        return Err(SecretGlobError::Outside { glob: glob.to_owned() });
    }
    let glob = glob.strip_prefix("./").unwrap_or(glob);
    GlobBuilder::new(glob).literal_separator(true).build().map_err(SecretGlobError::Malformed)
}
