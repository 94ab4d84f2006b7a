//! Finds what a path names by walking from handle to handle.
//!
//! Every directory on the way is opened below the one before it, by a single name and never through a link.
//! A link is read and its target walked in its place, from the directory that holds it; a parent step goes
//! back to the handle that was held before. So a path cannot leave the root, whatever other programs rename
//! meanwhile, and the place that is found has a path without links: rules are checked against that one.

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

/// What stands at a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Missing,
    Directory,
    File,
    Link,
    Special(&'static str),
}

impl Kind {
    /// Returns what a file type means here.
    pub(crate) fn of(file_type: FileType) -> Self {
        if file_type.is_dir() {
            Self::Directory
        } else if file_type.is_file() {
            Self::File
        } else if file_type.is_symlink() {
            Self::Link
        } else {
            Self::Special(special_word(file_type))
        }
    }
}

#[cfg(unix)]
fn special_word(file_type: FileType) -> &'static str {
    use cap_fs_ext::FileTypeExt;
    match () {
        () if file_type.is_fifo() => "named pipe",
        () if file_type.is_socket() => "socket",
        () if file_type.is_block_device() || file_type.is_char_device() => "device",
        () => "special file",
    }
}

#[cfg(not(unix))]
fn special_word(_file_type: FileType) -> &'static str {
    "special file"
}

/// What a path names, held by the handles on the way to it.
#[derive(Debug)]
pub(crate) struct Place {
    root: Dir,
    /// The directories below the root, down to the one that holds the name.
    passed: Vec<(OsString, Dir)>,
    /// Directories that do not exist yet, below those.
    missing: Vec<OsString>,
    /// The name in the last directory; none where the place is that directory.
    name: Option<OsString>,
    kind: Kind,
}

impl Place {
    /// Walks a path from a root.
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
            Walk { root, passed: Vec::new(), pending: VecDeque::new(), links: 0, last, asked: &asked };
        walk.prepend(path)?;
        walk.finish()
    }

    /// Returns what stands there.
    pub(crate) fn kind(&self) -> Kind {
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

    /// Returns the last directory that exists: the place itself, or what holds it.
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

    /// Returns whether directories must be made first.
    pub(crate) fn lacks_directories(&self) -> bool {
        !self.missing.is_empty()
    }

    /// Makes the directories that are missing, and returns the one that holds the name.
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

    /// Opens the file, by the path that it really has.
    pub(crate) fn open_to_read(&self) -> Result<OpenFile, FileError> {
        let (file, metadata) = self.open()?;
        Ok(OpenFile { file, size: metadata.len(), path: self.path() })
    }

    /// Opens the file for reading.
    pub(crate) fn open(&self) -> Result<(File, Metadata), FileError> {
        match self.kind {
            Kind::File => open_file(self.directory(), self.name(), &self.shown()),
            Kind::Missing => Err(self.missing_error()),
            Kind::Directory => Err(FileError::Directory { path: self.shown() }),
            Kind::Link => Err(FileError::Link { path: self.shown() }),
            Kind::Special(kind) => Err(FileError::Special { path: self.shown(), kind }),
        }
    }

    /// Fails if nothing is there.
    pub(crate) fn check_exists(&self) -> Result<(), FileError> {
        if matches!(self.kind(), Kind::Missing) { Err(self.missing_error()) } else { Ok(()) }
    }

    /// Says what is missing, with the names that come near.
    pub(crate) fn missing_error(&self) -> FileError {
        let missing = self.missing.first().or(self.name.as_ref()).cloned().unwrap_or_default();
        let before: PathBuf = self.passed.iter().map(|(name, _)| name).collect();
        let near = near_names(self.directory(), &missing.to_string_lossy());
        let whole = |name: String| before.join(name).to_string_lossy().into_owned();
        FileError::Missing { path: self.shown(), near: near.into_iter().map(whole).collect() }
    }
}

/// Opens a regular file by its name in a directory, never through a link and without waiting for the other
/// end of a pipe that came in its place.
pub(crate) fn open_file(directory: &Dir, name: &OsStr, shown: &str) -> Result<(File, Metadata), FileError> {
    let failed = |error| FileError::system(shown, error);
    let file = openat2::open_name(directory, name).map_err(failed)?;
    let metadata = file.metadata().map_err(failed)?;
    match Kind::of(metadata.file_type()) {
        Kind::File => Ok((file, metadata)),
        Kind::Special(kind) => Err(FileError::Special { path: shown.to_owned(), kind }),
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

/// One part of a path.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    Name(OsString),
    Parent,
    /// A slash or dot at the end: what stands before it must be a directory.
    Here,
}

/// A path that is being walked.
struct Walk<'a> {
    root: Dir,
    passed: Vec<(OsString, Dir)>,
    pending: VecDeque<Part>,
    links: u32,
    last: LastLink,
    asked: &'a str,
}

