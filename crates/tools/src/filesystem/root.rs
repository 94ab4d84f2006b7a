//! The root of a filesystem toolset: what holds for all of its instances, and one opening of it.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cap_std::ambient_authority;
use cap_std::fs::{Dir, File, Metadata};
use llm_do_core::SecretFile;
use llm_do_secrets::{SecretFiles, SecretKind, secret_kind};

use super::error::FileError;
use super::openat2::{self, OpenFile, SmallFile};
use super::protected::{Guarded, Protected};
use super::resolved_path::{LastLink, ResolvedPath, asks_for_directory};
use super::secret::{self, FoundSecret};
use super::settings::FilesystemSettings;
use crate::toolset_error::ToolsetError;

/// What holds for all instances of one toolset.
#[derive(Debug)]
pub(crate) struct RootConfig {
    /// What the person set.
    pub(crate) settings: FilesystemSettings,
    /// The root as it was given.
    given: PathBuf,
    /// The root without links. Only names are taken from it: every file is reached through a handle.
    real: PathBuf,
    protected: Guarded,
    secret_files: SecretFiles,
}

impl RootConfig {
    /// Looks at the root, which must exist.
    pub(crate) fn new(
        base: &Path,
        settings: FilesystemSettings,
        protected: &Protected,
    ) -> Result<Self, ToolsetError> {
        let real_base = real(base)?;
        let given =
            std::path::absolute(base.join(&settings.root)).map_err(ToolsetError::path(&settings.root))?;
        let real = real(&given)?;
        if !real.is_dir() {
            let message = format!("the root `{}` is not a directory", given.display());
            return Err(ToolsetError::Setting(message));
        }
        let protected = protected.below(&real_base)?.near(&real);
        Ok(Self { settings, given, real, protected, secret_files: SecretFiles::default() })
    }

    /// Sets which files are secret.
    pub(crate) fn with_secret_files(self, secret_files: SecretFiles) -> Self {
        Self { secret_files, ..self }
    }

    /// Returns the file with these bytes if it is secret. The path is relative to the root, and without links.
    pub(crate) fn secret_file(&self, path: &Path, bytes: &[u8]) -> Option<SecretFile> {
        self.found_secret(path, bytes).filter(|found| !found.is_allowed).map(|found| found.file)
    }

    /// Does the same, also for a file that the project allows.
    pub(crate) fn found_secret(&self, path: &Path, bytes: &[u8]) -> Option<FoundSecret> {
        let whole = self.real.join(path);
        let what = secret_kind(&whole, bytes)?;
        Some(FoundSecret {
            file: secret::describe(path, what, bytes),
            is_allowed: self.secret_files.allows(&whole),
        })
    }

    /// Returns what is secret about a file with this beginning, if anything is.
    pub(crate) fn judge_secret(&self, path: &Path, head: &[u8]) -> Option<SecretKind> {
        self.secret_files.judge(&self.real.join(path), head)
    }

