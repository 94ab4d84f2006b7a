//! Gives a file new content as one step among all writers of it.
//!
//! Every tool that changes a file below a root writes it through [`Writer`]: the content is put on the disk first,
//! then the directory is [locked](super::lock), and the name is taken only if it still has what the caller was
//! shown ([`atomic`]).

use std::path::Path;

use cap_std::fs::{Dir, Metadata};

use super::atomic::{Content, ReplaceError, Replacement, holds};
use super::error::FileError;
use super::lock::{DirectoryLock, LockError, MAX_WAIT};
use super::place::Place;

/// Writes and removes one file.
pub(crate) struct Writer<'a> {
    place: &'a Place,
}

impl<'a> Writer<'a> {
    pub(crate) fn new(place: &'a Place) -> Self {
        Self { place }
    }

    /// Creates the file, which must not exist, and the directories that it lies in.
    pub(crate) fn create(&self, content: &[u8]) -> Result<(), FileError> {
        let directory = self.place.make_directories().map_err(|error| self.system(error))?;
        let replacement =
            Replacement::prepare(&directory, content, None).map_err(|error| self.system(error))?;
        let _lock = self.lock(&directory)?;
        replacement.create(self.place.name()).map_err(|error| self.replaced(error))
    }

    /// Replaces the file, which must have the content `old`.
    pub(crate) fn replace(&self, content: &[u8], old: (&[u8], &Metadata)) -> Result<(), FileError> {
        let (expected, metadata) = (Content::new(old.0), old.1);
        let directory = self.place.directory();
        let replacement = Replacement::prepare(directory, content, Some(metadata));
        let replacement = replacement.map_err(|error| self.system(error))?;
        let _lock = self.lock(directory)?;
        replacement.exchange(self.place.name(), expected).map_err(|error| self.replaced(error))
    }

    /// Removes the file, which must have the content `old`.
    pub(crate) fn remove(&self, old: &[u8]) -> Result<(), FileError> {
        let directory = self.place.directory();
        let _lock = self.lock(directory)?;
        if !holds(directory, self.place.name(), Content::new(old)) {
            return Err(FileError::Changed { path: self.place.shown() });
        }
        directory.remove_file(self.place.name()).map_err(|error| self.system(error))
    }

    fn lock(&self, directory: &Dir) -> Result<DirectoryLock, FileError> {
        DirectoryLock::acquire(directory).map_err(|error| match error {
            LockError::TimedOut => {
                FileError::Locked { path: self.place.shown(), seconds: MAX_WAIT.as_secs() }
            }
            LockError::System(error) => self.system(error),
        })
    }

    fn replaced(&self, error: ReplaceError) -> FileError {
        let path = self.place.shown();
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
        FileError::system(&self.place.shown(), error)
    }
}
