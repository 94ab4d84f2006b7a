//! Writes a file so that it has the old content or the new one, never a mixture, and never somebody else's.
//!
//! The new content goes into a file of its own beside the old one, reaches the disk, and takes the name by one
//! rename. So a link is replaced and not written through, and a file with several names keeps its content
//! under the others. Extended attributes of the old file are not kept.
//!
//! The rename says what it expects: a new file replaces nothing, and a file that is replaced is swapped with the
//! new one and looked at again. A program that takes no lock may have saved its own version after the last look;
//! then that version gets its name back, and the caller learns of the conflict. Writers of llm-do hold a
//! [lock](super::lock) as well, so that they wait for each other instead of failing.

use std::ffi::{OsStr, OsString};
use std::io::{self, Read, Write};

use cap_fs_ext::{FollowSymlinks, OpenOptionsFollowExt, OpenOptionsSyncExt};
use cap_std::fs::{Dir, File, Metadata, OpenOptions};
use llm_do_core::Digest;
use uuid::Uuid;

/// The content of a file, told from any other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ContentDigest {
    size: u64,
    digest: Digest,
}

impl ContentDigest {
    pub(crate) fn new(bytes: &[u8]) -> Self {
        Self { size: bytes.len() as u64, digest: Digest::hash(bytes) }
    }

    /// Reads a file that should have so many bytes. One byte more shows that it is longer by now.
    fn read(file: File, size: u64) -> io::Result<Self> {
        let mut bytes = Vec::new();
        file.take(size.saturating_add(1)).read_to_end(&mut bytes)?;
        Ok(Self::new(&bytes))
    }
}

/// Why new content did not take its name.
#[derive(Debug)]
pub(crate) enum ReplaceError {
    /// The name has another content than expected, and keeps it.
    Conflict,
    /// Other programs changed the file several times meanwhile. One version has the name, another is kept in this file.
    Kept {
        copy: String,
    },
    System(io::Error),
}

impl From<io::Error> for ReplaceError {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::AlreadyExists => Self::Conflict,
            _ => Self::System(error),
        }
    }
}

/// Returns whether a name in a directory is a regular file with this content.
pub(crate) fn holds(directory: &Dir, name: &OsStr, content: ContentDigest) -> bool {
    // What another program put there may be a link, or a pipe that nobody writes to.
    let mut options = OpenOptions::new();
    options.read(true).follow(FollowSymlinks::No).nonblock(true);
    let Ok(file) = directory.open_with(name, &options) else { return false };
    let has_size = |metadata: Metadata| metadata.is_file() && metadata.len() == content.size;
    file.metadata().is_ok_and(has_size)
        && ContentDigest::read(file, content.size).is_ok_and(|found| found == content)
}

/// Waits until the names of a directory are on the disk.
pub(crate) fn sync_directory(directory: &Dir) -> io::Result<()> {
    // The handle itself only names the directory and cannot be synchronized.
    directory.open(".")?.sync_all()
}

/// New content on the disk, under a name of its own beside the file that it will replace.
///
/// That file is removed unless it gets the final name.
pub(crate) struct Replacement<'a> {
    directory: &'a Dir,
    name: OsString,
    file: File,
    content: ContentDigest,
    /// Whether the file under `name` is this one, so that it may be removed.
    is_own: bool,
}

impl<'a> Replacement<'a> {
    /// Writes the content. `old` is the file that it will replace: its mode and owner are kept.
    pub(crate) fn prepare(directory: &'a Dir, content: &[u8], old: Option<&Metadata>) -> io::Result<Self> {
        let (mut replacement, mode) = Self::create_empty(directory, old)?;
        replacement.file.write_all(content)?;
        replacement.content = ContentDigest::new(content);
        private::set_mode(&replacement.file, mode)?;
        replacement.file.sync_all()?;
        Ok(replacement)
    }