    /// Says why a file may only be written after a fresh approval, if that is so.
    pub(crate) fn protection(&self, resolved: &ResolvedPath) -> Option<&'static str> {
        let path = resolved.path();
        // Compared letter by letter: another spelling may be another file.
        if self.settings.allow_run_later.contains(&path) {
            return None;
        }
        self.protected.reason(&self.real.join(path))
    }

    /// Refuses a file in a directory of the program itself to which no tool writes.
    pub(crate) fn check_writable(&self, resolved: &ResolvedPath) -> Result<(), FileError> {
        match self.protected.is_unwritable(&self.real.join(resolved.path())) {
            true => Err(FileError::Private { path: resolved.shown() }),
            false => Ok(()),
        }
    }

    /// Returns whether a path from the root leads into a directory of the program itself in which no tool reads.
    pub(crate) fn is_private(&self, path: &Path) -> bool {
        self.protected.is_unreadable(&self.real.join(path))
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

fn real(path: &Path) -> Result<PathBuf, ToolsetError> {
    path.canonicalize().map_err(ToolsetError::path(path))
}

/// One opening of a root, for the tools of one instance.
#[derive(Debug)]
pub(crate) struct Root {
    pub(crate) root_config: Arc<RootConfig>,
    directory: Dir,
    /// Whether a file that is in memory can be read without waiting for anybody.
    is_local: bool,
}

impl Root {
    /// Opens the root: the only place where a path is used that is not below a handle.
    pub(crate) fn open(root_config: Arc<RootConfig>) -> std::io::Result<Self> {
        let directory = Dir::open_ambient_dir(&root_config.given, ambient_authority())?;
        let is_local = openat2::is_local(&directory);
        Ok(Self { root_config, directory, is_local })
    }

    /// Finds what a path names.
    pub(crate) fn find(&self, text: &str, last: LastLink) -> Result<ResolvedPath, FileError> {
        let resolved = ResolvedPath::find(&self.directory, &self.relative(text)?, last)?;
        self.check_readable(&resolved.path())?;
        Ok(resolved)
    }

    /// Opens a file to be read: in one step where no link is on the way, else from handle to handle.
    pub(crate) fn open_to_read(&self, text: &str) -> Result<OpenFile, FileError> {
        let path = self.relative(text)?;
        let opened = match openat2::open(&self.directory, &path) {
            Some(opened) => opened,
            None => ResolvedPath::find(&self.directory, &path, LastLink::Follow)?.open_to_read()?,
        };
        self.check_readable(&opened.path)?;
        self.check_suffix(&opened.path)?;
        Ok(opened)
    }

    /// Reads a small file where nothing has to be waited for; else it is left to [`Self::open_to_read`].
    pub(crate) fn read_at_once(&self, text: &str) -> Option<SmallFile> {
        let path = self.root_config.relative(text).filter(|_| self.is_local)?;
        let file = openat2::read_at_once(&self.directory, &path, self.root_config.settings.max_read_bytes)?;
        (self.check_readable(&file.path).is_ok() && self.check_suffix(&file.path).is_ok()).then_some(file)
    }

    fn relative(&self, text: &str) -> Result<PathBuf, FileError> {
        self.root_config.relative(text).ok_or_else(|| FileError::Outside { path: text.to_owned() })
    }

    /// Refuses what is in a directory of the program itself in which no tool reads.
    fn check_readable(&self, path: &Path) -> Result<(), FileError> {
        match self.root_config.is_private(path) {
            true => Err(FileError::Private { path: path.to_string_lossy().into_owned() }),
            false => Ok(()),
        }
    }

    /// Refuses a file whose name does not have one of the permitted endings.
    pub(crate) fn check_suffix(&self, path: &Path) -> Result<(), FileError> {
        let settings = &self.root_config.settings;
        if path.file_name().is_none_or(|name| settings.allows(&name.to_string_lossy())) {
            return Ok(());
        }
        let path = path.to_string_lossy().into_owned();
        Err(FileError::Suffix { path, suffixes: settings.suffixes.clone() })
    }

    /// Reads a whole file, or says that it is too large for that.
    pub(crate) fn read_whole(&self, resolved: &ResolvedPath) -> Result<(Vec<u8>, Metadata), FileError> {
        let (file, metadata) = resolved.open()?;
        let limit = self.root_config.settings.max_read_bytes;
        let bytes = read_up_to(file, limit.saturating_add(1), metadata.len())
            .map_err(|error| FileError::system(&resolved.shown(), error))?;
        match bytes.len() as u64 > limit {
            true => Err(FileError::TooLarge { path: resolved.shown(), size: metadata.len(), limit }),
            false => Ok((bytes, metadata)),
        }
    }
}

/// Reads the beginning of a file that should have so many bytes.
pub(crate) fn read_up_to(file: File, limit: u64, expected: u64) -> std::io::Result<Vec<u8>> {
    // One byte more shows whether the file ends here, without growing the buffer.
    let expected = usize::try_from(expected.min(limit)).unwrap_or(0).saturating_add(1);
    let mut bytes = Vec::with_capacity(expected);
    file.take(limit).read_to_end(&mut bytes)?;
    Ok(bytes)
}
