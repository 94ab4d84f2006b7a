//! Resolves a path below a root, one directory handle at a time.
//!
//! Every directory on the way is opened below the one before it, by a single name and never through a link.
//! A link is read and its target resolved from the directory that contains the link; `..` goes back to the handle of
//! the parent. So a path cannot leave the root, whatever other programs rename at the same time, and the resolved path
//! has no links: rules are checked against it.

use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::path::{Component, Path, PathBuf};

use cap_fs_ext::DirExt;
use cap_std::fs::{Dir, File, FileType, Metadata};
use llm_do_core::nearest;

use super::error::FileError;
use super::openat2::{self, OpenFile};

/// How many links one path may go through, as in the kernel.
const MAX_LINKS: u32 = 40;
/// How deep a path may go: each directory on the way is held open.
pub(crate) const MAX_DEPTH: usize = 128;
/// How many bytes a path may have.
pub(crate) const MAX_LENGTH: usize = 4096;
/// How many names of a directory are compared with one that is missing.
const MAX_COMPARED: usize = 2000;
/// How many names are proposed for one that is missing.
const MAX_NEAR: usize = 3;

/// Whether a link at the end of a path is followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LastLink {
    Follow,
    Keep,
}

/// What kind of file a path names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PathKind {
    Missing,
    Directory,
    File,
    Link,
    Special(&'static str),
}

impl PathKind {
    /// Converts the file type that the system reports.
    pub(crate) fn from_file_type(file_type: FileType) -> Self {
        if file_type.is_dir() {
            Self::Directory
        } else if file_type.is_file() {
            Self::File
        } else if file_type.is_symlink() {
            Self::Link
        } else {
            Self::Special(special_name(file_type))
        }
    }
}

#[cfg(unix)]
fn special_name(file_type: FileType) -> &'static str {
    use cap_fs_ext::FileTypeExt;
    match () {
        () if file_type.is_fifo() => "named pipe",
        () if file_type.is_socket() => "socket",
        () if file_type.is_block_device() || file_type.is_char_device() => "device",
        () => "special file",
    }
}

#[cfg(not(unix))]
fn special_name(_file_type: FileType) -> &'static str {
    "special file"
}

/// A path below a root, without links, held by handles of its directories.
#[derive(Debug)]
pub(crate) struct ResolvedPath {
    root: Dir,
    /// The directories below the root, down to the one that holds the name.
    passed: Vec<(OsString, Dir)>,
    /// Directories that do not exist yet, below those.
    missing: Vec<OsString>,
    /// The name in the last directory, or `None` if the path names that directory.
    name: Option<OsString>,
    kind: PathKind,
}

impl ResolvedPath {
    /// Resolves a path from a root.
    pub(crate) fn find(root: &Dir, path: &Path, last: LastLink) -> Result<Self, FileError> {
        let asked = path.to_string_lossy().into_owned();
        if asked.is_empty() {
            return Err(FileError::Empty);
        }
        if asked.contains('\0') {
            return Err(FileError::Nul);
        }
        if asked.len() > MAX_LENGTH {
            return Err(FileError::TooLong { path: asked.chars().take(80).collect() });
        }
        let root = root.try_clone().map_err(|error| FileError::system(&asked, error))?;
        let mut walk =
            PathWalk { root, passed: Vec::new(), pending: VecDeque::new(), links: 0, last, asked: &asked };
        walk.prepend(path)?;
        walk.finish()
    }

    /// Returns the kind of file that the path names.
    pub(crate) fn kind(&self) -> PathKind {
        self.kind
    }

    /// Returns the path from the root, without links and parent steps.
    pub(crate) fn path(&self) -> PathBuf {
        let passed = self.passed.iter().map(|(name, _)| name);
        passed.chain(&self.missing).chain(&self.name).collect()
    }

    /// Returns the path for a person.
    pub(crate) fn shown(&self) -> String {
        let path = self.path();
        if path.as_os_str().is_empty() { ".".to_owned() } else { path.to_string_lossy().into_owned() }
    }