    /// Makes an empty file that only its owner can read, and returns the mode that it gets once it is complete.
    fn create_empty(directory: &'a Dir, old: Option<&Metadata>) -> io::Result<(Self, u32)> {
        let name = OsString::from(format!(".llm-do-{}.tmp", Uuid::new_v4().simple()));
        let mut options = OpenOptions::new();
        options.write(true).create_new(true).follow(FollowSymlinks::No);
        // A new file gets the mode that the kernel makes of the umask and the directory. The file is created with
        // that mode to learn it, and closed to others while it is still empty.
        private::create_mode(&mut options, if old.is_some() { 0o600 } else { 0o666 });
        let file = directory.open_with(&name, &options)?;
        let replacement = Self { directory, name, file, content: ContentDigest::new(b""), is_own: true };
        let mode = private::mode(&old.map_or_else(|| replacement.file.metadata(), |old| Ok(old.clone()))?);
        private::set_mode(&replacement.file, 0o600)?;
        if let Some(old) = old {
            private::keep_owner(&replacement.file, old);
        }
        Ok((replacement, mode))
    }

    /// Takes a name that no file has.
    pub(crate) fn create(mut self, name: &OsStr) -> Result<(), ReplaceError> {
        self.take_free_name(name)?;
        sync_directory(self.directory).map_err(ReplaceError::System)
    }

    fn take_free_name(&mut self, name: &OsStr) -> Result<(), ReplaceError> {
        match rename::no_replace(self.directory, &self.name, name) {
            Err(error) if rename::is_unsupported(&error) => {}
            renamed => {
                renamed?;
                self.is_own = false;
                return Ok(());
            }
        }
        // A second name is made only where there is none; the first one is removed with this value.
        match self.directory.hard_link(&self.name, self.directory, name) {
            Ok(()) => Ok(()),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Err(ReplaceError::Conflict),
            Err(_) if self.directory.symlink_metadata(name).is_ok() => Err(ReplaceError::Conflict),
            Err(_) => self.rename_over(name),
        }
    }

    /// Takes the name of a file, if that file has the expected content.
    pub(crate) fn exchange(mut self, name: &OsStr, expected: ContentDigest) -> Result<(), ReplaceError> {
        if !holds(self.directory, name, expected) {
            return Err(ReplaceError::Conflict);
        }
        match rename::exchange(self.directory, &self.name, name) {
            Ok(()) => self.check_displaced(name, expected),
            Err(error) if rename::is_unsupported(&error) => {
                self.rename_over(name)?;
                sync_directory(self.directory).map_err(ReplaceError::System)
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Err(ReplaceError::Conflict),
            Err(error) => Err(ReplaceError::System(error)),
        }
    }

    fn rename_over(&mut self, name: &OsStr) -> Result<(), ReplaceError> {
        self.directory.rename(&self.name, self.directory, name).map_err(ReplaceError::System)?;
        self.is_own = false;
        Ok(())
    }

    /// Removes the file that was swapped out, or puts it back if it is not the one that was expected.
    fn check_displaced(mut self, name: &OsStr, expected: ContentDigest) -> Result<(), ReplaceError> {
        self.is_own = false;
        if !holds(self.directory, &self.name, expected) {
            return self.put_back(name);
        }
        let synced = sync_directory(self.directory);
        // A program that had opened the old file before the swap may have written to it since.
        if !holds(self.directory, &self.name, expected) {
            return self.put_back(name);
        }
        self.directory.remove_file(&self.name).map_err(ReplaceError::System)?;
        synced.map_err(ReplaceError::System)
    }

    /// Gives the name back to the version of another program. Nothing is removed but the content of this value.
    fn put_back(mut self, name: &OsStr) -> Result<(), ReplaceError> {
        let swap = || rename::exchange(self.directory, &self.name, name);
        let is_back = swap().is_ok();
        if is_back && self.is_unchanged() {
            self.is_own = true;
            return Err(ReplaceError::Conflict);
        }
        // Somebody wrote a third version while this one had the name: the newest keeps it.
        if is_back {
            let _ = swap();
        }
        Err(ReplaceError::Kept { copy: self.name.to_string_lossy().into_owned() })
    }

    /// Returns whether the file under the temporary name is the one that was written, with the content it had.
    fn is_unchanged(&self) -> bool {
        let found = self.directory.symlink_metadata(&self.name);
        let (Ok(found), Ok(own)) = (found, self.file.metadata()) else { return false };
        private::is_same_file(&found, &own) && holds(self.directory, &self.name, self.content)
    }
}

impl Drop for Replacement<'_> {
    fn drop(&mut self) {
        if self.is_own {
            // Nothing can be done about a file that cannot be removed; its name says what it is.
            let _ = self.directory.remove_file(&self.name);
        }
    }
}

