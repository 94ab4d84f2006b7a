//! Opens files in one step where no link is on the way, and reads small ones at once where nothing has to wait.
//!
//! The kernel itself keeps such a path below the root: it refuses parent steps out of it and every link. What is
//! refused is left to the walk of [`resolved_path`](super::resolved_path), which follows links that stay inside and says what is
//! wrong otherwise.

use std::ffi::OsStr;
use std::io;
use std::path::{Component, Path, PathBuf};

use cap_std::fs::{Dir, File};

use super::resolved_path::{MAX_DEPTH, MAX_LENGTH, asks_for_directory};

/// How large a file may be that is read at once: about as much as takes no longer than to hand the work over.
const SMALL: u64 = 16 * 1024;

/// A regular file that is open for reading.
pub(crate) struct OpenFile {
    pub(crate) file: File,
    /// How many bytes it had when it was opened.
    pub(crate) size: u64,
    /// The path from the root, without links and parent steps.
    pub(crate) path: PathBuf,
}

/// Opens a regular file below a root by plain names alone; nothing where that cannot be done.
pub(crate) fn open(root: &Dir, path: &Path) -> Option<OpenFile> {
    let path = plain(path)?;
    let (file, size) = system::open_beneath(root, &path)?;
    Some(OpenFile { file, size, path })
}

/// A small file that was read without waiting for anything.
pub(crate) struct SmallFile {
    pub(crate) bytes: Vec<u8>,
    /// The path from the root.
    pub(crate) path: PathBuf,
}

/// Reads a small regular file that the kernel has in memory; nothing where a disk or a server would be waited for.
///
/// The root must lie on a file system of this machine ([`is_local`]).
pub(crate) fn read_at_once(root: &Dir, path: &Path, limit: u64) -> Option<SmallFile> {
    let path = plain(path)?;
    let bytes = system::read_cached(root, &path, limit.min(SMALL))?;
    Some(SmallFile { bytes, path })
}

/// Returns whether a directory lies on a file system of which it is known that opening a file asks nobody else.
pub(crate) fn is_local(directory: &Dir) -> bool {
    system::is_local(directory)
}

/// Opens a name in a directory, never through a link and without waiting for the other end of a pipe.
pub(crate) fn open_name(directory: &Dir, name: &OsStr) -> io::Result<File> {
    system::open_name(directory, name)
}

/// Returns a path that consists of names, within the bounds of every path.
fn plain(path: &Path) -> Option<PathBuf> {
    if path.as_os_str().len() > MAX_LENGTH || asks_for_directory(path) {
        return None;
    }
    let mut names = PathBuf::with_capacity(path.as_os_str().len());
    for (index, part) in path.components().enumerate() {
        match part {
            Component::CurDir => {}
            Component::Normal(name) if index <= MAX_DEPTH => names.push(name),
            _ => return None,
        }
    }
    (!names.as_os_str().is_empty()).then_some(names)
}

#[cfg(target_os = "linux")]
mod system {
    use std::ffi::OsStr;
    use std::io::{self, IoSliceMut};
    use std::path::Path;

    use cap_std::fs::{Dir, File};
    use rustix::fd::OwnedFd;
    use rustix::fs::{FileType, Mode, OFlags, ResolveFlags, fstat, fstatfs, openat, openat2};
    use rustix::io::{ReadWriteFlags, preadv2};

    const READ: OFlags = OFlags::RDONLY.union(OFlags::NONBLOCK).union(OFlags::NOCTTY).union(OFlags::CLOEXEC);
    const STAY: ResolveFlags =
        ResolveFlags::BENEATH.union(ResolveFlags::NO_MAGICLINKS).union(ResolveFlags::NO_SYMLINKS);

    /// What is in memory, and on the file system of the root.
    const CACHED: ResolveFlags = STAY.union(ResolveFlags::CACHED).union(ResolveFlags::NO_XDEV);
    /// The numbers of file systems of this machine: ext, XFS, Btrfs, F2FS, tmpfs.
    const LOCAL: [u32; 5] = [0xEF53, 0x5846_5342, 0x9123_683E, 0xF2F5_2010, 0x0102_1994];

    pub(super) fn open_beneath(root: &Dir, path: &Path) -> Option<(File, u64)> {
        let (file, size) = open_with(root, path, STAY)?;
        Some((File::from_std(file.into()), size))
    }

