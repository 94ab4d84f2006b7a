//! Visits the entries below a directory, from handle to handle and never through a link.
//!
//! Directories are visited in the order of their names, what `.gitignore` leaves out is left out, and so is
//! `.git` itself. A walk ends when its time is over, however large the tree is.

use std::ffi::OsString;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use cap_fs_ext::DirExt;
use cap_std::fs::Dir;
use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};
use llm_do_core::Cancellation;

use super::error::FileError;
use super::resolved_path::{MAX_DEPTH, PathKind, ResolvedPath, open_file};
use super::root::read_up_to;

/// How long one walk may take.
const TIME: Duration = Duration::from_secs(10);
/// How many entries of one directory are looked at.
const MAX_ENTRIES: usize = 100_000;
/// How much of an ignore file is read.
const MAX_IGNORE_BYTES: u64 = 256 * 1024;

/// How long to go on.
pub(crate) struct Patience {
    until: Instant,
    cancellation: Cancellation,
}

impl Patience {
    /// Goes on for a while, or until the call is cancelled.
    pub(crate) fn new(cancellation: Cancellation) -> Self {
        Self { until: Instant::now() + TIME, cancellation }
    }

    /// Returns whether it is time to stop.
    pub(crate) fn is_over(&self) -> bool {
        self.cancellation.is_cancelled() || Instant::now() >= self.until
    }
}

/// One entry of a directory.
pub(crate) struct WalkEntry<'a> {
    /// The directory that holds it.
    pub(crate) directory: &'a Arc<Dir>,
    /// The path from the root.
    pub(crate) path: &'a Path,
    /// Its name.
    pub(crate) name: &'a OsString,
    /// What it is.
    pub(crate) kind: PathKind,
}

/// What a walk left out, other than by request.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LeftOut {
    /// The time was over.
    pub(crate) late: bool,
    /// Directories that were too deep, too large or could not be read.
    pub(crate) directories: u64,
}

impl LeftOut {
    /// Says what was left out, for the model.
    pub(crate) fn note(self) -> Option<String> {
        match (self.late, self.directories) {
            (true, _) => Some("stopped early: this took too long; look in a smaller directory".to_owned()),
            (false, 0) => None,
            (false, count) => Some(format!("{count} directories could not be looked through wholly")),
        }
    }
}

/// Visits what is below a directory, at most so many levels deep, until a visit says to stop.
pub(crate) fn walk(
    resolved: &ResolvedPath,
    depth: usize,
    patience: &Patience,
    visit: &mut dyn FnMut(WalkEntry<'_>) -> ControlFlow<()>,
) -> Result<LeftOut, FileError> {
    if resolved.kind() != PathKind::Directory {
        return Err(not_a_directory(resolved));
    }
    resolved.directory().entries().map_err(|error| FileError::system(&resolved.shown(), error))?;
    let mut ignored = Ignored::default();
    let mut above: Vec<(PathBuf, &Dir)> = resolved.directories().collect();
    above.pop();
    for (path, directory) in above {
        ignored.enter(directory, &path, |_| true);
    }
    let mut walk = DirectoryWalk { patience, visit, ignored, left_out: LeftOut::default() };
    let start =
        resolved.directory().try_clone().map_err(|error| FileError::system(&resolved.shown(), error))?;
    let _ = walk.directory(&Arc::new(start), &resolved.path(), depth.min(MAX_DEPTH));
    Ok(walk.left_out)
}

fn not_a_directory(resolved: &ResolvedPath) -> FileError {
    match resolved.kind() {
        PathKind::Missing => resolved.missing_error(),
        _ => FileError::NotADirectory { path: resolved.shown() },
    }
}

struct DirectoryWalk<'a> {
    patience: &'a Patience,
    visit: &'a mut dyn FnMut(WalkEntry<'_>) -> ControlFlow<()>,
    ignored: Ignored,
    left_out: LeftOut,
}