    /// Returns the name in the directory; empty for the root.
    pub(crate) fn name(&self) -> &OsStr {
        let passed = self.passed.last().map(|(name, _)| name);
        self.name.as_ref().or(passed).map_or(OsStr::new(""), OsString::as_os_str)
    }

    /// Returns the last directory that exists: the one that the path names, or its nearest parent.
    pub(crate) fn directory(&self) -> &Dir {
        self.passed.last().map_or(&self.root, |(_, directory)| directory)
    }

    /// Returns the directories from the root to the last one, each with its path.
    pub(crate) fn directories(&self) -> impl Iterator<Item = (PathBuf, &Dir)> {
        let below = self.passed.iter().scan(PathBuf::new(), |path, (name, directory)| {
            path.push(name);
            Some((path.clone(), directory))
        });
        std::iter::once((PathBuf::new(), &self.root)).chain(below)
    }

    /// Returns whether parent directories must be made first.
    pub(crate) fn lacks_directories(&self) -> bool {
        !self.missing.is_empty()
    }

    /// Makes the missing parent directories, and returns the last one.
    pub(crate) fn make_directories(&self) -> std::io::Result<Dir> {
        let mut directory = self.directory().try_clone()?;
        for name in &self.missing {
            match directory.create_dir(name) {
                Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => return Err(error),
                _ => super::atomic::sync_directory(&directory)?,
            }
            directory = directory.open_dir_nofollow(name)?;
        }
        Ok(directory)
    }

    /// Opens the file, and returns it with its resolved path.
    pub(crate) fn open_to_read(&self) -> Result<OpenFile, FileError> {
        let (file, metadata) = self.open()?;
        Ok(OpenFile { file, size: metadata.len(), path: self.path() })
    }

    /// Opens the file for reading.
    pub(crate) fn open(&self) -> Result<(File, Metadata), FileError> {
        match self.kind {
            PathKind::File => open_file(self.directory(), self.name(), &self.shown()),
            PathKind::Missing => Err(self.missing_error()),
            PathKind::Directory => Err(FileError::Directory { path: self.shown() }),
            PathKind::Link => Err(FileError::Link { path: self.shown() }),
            PathKind::Special(kind) => Err(FileError::Special { path: self.shown(), kind }),
        }
    }

    /// Returns an error if the path names nothing.
    pub(crate) fn check_exists(&self) -> Result<(), FileError> {
        if matches!(self.kind(), PathKind::Missing) { Err(self.missing_error()) } else { Ok(()) }
    }

    /// Returns the error for a missing file, with similar names that exist.
    pub(crate) fn missing_error(&self) -> FileError {
        let missing = self.missing.first().or(self.name.as_ref()).cloned().unwrap_or_default();
        let before: PathBuf = self.passed.iter().map(|(name, _)| name).collect();
        let near = near_names(self.directory(), &missing.to_string_lossy());
        let whole = |name: String| before.join(name).to_string_lossy().into_owned();
        FileError::Missing { path: self.shown(), near: near.into_iter().map(whole).collect() }
    }
}

/// Opens a regular file by its name in a directory, never through a link, and without waiting for the other end if a
/// named pipe has replaced it.
pub(crate) fn open_file(directory: &Dir, name: &OsStr, shown: &str) -> Result<(File, Metadata), FileError> {
    let failed = |error| FileError::system(shown, error);
    let file = openat2::open_name(directory, name).map_err(failed)?;
    let metadata = file.metadata().map_err(failed)?;
    match PathKind::from_file_type(metadata.file_type()) {
        PathKind::File => Ok((file, metadata)),
        PathKind::Special(kind) => Err(FileError::Special { path: shown.to_owned(), kind }),
        _ => Err(FileError::Directory { path: shown.to_owned() }),
    }
}

