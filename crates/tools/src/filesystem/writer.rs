//! Gives a file new content as one step among all writers of it.
//!
//! Every tool that changes a file below a root writes it through [`Writer`]: the content is put on the disk first,
//! then the directory is [locked](super::lock), and the name is taken only if it still has what the caller was
//! shown ([`atomic`]).

use std::path::Path;

use cap_std::fs::{Dir, Metadata};

use super::atomic::{ContentDigest, ReplaceError, Replacement, holds};
use super::error::FileError;
use super::lock::{DirectoryLock, LockError, MAX_WAIT};
use super::resolved_path::ResolvedPath;

/// Writes and removes one file.
pub(crate) struct Writer<'a> {
    resolved: &'a ResolvedPath,
}

impl<'a> Writer<'a> {
    pub(crate) fn new(resolved: &'a ResolvedPath) -> Self {
        Self { resolved }
    }

    /// Creates the file, which must not exist, and the directories that it lies in.
    pub(crate) fn create(&self, content: &[u8]) -> Result<(), FileError> {
        let directory = self.resolved.make_directories().map_err(|error| self.system(error))?;
        let replacement =
            Replacement::prepare(&directory, content, None).map_err(|error| self.system(error))?;
        let _lock = self.lock(&directory)?;
        replacement.create(self.resolved.name()).map_err(|error| self.replaced(error))
    }

    /// Replaces the file, which must have the content `old`.
    pub(crate) fn replace(&self, content: &[u8], old: (&[u8], &Metadata)) -> Result<(), FileError> {
        let (expected, metadata) = (ContentDigest::new(old.0), old.1);
        let directory = self.resolved.directory();
        let replacement = Replacement::prepare(directory, content, Some(metadata));
        let replacement = replacement.map_err(|error| self.system(error))?;
        let _lock = self.lock(directory)?;
        replacement.exchange(self.resolved.name(), expected).map_err(|error| self.replaced(error))
    }

    /// Removes the file, which must have the content `old`.
    pub(crate) fn remove(&self, old: &[u8]) -> Result<(), FileError> {
        let directory = self.resolved.directory();
        let _lock = self.lock(directory)?;
        if !holds(directory, self.resolved.name(), ContentDigest::new(old)) {
            return Err(FileError::Changed { path: self.resolved.shown() });
        }
        directory.remove_file(self.resolved.name()).map_err(|error| self.system(error))
    }

    fn lock(&self, directory: &Dir) -> Result<DirectoryLock, FileError> {
        DirectoryLock::acquire(directory).map_err(|error| match error {
            LockError::TimedOut => {
                FileError::Locked { path: self.resolved.shown(), seconds: MAX_WAIT.as_secs() }
            }
            LockError::System(error) => self.system(error),
        })
    }

    fn replaced(&self, error: ReplaceError) -> FileError {
        let path = self.resolved.shown();
        match error {
            ReplaceError::Conflict => FileError::Changed { path },
            ReplaceError::Kept { copy } => {
                let copy = Path::new(&path).with_file_name(copy).to_string_lossy().into_owned();
                FileError::Kept { path, copy }
            }
            ReplaceError::System(error) => self.system(error),
        }
    }

    fn system(&self, error: std::io::Error) -> FileError {
        FileError::system(&self.resolved.shown(), error)
    }
}