impl DirectoryWalk<'_> {
    fn directory(&mut self, directory: &Arc<Dir>, path: &Path, depth: usize) -> ControlFlow<()> {
        let names = self.names(directory);
        // What is not there is not looked for: most directories have no rules of their own.
        let has =
            |name: &str| names.binary_search_by(|(other, _)| other.as_os_str().cmp(name.as_ref())).is_ok();
        self.ignored.enter(directory, path, has);
        let flow = names.iter().try_for_each(|(name, kind)| {
            self.entry(&WalkEntry { directory, path: &path.join(name), name, kind: *kind }, depth)
        });
        self.ignored.leave();
        flow
    }

    fn entry(&mut self, entry: &WalkEntry<'_>, depth: usize) -> ControlFlow<()> {
        if self.patience.is_over() {
            self.left_out.late = true;
            return ControlFlow::Break(());
        }
        let is_directory = entry.kind == PathKind::Directory;
        if entry.name == ".git" || self.ignored.covers(entry.path, is_directory) {
            return ControlFlow::Continue(());
        }
        (self.visit)(WalkEntry { ..*entry })?;
        if !is_directory || depth <= 1 {
            self.left_out.directories += u64::from(is_directory && self.is_too_deep(entry.path));
            return ControlFlow::Continue(());
        }
        match entry.directory.open_dir_nofollow(entry.name) {
            Ok(below) => self.directory(&Arc::new(below), entry.path, depth - 1),
            Err(_) => {
                self.left_out.directories += 1;
                ControlFlow::Continue(())
            }
        }
    }

    fn is_too_deep(&self, path: &Path) -> bool {
        path.components().count() >= MAX_DEPTH
    }

    /// Returns the names of a directory, in order.
    fn names(&mut self, directory: &Dir) -> Vec<(OsString, PathKind)> {
        let Ok(entries) = directory.entries() else {
            self.left_out.directories += 1;
            return Vec::new();
        };
        let entry = |entry: cap_std::fs::DirEntry| {
            Some((entry.file_name(), PathKind::from_file_type(entry.file_type().ok()?)))
        };
        let mut names: Vec<_> = entries.take(MAX_ENTRIES).flatten().filter_map(entry).collect();
        self.left_out.directories += u64::from(names.len() == MAX_ENTRIES);
        names.sort_by(|(a, _), (b, _)| a.cmp(b));
        names
    }
}

/// What ignore files leave out, from the root down to the directory that is visited.
#[derive(Default)]
struct Ignored {
    /// The rules of each directory that has some, with its path.
    levels: Vec<Option<(PathBuf, Gitignore)>>,
}

impl Ignored {
    fn enter(&mut self, directory: &Dir, path: &Path, has: impl Fn(&str) -> bool) {
        let rules = (has(".git") || has(".gitignore")).then(|| rules_of(directory));
        let rules = rules.filter(|rules| !rules.is_empty());
        self.levels.push(rules.map(|rules| (path.to_path_buf(), rules)));
    }

    fn leave(&mut self) {
        self.levels.pop();
    }

    /// The nearest file that says something about a path decides.
    fn covers(&self, path: &Path, is_directory: bool) -> bool {
        let says = self.levels.iter().rev().flatten().find_map(|(directory, rules)| {
            match rules.matched(path.strip_prefix(directory).ok()?, is_directory) {
                Match::None => None,
                Match::Ignore(_) => Some(true),
                Match::Whitelist(_) => Some(false),
            }
        });
        says.unwrap_or(false)
    }
}

fn rules_of(directory: &Dir) -> Gitignore {
    let mut builder = GitignoreBuilder::new(".");
    if let Ok(git) = directory.open_dir_nofollow(".git").and_then(|git| git.open_dir_nofollow("info")) {
        add_lines(&mut builder, &git, "exclude");
    }
    add_lines(&mut builder, directory, ".gitignore");
    builder.build().unwrap_or_else(|_| Gitignore::empty())
}

/// Adds the lines of an ignore file that can be read. As in git, a line that is not a pattern is passed over.
fn add_lines(builder: &mut GitignoreBuilder, directory: &Dir, name: &str) {
    let Ok((file, metadata)) = open_file(directory, name.as_ref(), name) else { return };
    let Ok(bytes) = read_up_to(file, MAX_IGNORE_BYTES, metadata.len()) else { return };
    for line in String::from_utf8_lossy(&bytes).trim_start_matches('\u{feff}').lines() {
        let _ = builder.add_line(None, line);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::filesystem::resolved_path::LastLink;
    use tokio_util::sync::CancellationToken;

    /// Walks a directory with two entries and returns how many were visited.
    fn visits(patience: &Patience) -> (u32, LeftOut) {
        let path = llm_do_testing::TestDir::new();
        std::fs::create_dir_all(path.join("a/b")).unwrap();
        let root = Dir::open_ambient_dir(path.path(), cap_std::ambient_authority()).unwrap();
        let resolved = ResolvedPath::find(&root, Path::new("."), LastLink::Follow).unwrap();
        let mut count = 0;
        let left_out = walk(&resolved, usize::MAX, patience, &mut |_| {
            count += 1;
            ControlFlow::Continue(())
        });
        (count, left_out.unwrap())
    }

    #[test]
    fn a_walk_ends_when_its_time_is_over_and_says_so() {
        let cancellation = || Cancellation::new(CancellationToken::new());
        assert_eq!(visits(&Patience::new(cancellation())), (2, LeftOut::default()));
        let over = Patience { until: Instant::now(), cancellation: cancellation() };
        assert_eq!(visits(&over), (0, LeftOut { late: true, directories: 0 }));
    }

    #[test]
    fn a_walk_ends_when_its_call_is_cancelled() {
        let token = CancellationToken::new();
        token.cancel();
        assert_eq!(visits(&Patience::new(Cancellation::new(token))).0, 0);
    }
}
