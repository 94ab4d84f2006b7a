//! Small text files below a root, for toolsets that write files of their own there.
//!
//! Files are found, locked and replaced by the rules of the filesystem toolset: no path or link leads out of the root, and
//! a change of another program is never overwritten.

use std::path::Path;

use cap_std::ambient_authority;
use cap_std::fs::Dir;
use llm_do_core::Failure;
use thiserror::Error;

use super::error::FileError;
use super::resolved_path::{LastLink, PathKind, ResolvedPath};
use super::root::read_up_to;
use super::writer::Writer;

/// How large such a file may be.
const MAX_BYTES: u64 = 4 * 1024 * 1024;

/// Why a file was not read or changed.
#[derive(Debug, Error)]
#[error(transparent)]
pub struct SmallFileError(#[from] FileError);

impl SmallFileError {
    /// Returns whether the file does not have the content that was expected.
    pub fn is_changed(&self) -> bool {
        matches!(self.0, FileError::Changed { .. })
    }

    /// Returns the error as a tool reports it to a model.
    pub fn into_failure(self) -> Failure {
        self.0.into_failure()
    }
}

fn find(root: &Path, path: &Path) -> Result<ResolvedPath, FileError> {
    let shown = path.to_string_lossy();
    let root = Dir::open_ambient_dir(root, ambient_authority());
    ResolvedPath::find(&root.map_err(|error| FileError::system(&shown, error))?, path, LastLink::Keep)
}

/// Reads a text file, or returns `None` if it does not exist.
pub fn read(root: &Path, path: &Path) -> Result<Option<String>, SmallFileError> {
    let resolved = find(root, path)?;
    if resolved.kind() == PathKind::Missing {
        return Ok(None);
    }
    let (file, metadata) = resolved.open()?;
    if metadata.len() > MAX_BYTES {
        let (size, limit) = (metadata.len(), MAX_BYTES);
        return Err(FileError::TooLarge { path: resolved.shown(), size, limit }.into());
    }
    let bytes = read_up_to(file, MAX_BYTES, metadata.len())
        .map_err(|error| FileError::system(&resolved.shown(), error))?;
    String::from_utf8(bytes).map(Some).map_err(|_| FileError::NotText { path: resolved.shown() }.into())
}

/// Replaces the content of a file, and makes its parent directories. The file must have the content `before`, or not exist
/// if that is `None`.
pub fn write(root: &Path, path: &Path, text: &str, before: Option<&str>) -> Result<(), SmallFileError> {
    let resolved = find(root, path)?;
    let writer = Writer::new(&resolved);
    match before {
        None => writer.create(text.as_bytes())?,
        Some(_) if resolved.kind() == PathKind::Missing => {
            return Err(FileError::Changed { path: resolved.shown() }.into());
        }
        Some(before) => writer.replace(text.as_bytes(), (before.as_bytes(), &resolved.open()?.1))?,
    }
    Ok(())
}

/// Removes a file, which must have the content `before`.
pub fn remove(root: &Path, path: &Path, before: &str) -> Result<(), SmallFileError> {
    Ok(Writer::new(&find(root, path)?).remove(before.as_bytes())?)
}
