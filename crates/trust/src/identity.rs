//! Which directory it is: its canonical path, and what a directory of the same name made later does not have.

use std::io;
use std::path::{Path, PathBuf};

use jiff::Timestamp;

/// The identity of a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DirectoryIdentity {
    /// The canonical path.
    pub path: PathBuf,
    /// The inode. The device number is left out: it changes over reboots.
    pub inode: Option<u64>,
    /// When the directory was made, if the file system knows it.
    pub born: Option<Timestamp>,
}

impl DirectoryIdentity {
    /// Looks at a directory. Links are followed: a link is what it points to.
    pub fn read(directory: &Path) -> io::Result<Self> {
        let path = directory.canonicalize()?;
        let metadata = path.metadata()?;
        let born = metadata.created().ok().and_then(|born| Timestamp::try_from(born).ok());
        Ok(Self { inode: inode(&metadata), born, path })
    }
}

#[cfg(unix)]
fn inode(metadata: &std::fs::Metadata) -> Option<u64> {
    Some(std::os::unix::fs::MetadataExt::ino(metadata))
}

#[cfg(not(unix))]
fn inode(_: &std::fs::Metadata) -> Option<u64> {
    None
}

/// Returns why a directory is too wide to trust everything below it: the root, the home directory, a directory for
/// temporary files, or one that others can write to.
pub fn is_too_wide(directory: &Path, home: Option<&Path>) -> Option<&'static str> {
    let real = directory.canonicalize().unwrap_or_else(|_| directory.to_path_buf());
    let is_home = home.is_some_and(|home| home.starts_with(&real));
    let temporary = [Path::new("/tmp"), Path::new("/var/tmp"), Path::new("/dev/shm")];
    let is_temporary = temporary.iter().any(|other| real.starts_with(other))
        || std::env::temp_dir().canonicalize().is_ok_and(|other| real.starts_with(other));
    if real.parent().is_none() {
        Some("it is the root of the file system")
    } else if is_home {
        Some("it contains your home directory")
    } else if is_temporary {
        Some("it is in a directory for temporary files")
    } else if crate::owner::is_writable_by_others(&real) {
        Some("others can write to it")
    } else {
        None
    }
}