impl Walk<'_> {
    fn finish(mut self) -> Result<Place, FileError> {
        while let Some(part) = self.pending.pop_front() {
            match part {
                Part::Here => {}
                Part::Parent => {
                    self.passed.pop().ok_or_else(|| self.outside())?;
                }
                Part::Name(name) => match self.kind_of(&name)? {
                    Kind::Link if self.last == LastLink::Follow || !self.pending.is_empty() => {
                        self.follow(&name)?;
                    }
                    Kind::Directory => self.enter(name)?,
                    Kind::Missing => return self.end_missing(name),
                    kind if self.pending.is_empty() => return Ok(self.end(Some(name), kind)),
                    _ => return Err(FileError::NotADirectory { path: self.asked.to_owned() }),
                },
            }
        }
        Ok(self.end(None, Kind::Directory))
    }

    fn kind_of(&self, name: &OsStr) -> Result<Kind, FileError> {
        match self.directory().symlink_metadata(name) {
            Ok(metadata) => Ok(Kind::of(metadata.file_type())),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Kind::Missing),
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

    /// Puts the parts of a path before those that are still to be walked.
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

    /// What is still to be walked below a missing name would be made there, if it is all plain names.
    fn end_missing(mut self, name: OsString) -> Result<Place, FileError> {
        let mut names = vec![name];
        for part in std::mem::take(&mut self.pending) {
            match part {
                Part::Name(name) => names.push(name),
                Part::Parent | Part::Here => {
                    return Err(FileError::Missing { path: self.asked.to_owned(), near: Vec::new() });
                }
            }
        }
        if self.passed.len() + names.len() > MAX_DEPTH {
            return Err(FileError::TooLong { path: self.asked.to_owned() });
        }
        let name = names.pop();
        Ok(Place { missing: names, ..self.end(name, Kind::Missing) })
    }

    fn end(self, name: Option<OsString>, kind: Kind) -> Place {
        Place { root: self.root, passed: self.passed, missing: Vec::new(), name, kind }
    }

    fn directory(&self) -> &Dir {
        self.passed.last().map_or(&self.root, |(_, directory)| directory)
    }

    fn outside(&self) -> FileError {
        FileError::Outside { path: self.asked.to_owned() }
    }
}

/// Splits a path; none where it is absolute.
fn parts(path: &Path) -> Option<Vec<Part>> {
    let mut parts = Vec::new();
    for component in path.components() {
        match component {
            Component::Normal(name) => parts.push(Part::Name(name.to_owned())),
            Component::ParentDir => parts.push(Part::Parent),
            Component::CurDir => {}
            Component::RootDir | Component::Prefix(_) => return None,
        }
    }
    if asks_for_directory(path) {
        parts.push(Part::Here);
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
    use super::*;

    fn names(path: &str) -> Option<Vec<Part>> {
        parts(Path::new(path))
    }

    #[test]
    fn a_slash_or_dot_at_the_end_asks_for_a_directory() {
        let a = || Part::Name("a".into());
        assert_eq!(names("./a"), Some(vec![a()]));
        assert_eq!(names("a//"), Some(vec![a(), Part::Here]));
        assert_eq!(names("a/."), Some(vec![a(), Part::Here]));
        assert_eq!(names("a/.."), Some(vec![a(), Part::Parent]));
        assert_eq!(names("..a"), Some(vec![Part::Name("..a".into())]));
    }

    /// A directory for one test, removed by the caller.
    #[cfg(unix)]
    fn directory(name: &str) -> (PathBuf, Dir) {
        let path = std::env::temp_dir().join(format!("llm-do-place-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir(&path).unwrap();
        let directory = Dir::open_ambient_dir(&path, cap_std::ambient_authority()).unwrap();
        (path, directory)
    }

    #[cfg(unix)]
    #[test]
    fn what_took_the_place_of_a_file_is_neither_followed_nor_waited_for() {
        let (path, directory) = directory("open");
        std::fs::write(path.join("file"), "x").unwrap();
        std::os::unix::fs::symlink("file", path.join("link")).unwrap();
        let mode = rustix::fs::Mode::RWXU;
        rustix::fs::mknodat(rustix::fs::CWD, path.join("pipe"), rustix::fs::FileType::Fifo, mode, 0).unwrap();
        assert!(open_file(&directory, "file".as_ref(), "file").is_ok());
        assert!(matches!(open_file(&directory, "link".as_ref(), "l"), Err(FileError::System { .. })));
        let pipe = open_file(&directory, "pipe".as_ref(), "p");
        assert!(matches!(pipe, Err(FileError::Special { kind: "named pipe", .. })), "{pipe:?}");
        std::fs::remove_dir_all(path).unwrap();
    }

    #[cfg(unix)]
    #[test]
    fn a_place_is_named_by_the_path_that_it_really_has() {
        let (path, directory) = directory("real");
        std::fs::create_dir_all(path.join("a/b")).unwrap();
        std::os::unix::fs::symlink("a/b", path.join("link")).unwrap();
        let real = |text: &str| Place::find(&directory, Path::new(text), LastLink::Keep).unwrap().shown();
        assert_eq!(real("link/../b/new/file.txt"), "a/b/new/file.txt");
        assert_eq!(real("link"), "link");
        assert_eq!(real("link/"), "a/b");
        assert_eq!(real("a/../."), ".");
        std::fs::remove_dir_all(path).unwrap();
    }

    #[test]
    fn an_absolute_path_has_no_parts() {
        assert_eq!(names("/a"), None);
    }
}