    fn open_with(root: &Dir, path: &Path, resolve: ResolveFlags) -> Option<(OwnedFd, u64)> {
        let file = openat2(root, path, READ, Mode::empty(), resolve).ok()?;
        let found = fstat(&file).ok()?;
        let is_regular = FileType::from_raw_mode(found.st_mode) == FileType::RegularFile;
        let size = u64::try_from(found.st_size).ok()?;
        is_regular.then_some((file, size))
    }

    pub(super) fn read_cached(root: &Dir, path: &Path, limit: u64) -> Option<Vec<u8>> {
        let (file, size) = open_with(root, path, CACHED)?;
        let size = usize::try_from(size).ok().filter(|_| size <= limit)?;
        // One byte more shows that the file did not grow meanwhile.
        let mut bytes = vec![0; size + 1];
        let count = preadv2(&file, &mut [IoSliceMut::new(&mut bytes)], 0, ReadWriteFlags::NOWAIT).ok()?;
        bytes.truncate(size);
        (count == size).then_some(bytes)
    }

    pub(super) fn is_local(directory: &Dir) -> bool {
        // The number has 32 bits, in a field whose type differs from machine to machine.
        fstatfs(directory).is_ok_and(|found| LOCAL.contains(&(found.f_type as u32)))
    }

    pub(super) fn open_name(directory: &Dir, name: &OsStr) -> io::Result<File> {
        let file = openat(directory, name, READ.union(OFlags::NOFOLLOW), Mode::empty())?;
        Ok(File::from_std(file.into()))
    }
}

#[cfg(not(target_os = "linux"))]
mod system {
    use std::ffi::OsStr;
    use std::io;
    use std::path::Path;

    use cap_fs_ext::{FollowSymlinks, OpenOptionsFollowExt, OpenOptionsSyncExt};
    use cap_std::fs::{Dir, File, OpenOptions};

    pub(super) fn open_beneath(_root: &Dir, _path: &Path) -> Option<(File, u64)> {
        None
    }

    pub(super) fn read_cached(_root: &Dir, _path: &Path, _limit: u64) -> Option<Vec<u8>> {
        None
    }

    pub(super) fn is_local(_directory: &Dir) -> bool {
        false
    }

    pub(super) fn open_name(directory: &Dir, name: &OsStr) -> io::Result<File> {
        let mut options = OpenOptions::new();
        options.read(true).follow(FollowSymlinks::No).nonblock(true);
        directory.open_with(name, &options)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_of_names_is_plain_and_any_other_is_not() {
        let names = |path: &str| plain(Path::new(path));
        assert_eq!(names("./a//b/./c.txt"), Some(PathBuf::from("a/b/c.txt")));
        for path in ["", ".", "..", "a/..", "a/../b", "/a", "a/", "a/."] {
            assert_eq!(names(path), None, "{path}");
        }
        let deep = |names: usize| vec!["d"; names].join("/");
        assert!(names(&deep(MAX_DEPTH + 1)).is_some());
        assert_eq!(names(&deep(MAX_DEPTH + 2)), None);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn only_regular_files_without_a_link_on_the_way_are_opened() {
        let path = llm_do_testing::TestDir::with_files(&[("root/d/f", "text"), ("f", "outside")]);
        std::os::unix::fs::symlink("d", path.join("root/link")).unwrap();
        std::os::unix::fs::symlink("d/f", path.join("root/last")).unwrap();
        let root = Dir::open_ambient_dir(path.join("root"), cap_std::ambient_authority()).unwrap();
        let opened = |text: &str| open(&root, Path::new(text)).map(|found| (found.path, found.size));
        assert_eq!(opened("d/./f"), Some((PathBuf::from("d/f"), 4)));
        let read = |text: &str, limit| read_at_once(&root, Path::new(text), limit).map(|found| found.bytes);
        for text in ["d", "link/f", "last", "../f", "missing"] {
            assert_eq!(opened(text), None, "{text}");
            assert_eq!(read(text, 100), None, "{text}");
        }
        assert_eq!(read("d/f", 3), None);
        // A kernel without such reads answers nothing, and never something else.
        assert!(read("d/f", 4).is_none_or(|bytes| bytes == b"text"));
    }
}
