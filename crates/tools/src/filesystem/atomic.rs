//! Writes a file so that it has the old content or the new one, never a mixture.
//!
//! The new content goes into a file of its own beside the old one, reaches the disk, and takes the name by one
//! rename. So a link is replaced and not written through, and a file with several names keeps its content
//! under the others. Extended attributes of the old file are not kept.

use std::ffi::{OsStr, OsString};
use std::io::{self, Write};

use cap_fs_ext::{FollowSymlinks, OpenOptionsFollowExt};
use cap_std::fs::{Dir, File, Metadata, OpenOptions};
use uuid::Uuid;

/// Gives a name in a directory new content. `old` is what is known of the file that has the name now.
pub(crate) fn replace(
    directory: &Dir,
    name: &OsStr,
    content: &[u8],
    old: Option<&Metadata>,
) -> io::Result<()> {
    let mut temporary = Temporary::create(directory, old)?;
    temporary.file.write_all(content)?;
    temporary.open_up()?;
    temporary.file.sync_all()?;
    temporary.rename(name)?;
    sync_directory(directory)
}

/// Waits until the names of a directory are on the disk.
pub(crate) fn sync_directory(directory: &Dir) -> io::Result<()> {
    // The handle itself only names the directory and cannot be synchronised.
    directory.open(".")?.sync_all()
}

/// A file without its final name. It is removed unless it gets that name.
struct Temporary<'a> {
    directory: &'a Dir,
    name: OsString,
    file: File,
    /// The mode that it gets once it is complete.
    mode: u32,
    renamed: bool,
}

impl<'a> Temporary<'a> {
    /// Makes an empty file that only its owner can read.
    fn create(directory: &'a Dir, old: Option<&Metadata>) -> io::Result<Self> {
        let name = OsString::from(format!(".llm-do-{}.tmp", Uuid::new_v4().simple()));
        let mut options = OpenOptions::new();
        options.write(true).create_new(true).follow(FollowSymlinks::No);
        // A new file gets what the process gives to new files. The file is made with that mode to learn it,
        // and closed to others while it is still empty.
        private::create_mode(&mut options, if old.is_some() { 0o600 } else { 0o644 });
        let file = directory.open_with(&name, &options)?;
        let mut temporary = Self { directory, name, file, mode: 0, renamed: false };
        temporary.mode =
            private::mode(&old.map_or_else(|| temporary.file.metadata(), |old| Ok(old.clone()))?);
        private::set_mode(&temporary.file, 0o600)?;
        if let Some(old) = old {
            private::keep_owner(&temporary.file, old);
        }
        Ok(temporary)
    }

    fn open_up(&self) -> io::Result<()> {
        private::set_mode(&self.file, self.mode)
    }

    fn rename(&mut self, name: &OsStr) -> io::Result<()> {
        self.directory.rename(&self.name, self.directory, name)?;
        self.renamed = true;
        Ok(())
    }
}

impl Drop for Temporary<'_> {
    fn drop(&mut self) {
        if !self.renamed {
            // Nothing can be done about a file that cannot be removed; its name says what it is.
            let _ = self.directory.remove_file(&self.name);
        }
    }
}

#[cfg(unix)]
mod private {
    //! Modes and owners.

    use std::io;

    use cap_std::fs::{
        File, Metadata, MetadataExt, OpenOptions, OpenOptionsExt, Permissions, PermissionsExt,
    };
    use rustix::fs::{Gid, Uid, fchown};

    pub(super) fn create_mode(options: &mut OpenOptions, mode: u32) {
        options.mode(mode);
    }

    /// What a file lets whom do. That a program runs as its owner is not handed on to new content.
    pub(super) fn mode(metadata: &Metadata) -> u32 {
        metadata.mode() & 0o777
    }

    pub(super) fn set_mode(file: &File, mode: u32) -> io::Result<()> {
        file.set_permissions(Permissions::from_mode(mode))
    }

    /// Keeps the owner of the old file where the process may give files away; else the file is its own.
    pub(super) fn keep_owner(file: &File, old: &Metadata) {
        let _ = fchown(file, Some(Uid::from_raw(old.uid())), Some(Gid::from_raw(old.gid())));
    }
}

#[cfg(not(unix))]
mod private {
    //! Systems without modes: the directory decides who may read.

    use std::io;

    use cap_std::fs::{File, Metadata, OpenOptions};

    pub(super) fn create_mode(_options: &mut OpenOptions, _mode: u32) {}

    pub(super) fn mode(_metadata: &Metadata) -> u32 {
        0
    }

    pub(super) fn set_mode(_file: &File, _mode: u32) -> io::Result<()> {
        Ok(())
    }

    pub(super) fn keep_owner(_file: &File, _old: &Metadata) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    fn directory(name: &str) -> (std::path::PathBuf, Dir) {
        let path = std::env::temp_dir().join(format!("llm-do-atomic-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(path.join("taken")).unwrap();
        let directory = Dir::open_ambient_dir(&path, cap_std::ambient_authority()).unwrap();
        (path, directory)
    }

    #[cfg(unix)]
    #[test]
    fn nobody_else_can_read_a_file_before_it_is_complete() {
        use cap_std::fs::MetadataExt;
        let (path, directory) = directory("private");
        let mode = |file: &File| file.metadata().unwrap().mode() & 0o777;
        let temporary = Temporary::create(&directory, None).unwrap();
        assert_eq!(mode(&temporary.file), 0o600);
        temporary.open_up().unwrap();
        assert_ne!(mode(&temporary.file) & 0o400, 0);
        let old = directory.open(&temporary.name).unwrap().metadata().unwrap();
        assert_eq!(mode(&Temporary::create(&directory, Some(&old)).unwrap().file), 0o600);
        std::fs::remove_dir_all(path).unwrap();
    }

    #[test]
    fn a_write_that_cannot_take_its_name_leaves_nothing_behind() {
        let (path, directory) = directory("left");
        replace(&directory, "taken".as_ref(), b"new", None).unwrap_err();
        replace(&directory, "free".as_ref(), b"new", None).unwrap();
        let mut names: Vec<_> =
            directory.entries().unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        assert_eq!(names, ["free", "taken"]);
        std::fs::remove_dir_all(path).unwrap();
    }
}