#[cfg(any(target_os = "linux", target_os = "android", target_vendor = "apple"))]
mod rename {
    //! Renames that say what they expect.

    use std::ffi::OsStr;
    use std::io;

    use cap_std::fs::Dir;
    use rustix::fs::{RenameFlags, renameat_with};
    use rustix::io::Errno;

    pub(super) fn no_replace(directory: &Dir, from: &OsStr, to: &OsStr) -> io::Result<()> {
        Ok(renameat_with(directory, from, directory, to, RenameFlags::NOREPLACE)?)
    }

    pub(super) fn exchange(directory: &Dir, from: &OsStr, to: &OsStr) -> io::Result<()> {
        Ok(renameat_with(directory, from, directory, to, RenameFlags::EXCHANGE)?)
    }

    /// Returns whether the kernel or the file system does not know such renames.
    pub(super) fn is_unsupported(error: &io::Error) -> bool {
        let errno = Errno::from_io_error(error);
        [Errno::INVAL, Errno::NOSYS, Errno::NOTSUP, Errno::OPNOTSUPP].map(Some).contains(&errno)
    }
}

#[cfg(not(any(target_os = "linux", target_os = "android", target_vendor = "apple")))]
mod rename {
    //! Systems without such renames.

    use std::ffi::OsStr;
    use std::io;

    use cap_std::fs::Dir;

