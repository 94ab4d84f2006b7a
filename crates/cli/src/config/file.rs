//! Where the files of the user are, and how they are read and written.
//!
//! A project must not choose them: a relative directory, or one inside the project or the working directory, is
//! ignored. A file that somebody else can change is not read.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use etcetera::BaseStrategy;
use llm_do_trust::make_private;

use crate::text::visible_line;

/// No larger file is read.
const MAX_BYTES: u64 = 1024 * 1024;

/// A directory of the user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum UserDirectory {
    /// What the user sets.
    Config,
    /// What is kept for the user.
    Data,
}

/// Where a directory of the user is.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct FoundDirectory {
    /// The directory, whether it exists or not.
    pub(crate) path: Option<PathBuf>,
    /// Why a variable that names another one is ignored.
    pub(crate) notice: Option<String>,
}

impl UserDirectory {
    /// Finds the directory. One that a variable names counts unless it is relative, or inside the project or the
    /// working directory.
    pub(crate) fn find(self, project: Option<&Path>) -> FoundDirectory {
        let Some(usual) = self.usual() else { return FoundDirectory::default() };
        let usual = usual.join("llm-do");
        let Some(named) = std::env::var_os(self.variable()).filter(|value| !value.is_empty()) else {
            return FoundDirectory { path: Some(usual), notice: None };
        };
        let named = PathBuf::from(named);
        let ignored = |reason: &str| FoundDirectory {
            path: Some(usual.clone()),
            notice: Some(format!("{} is ignored: `{}` {reason}", self.variable(), named.display())),
        };
        if named.is_relative() {
            return ignored("is not an absolute path");
        }
        let own = named.join("llm-do");
        let working = std::env::current_dir().ok();
        if own != usual && [project, working.as_deref()].into_iter().flatten().any(|root| owns(root, &own)) {
            return ignored("is inside the project or the working directory");
        }
        FoundDirectory { path: Some(own), notice: None }
    }

    fn variable(self) -> &'static str {
        match self {
            Self::Config => "XDG_CONFIG_HOME",
            Self::Data => "XDG_DATA_HOME",
        }
    }

    /// The directory of a user who set no variable.
    fn usual(self) -> Option<PathBuf> {
        if cfg!(windows) {
            let base = etcetera::choose_base_strategy().ok()?;
            return Some(match self {
                Self::Config => base.config_dir(),
                Self::Data => base.data_dir(),
            });
        }
        let home = etcetera::home_dir().ok().filter(|home| home.is_absolute())?;
        Some(home.join(match self {
            Self::Config => ".config",
            Self::Data => ".local/share",
        }))
    }
}

/// Returns whether whoever wrote a directory wrote what is in another one. A directory that holds the home directory
/// does not own it.
fn owns(root: &Path, directory: &Path) -> bool {
    let real = |path: &Path| existing(path).unwrap_or_else(|| path.to_path_buf());
    let root = real(root);
    let holds_home = etcetera::home_dir().is_ok_and(|home| real(&home).starts_with(&root));
    real(directory).starts_with(&root) && !holds_home
}

/// Resolves the part of a path that exists, and keeps the rest.
fn existing(path: &Path) -> Option<PathBuf> {
    path.ancestors().find_map(|part| {
        let rest = path.strip_prefix(part).ok()?;
        part.canonicalize().ok().map(|real| real.join(rest))
    })
}

/// Reads a file that only the user or root can change; nothing if there is none.
pub(crate) fn read_private(path: &Path) -> Result<Option<String>, String> {
    let file = match open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(format!("it cannot be read: {error}")),
    };
    let mut bytes = Vec::new();
    file.take(MAX_BYTES + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| format!("it cannot be read: {error}"))?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(format!("it is larger than {MAX_BYTES} bytes"));
    }
    String::from_utf8(bytes).map(Some).map_err(|_| "it is not UTF-8".to_owned())
}

/// Opens a regular file without waiting for whoever writes into a pipe.
#[cfg(unix)]
fn open(path: &Path) -> io::Result<File> {
    use rustix::fs::{Mode, OFlags};
    use std::os::unix::fs::MetadataExt;
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
    let file = File::from(rustix::fs::open(path, flags, Mode::empty())?);
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    let owner = metadata.uid();
    if owner != rustix::process::geteuid().as_raw() && owner != 0 {
        return Err(io::Error::other(format!("it belongs to the user {owner}")));
    }
    // The groups are looked at only if a group may write: some systems give each user a group of one.
    if metadata.mode() & 0o022 != 0 && !llm_do_trust::foreign_files([path], None).is_empty() {
        return Err(io::Error::other(format!(
            "others can write to it; remove the permission with `chmod go-w {}`",
            shown(path)
        )));
    }
    Ok(file)
}

#[cfg(not(unix))]
fn open(path: &Path) -> io::Result<File> {
    if fs::metadata(path)?.is_file() {
        File::open(path)
    } else {
        Err(io::Error::other("it is not a regular file"))
    }
}

/// Replaces a file as a whole: it is the user's alone, in a directory that is the user's alone. A link stays one, and
/// the file that it leads to is replaced.
pub(crate) fn write_private(path: &Path, text: &str) -> io::Result<()> {
    let directory = path.parent().ok_or(io::ErrorKind::InvalidInput)?;
    make_private(directory)?;
    let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf());
    let directory = target.parent().ok_or(io::ErrorKind::InvalidInput)?;
    let mut file = tempfile::NamedTempFile::new_in(directory)?;
    file.write_all(text.as_bytes())?;
    file.as_file().sync_all()?;
    file.persist(&target).map_err(|error| error.error)?;
    File::open(directory)?.sync_all()
}

/// Waits until no other process holds a lock file. It is held until the file is closed.
pub(crate) fn lock_private(path: &Path) -> io::Result<File> {
    make_private(path.parent().ok_or(io::ErrorKind::InvalidInput)?)?;
    let file = File::options().write(true).create(true).truncate(false).open(path)?;
    file.lock()?;
    Ok(file)
}

/// Returns a path as a person would write it: below the home directory with `~`.
pub(crate) fn shown(path: &Path) -> String {
    let home = etcetera::home_dir().ok().and_then(|home| path.strip_prefix(home).ok().map(Path::to_path_buf));
    visible_line(&match home {
        Some(below) => format!("~/{}", below.display()),
        None => path.display().to_string(),
    })
}