fn near_names(directory: &Dir, missing: &str) -> Vec<String> {
    let Ok(entries) = directory.entries() else { return Vec::new() };
    let names = entries.take(MAX_COMPARED).flatten().map(|entry| entry.file_name());
    let mut names: Vec<String> = names.filter_map(|name| name.into_string().ok()).collect();
    names.sort();
    let mut near = Vec::new();
    while let Some(name) = nearest(missing, names.iter().map(String::as_str)).map(str::to_owned) {
        names.retain(|other| *other != name);
        near.push(name);
        if near.len() == MAX_NEAR {
            break;
        }
    }
    near
}

/// One component of a path.
#[derive(Debug, Clone, PartialEq, Eq)]
enum PathPart {
    Name(OsString),
    Parent,
    /// A slash or dot at the end: what precedes it must be a directory.
    Here,
}

/// A path that is being resolved.
struct PathWalk<'a> {
    root: Dir,
    passed: Vec<(OsString, Dir)>,
    pending: VecDeque<PathPart>,
    links: u32,
    last: LastLink,
    asked: &'a str,
}

impl PathWalk<'_> {
    fn finish(mut self) -> Result<ResolvedPath, FileError> {
        while let Some(part) = self.pending.pop_front() {
            match part {
                PathPart::Here => {}
                PathPart::Parent => {
                    self.passed.pop().ok_or_else(|| self.outside())?;
                }
                PathPart::Name(name) => match self.kind_of(&name)? {
                    PathKind::Link if self.last == LastLink::Follow || !self.pending.is_empty() => {
                        self.follow(&name)?;
                    }
                    PathKind::Directory => self.enter(name)?,
                    PathKind::Missing => return self.end_missing(name),
                    kind if self.pending.is_empty() => return Ok(self.end(Some(name), kind)),
                    _ => return Err(FileError::NotADirectory { path: self.asked.to_owned() }),
                },
            }
        }
        Ok(self.end(None, PathKind::Directory))
    }

    fn kind_of(&self, name: &OsStr) -> Result<PathKind, FileError> {
        match self.directory().symlink_metadata(name) {
            Ok(metadata) => Ok(PathKind::from_file_type(metadata.file_type())),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(PathKind::Missing),
            Err(error) => Err(FileError::system(self.asked, error)),
        }
    }

    fn follow(&mut self, name: &OsStr) -> Result<(), FileError> {
        self.links += 1;
        if self.links > MAX_LINKS {
            return Err(FileError::Loop { path: self.asked.to_owned() });
        }
        let target = self.directory().read_link_contents(name);
        let target = target.map_err(|error| FileError::system(self.asked, error))?;
        self.prepend(&target)
    }

    /// Puts the components of a path before those that are still to be resolved.
    fn prepend(&mut self, path: &Path) -> Result<(), FileError> {
        for part in parts(path).ok_or_else(|| self.outside())?.into_iter().rev() {
            self.pending.push_front(part);
        }
        Ok(())
    }

    fn enter(&mut self, name: OsString) -> Result<(), FileError> {
        if self.passed.len() == MAX_DEPTH {
            return Err(FileError::TooLong { path: self.asked.to_owned() });
        }
        let directory = self.directory().open_dir_nofollow(&name);
        let directory = directory.map_err(|error| FileError::system(self.asked, error))?;
        self.passed.push((name, directory));
        Ok(())
    }

    /// Ends at a missing name. The components after it must be plain names, as directories could be made from them.
    fn end_missing(mut self, name: OsString) -> Result<ResolvedPath, FileError> {
        let mut names = vec![name];
        for part in std::mem::take(&mut self.pending) {
            match part {
                PathPart::Name(name) => names.push(name),
                PathPart::Parent | PathPart::Here => {
                    return Err(FileError::Missing { path: self.asked.to_owned(), near: Vec::new() });
                }
            }
        }
        if self.passed.len() + names.len() > MAX_DEPTH {
            return Err(FileError::TooLong { path: self.asked.to_owned() });
        }
        let name = names.pop();
        Ok(ResolvedPath { missing: names, ..self.end(name, PathKind::Missing) })
    }

    fn end(self, name: Option<OsString>, kind: PathKind) -> ResolvedPath {
        ResolvedPath { root: self.root, passed: self.passed, missing: Vec::new(), name, kind }
    }

    fn directory(&self) -> &Dir {
        self.passed.last().map_or(&self.root, |(_, directory)| directory)
    }

    fn outside(&self) -> FileError {
        FileError::Outside { path: self.asked.to_owned() }
    }
}