    pub(super) fn no_replace(_directory: &Dir, _from: &OsStr, _to: &OsStr) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    pub(super) fn exchange(_directory: &Dir, _from: &OsStr, _to: &OsStr) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    pub(super) fn is_unsupported(error: &io::Error) -> bool {
        error.kind() == io::ErrorKind::Unsupported
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

    pub(super) fn is_same_file(one: &Metadata, other: &Metadata) -> bool {
        (one.dev(), one.ino()) == (other.dev(), other.ino())
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

    pub(super) fn is_same_file(_one: &Metadata, _other: &Metadata) -> bool {
        true
    }

    pub(super) fn keep_owner(_file: &File, _old: &Metadata) {}
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use llm_do_testing::TestDir;

    use super::*;

    /// A directory with an empty directory `taken` and a file `file`.
    struct Folder {
        root: TestDir,
        directory: Dir,
    }

    impl Folder {
        fn new() -> Self {
            let root = TestDir::with_files(&[("file", "old")]);
            std::fs::create_dir(root.join("taken")).unwrap();
            let directory = Dir::open_ambient_dir(root.path(), cap_std::ambient_authority()).unwrap();
            Self { root, directory }
        }

        fn prepare(&self, content: &[u8]) -> Replacement<'_> {
            Replacement::prepare(&self.directory, content, None).unwrap()
        }

        fn text(&self, name: &str) -> String {
            self.root.read(name)
        }

        fn names(&self) -> Vec<String> {
            let entries = std::fs::read_dir(self.root.path()).unwrap();
            let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
            let mut names: Vec<String> = names.collect();
            names.sort();
            names
        }
    }

    fn old() -> ContentDigest {
        ContentDigest::new(b"old")
    }

    #[cfg(unix)]
    #[test]
    fn nobody_else_can_read_a_file_before_it_is_complete() {
        use cap_std::fs::MetadataExt;
        let folder = Folder::new();
        let mode = |file: &File| file.metadata().unwrap().mode() & 0o777;
        let (empty, final_mode) = Replacement::create_empty(&folder.directory, None).unwrap();
        assert_eq!(mode(&empty.file), 0o600);
        assert_ne!(final_mode & 0o400, 0);
        let old = folder.directory.metadata("file").unwrap();
        let (empty, final_mode) = Replacement::create_empty(&folder.directory, Some(&old)).unwrap();
        assert_eq!((mode(&empty.file), final_mode), (0o600, old.mode() & 0o777));
    }

    #[test]
    fn a_new_file_replaces_nothing_and_leaves_nothing_behind() {
        let folder = Folder::new();
        for name in ["taken", "file"] {
            let error = folder.prepare(b"new").create(name.as_ref()).unwrap_err();
            assert!(matches!(error, ReplaceError::Conflict), "{error:?}");
        }
        folder.prepare(b"new").create("free".as_ref()).unwrap();
        assert_eq!(folder.names(), ["file", "free", "taken"]);
        assert_eq!((folder.text("file"), folder.text("free")), ("old".into(), "new".into()));
    }

    #[test]
    fn a_file_is_replaced_only_if_it_has_the_expected_content() {
        let folder = Folder::new();
        for (name, content) in [("file", ContentDigest::new(b"odd")), ("taken", old()), ("missing", old())] {
            let error = folder.prepare(b"new").exchange(name.as_ref(), content).unwrap_err();
            assert!(matches!(error, ReplaceError::Conflict), "{name}: {error:?}");
        }
        assert_eq!(folder.text("file"), "old");
        folder.prepare(b"new").exchange("file".as_ref(), old()).unwrap();
        assert_eq!(folder.text("file"), "new");
        assert_eq!(folder.names(), ["file", "taken"]);
    }

    /// Swaps the new content in after another program saved its own version, as if that had happened between the
    /// last look at the file and the swap.
    #[cfg(any(target_os = "linux", target_vendor = "apple"))]
    fn swap_after(folder: &Folder, save: impl FnOnce(&std::path::Path)) -> ReplaceError {
        let replacement = folder.prepare(b"new");
        save(folder.root.path());
        rename::exchange(&folder.directory, &replacement.name, "file".as_ref()).unwrap();
        replacement.check_displaced("file".as_ref(), old()).unwrap_err()
    }

    #[cfg(any(target_os = "linux", target_vendor = "apple"))]
    #[test]
    fn what_another_program_saved_after_the_last_look_is_put_back() {
        let folder = Folder::new();
        let error = swap_after(&folder, |path| {
            std::fs::write(path.join("other"), "theirs").unwrap();
            std::fs::rename(path.join("other"), path.join("file")).unwrap();
        });
        assert!(matches!(error, ReplaceError::Conflict), "{error:?}");
        assert_eq!(folder.text("file"), "theirs");
        let error = swap_after(&folder, |path| std::fs::write(path.join("file"), "in place").unwrap());
        assert!(matches!(error, ReplaceError::Conflict), "{error:?}");
        assert_eq!(folder.text("file"), "in place");
        let error = swap_after(&folder, |path| {
            std::fs::remove_file(path.join("file")).unwrap();
            std::os::unix::fs::symlink("taken", path.join("file")).unwrap();
        });
        assert!(matches!(error, ReplaceError::Conflict), "{error:?}");
        assert_eq!(std::fs::read_link(folder.root.join("file")).unwrap(), PathBuf::from("taken"));
        assert_eq!(folder.names(), ["file", "taken"]);
    }

    #[cfg(any(target_os = "linux", target_vendor = "apple"))]
    #[test]
    fn two_versions_of_other_programs_are_both_kept() {
        let folder = Folder::new();
        let replacement = folder.prepare(b"new");
        std::fs::write(folder.root.join("file"), "first").unwrap();
        rename::exchange(&folder.directory, &replacement.name, "file".as_ref()).unwrap();
        std::fs::write(folder.root.join("file"), "second").unwrap();
        let error = replacement.check_displaced("file".as_ref(), old()).unwrap_err();
        let ReplaceError::Kept { copy } = error else { panic!("{error:?}") };
        assert_eq!((folder.text("file"), folder.text(&copy)), ("second".into(), "first".into()));
    }

    #[test]
    fn a_file_system_without_such_renames_is_written_too() {
        let folder = Folder::new();
        folder.prepare(b"new").rename_over("file".as_ref()).unwrap();
        assert_eq!(folder.text("file"), "new");
        assert_eq!(folder.names(), ["file", "taken"]);
    }
}
