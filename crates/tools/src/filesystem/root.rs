//! The root of a filesystem toolset: what holds for all of its instances, and one opening of it.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use cap_std::ambient_authority;
use cap_std::fs::{Dir, File, Metadata};

use super::error::FileError;
use super::place::{LastLink, Place, asks_for_directory};
use super::protected::Protected;
use super::settings::FilesystemSettings;

/// What holds for all instances of one toolset.
#[derive(Debug)]
pub(crate) struct Ground {
    /// What the person set.
    pub(crate) settings: FilesystemSettings,
    /// The root as it was given.
    given: PathBuf,
    /// The root without links. Only names are taken from it: every file is reached through a handle.
    real: PathBuf,
    protected: Protected,
    /// Held from the last look at a file to its replacement, so that calls do not undo each other's work.
    pub(crate) writing: Mutex<()>,
}

impl Ground {
    /// Looks at the root, which must exist.
    pub(crate) fn new(
        base: &Path,
        settings: FilesystemSettings,
        protected: &Protected,
    ) -> Result<Self, String> {
        let real_base = real(base)?;
        let given = std::path::absolute(base.join(&settings.root)).map_err(|error| error.to_string())?;
        let real = real(&given)?;
        if !real.is_dir() {
            return Err(format!("the root `{}` is not a directory", given.display()));
        }
        let protected = protected.below(&real_base);
        Ok(Self { settings, given, real, protected, writing: Mutex::new(()) })
    }

    /// Says why a file may only be written after a fresh approval, if that is so.
    pub(crate) fn protection(&self, place: &Place) -> Option<&'static str> {
        self.protected.reason(&self.real.join(place.path()))
    }

    /// An absolute path may be used for what lies below the root. It is only cut here, and judged by the walk.
    fn relative(&self, text: &str) -> Option<PathBuf> {
        let path = Path::new(text);
        if !path.is_absolute() {
            return Some(path.to_path_buf());
        }
        let rest = path.strip_prefix(&self.given).or_else(|_| path.strip_prefix(&self.real)).ok()?;
        let rest = if rest.as_os_str().is_empty() { Path::new(".") } else { rest };
        // Cutting takes away what asks for a directory.
        Some(if asks_for_directory(path) { rest.join("") } else { rest.to_path_buf() })
    }
}

fn real(path: &Path) -> Result<PathBuf, String> {
    path.canonicalize().map_err(|error| format!("`{}`: {error}", path.display()))
}

/// One opening of a root, for the tools of one instance.
#[derive(Debug)]
pub(crate) struct Root {
    pub(crate) ground: Arc<Ground>,
    directory: Dir,
}

impl Root {
    /// Opens the root: the only place where a path is used that is not below a handle.
    pub(crate) fn open(ground: Arc<Ground>) -> std::io::Result<Self> {
        let directory = Dir::open_ambient_dir(&ground.given, ambient_authority())?;
        Ok(Self { ground, directory })
    }

    /// Finds what a path names.
    pub(crate) fn find(&self, text: &str, last: LastLink) -> Result<Place, FileError> {
        let path = self.ground.relative(text).ok_or_else(|| FileError::Outside { path: text.to_owned() })?;
        Place::find(&self.directory, &path, last)
    }

    /// Refuses a file whose name does not have one of the permitted endings.
    pub(crate) fn check_suffix(&self, place: &Place) -> Result<(), FileError> {
        let settings = &self.ground.settings;
        if settings.allows(&place.name().to_string_lossy()) {
            return Ok(());
        }
        Err(FileError::Suffix { path: place.shown(), suffixes: settings.suffixes.clone() })
    }

    /// Reads a whole file, or says that it is too large for that.
    pub(crate) fn read_whole(&self, place: &Place) -> Result<(Vec<u8>, Metadata), FileError> {
        let (file, metadata) = place.open()?;
        let limit = self.ground.settings.max_read_bytes;
        let bytes = read_up_to(file, limit.saturating_add(1))
            .map_err(|error| FileError::system(&place.shown(), error))?;
        match bytes.len() as u64 > limit {
            true => Err(FileError::TooLarge { path: place.shown(), size: metadata.len(), limit }),
            false => Ok((bytes, metadata)),
        }
    }
}

/// Reads the beginning of a file.
pub(crate) fn read_up_to(file: File, limit: u64) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.take(limit).read_to_end(&mut bytes)?;
    Ok(bytes)
}