/// Splits a path into its components, or returns `None` if it is absolute.
fn parts(path: &Path) -> Option<Vec<PathPart>> {
    let mut parts = Vec::new();
    for component in path.components() {
        match component {
            Component::Normal(name) => parts.push(PathPart::Name(name.to_owned())),
            Component::ParentDir => parts.push(PathPart::Parent),
            Component::CurDir => {}
            Component::RootDir | Component::Prefix(_) => return None,
        }
    }
    if asks_for_directory(path) {
        parts.push(PathPart::Here);
    }
    Some(parts)
}

/// Returns whether a path ends with a slash or a dot, so that it can only name a directory.
pub(crate) fn asks_for_directory(path: &Path) -> bool {
    let text = path.as_os_str().as_encoded_bytes();
    text.ends_with(b"/") || text.ends_with(b"/.")
}

#[cfg(test)]
mod tests {
    #[cfg(unix)]
    use llm_do_testing::TestDir;

    use super::*;

    fn names(path: &str) -> Option<Vec<PathPart>> {
        parts(Path::new(path))
    }

    #[test]
    fn a_slash_or_dot_at_the_end_asks_for_a_directory() {
        let a = || PathPart::Name("a".into());
        assert_eq!(names("./a"), Some(vec![a()]));
        assert_eq!(names("a//"), Some(vec![a(), PathPart::Here]));
        assert_eq!(names("a/."), Some(vec![a(), PathPart::Here]));
        assert_eq!(names("a/.."), Some(vec![a(), PathPart::Parent]));
        assert_eq!(names("..a"), Some(vec![PathPart::Name("..a".into())]));
    }

    #[cfg(unix)]
    fn directory() -> (TestDir, Dir) {
        let directory = TestDir::new();
        let opened = Dir::open_ambient_dir(directory.path(), cap_std::ambient_authority()).unwrap();
        (directory, opened)
    }

    #[cfg(unix)]
    #[test]
    fn what_replaced_a_file_is_neither_followed_nor_waited_for() {
        let (path, directory) = directory();
        std::fs::write(path.join("file"), "x").unwrap();
        std::os::unix::fs::symlink("file", path.join("link")).unwrap();
        let mode = rustix::fs::Mode::RWXU;
        rustix::fs::mknodat(rustix::fs::CWD, path.join("pipe"), rustix::fs::FileType::Fifo, mode, 0).unwrap();
        assert!(open_file(&directory, "file".as_ref(), "file").is_ok());
        assert!(matches!(open_file(&directory, "link".as_ref(), "l"), Err(FileError::System { .. })));
        let pipe = open_file(&directory, "pipe".as_ref(), "p");
        assert!(matches!(pipe, Err(FileError::Special { kind: "named pipe", .. })), "{pipe:?}");
    }

    #[cfg(unix)]
    #[test]
    fn a_resolved_path_has_no_links_and_no_parent_steps() {
        let (path, directory) = directory();
        std::fs::create_dir_all(path.join("a/b")).unwrap();
        std::os::unix::fs::symlink("a/b", path.join("link")).unwrap();
        let real =
            |text: &str| ResolvedPath::find(&directory, Path::new(text), LastLink::Keep).unwrap().shown();
        assert_eq!(real("link/../b/new/file.txt"), "a/b/new/file.txt");
        assert_eq!(real("link"), "link");
        assert_eq!(real("link/"), "a/b");
        assert_eq!(real("a/../."), ".");
    }

    #[test]
    fn an_absolute_path_has_no_parts() {
        assert_eq!(names("/a"), None);
    }
}
