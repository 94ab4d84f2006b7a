//! The paths that git reads for a repository: its directories, the targets of links in them, the objects that it
//! borrows, and the files that its configuration names.

use std::fs;
use std::path::{Path, PathBuf};

use super::root::Root;

/// The directories of a repository, as git reports them.
#[derive(Debug, Default)]
pub(crate) struct Directories {
    /// Of this working tree, then of all of them, then the working tree itself where there is one.
    all: Vec<String>,
}

impl Directories {
    /// Reads the lines that git prints: the directory of this working tree, that of all working trees, and the working
    /// tree itself.
    pub(crate) fn read<'l>(lines: impl Iterator<Item = &'l str>) -> Self {
        Self { all: lines.map(str::to_owned).collect() }
    }

    fn git_directories(&self) -> impl Iterator<Item = &Path> {
        self.all.iter().take(2).map(Path::new)
    }
}

/// One entry of a configuration, and the file that contains it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ConfigEntry<'c> {
    pub(crate) origin: Option<&'c str>,
    pub(crate) key: &'c str,
    pub(crate) value: &'c str,
}

/// Returns the paths outside the root that a repository reads.
pub(crate) fn outside(
    directories: &Directories,
    configuration: &[ConfigEntry<'_>],
    root: &Root,
) -> Vec<String> {
    let own = directories.all.iter().map(PathBuf::from);
    let linked = directories.git_directories().flat_map(links);
    let borrowed = directories.git_directories().flat_map(|directory| borrowed(&directory.join("objects")));
    let named = configuration.iter().flat_map(|entry| named(entry, directories));
    let reached = own.chain(linked).chain(borrowed).chain(named);
    let mut outside: Vec<String> =
        reached.map(|path| path.display().to_string()).filter(|path| root.is_outside(path)).collect();
    outside.dedup();
    outside
}

/// The links in the directories of a repository. What lies deeper is only read as objects and references.
fn links(directory: &Path) -> Vec<PathBuf> {
    const DIRECTORIES: [&str; 8] =
        ["", "info", "objects", "objects/info", "objects/pack", "refs", "refs/heads", "logs"];
    let entries = |path: &&str| fs::read_dir(directory.join(path)).into_iter().flatten().flatten();
    let all = DIRECTORIES.iter().flat_map(entries);
    all.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_symlink()))
        .map(|entry| entry.path())
        .collect()
}

/// The directories from which objects are borrowed, directly or by those from which they are borrowed.
fn borrowed(objects: &Path) -> Vec<PathBuf> {
    const MAX_ITEMS: usize = 100;
    let mut found = vec![objects.to_path_buf()];
    let mut next = 0;
    while let Some(directory) = found.get(next).filter(|_| found.len() < MAX_ITEMS).cloned() {
        let list = fs::read(directory.join("info/alternates")).unwrap_or_default();
        let list = String::from_utf8_lossy(&list);
        let lines = list.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
        found.extend(lines.map(|line| alternate(&directory, line)));
        next += 1;
    }
    found
}

/// A line in quotes can hide any path in its escapes, so it counts as one that leads out.
fn alternate(objects: &Path, line: &str) -> PathBuf {
    if line.starts_with('"') { Path::new("/").join(line) } else { objects.join(line) }
}

/// The files that an entry of the configuration may name.
fn named(entry: &ConfigEntry<'_>, directories: &Directories) -> Vec<PathBuf> {
    let key = entry.key.to_lowercase();
    let includes = key == "include.path" || (key.starts_with("includeif.") && key.ends_with(".path"));
    let bases = match key.as_str() {
        _ if includes => beside(entry.origin, directories),
        "core.excludesfile" | "diff.orderfile" | "mailmap.file" => {
            directories.all.last().map(PathBuf::from).into_iter().collect()
        }
        _ => Vec::new(),
    };
    // Of a home directory git would be told by the environment, which has none; it lies outside anyway.
    let value = if entry.value.starts_with('~') { "/" } else { entry.value };
    bases.iter().map(|base| base.join(value)).collect()
}

/// The directory of a file of the configuration. git names the file as seen from the working tree, or from the
/// repository's own directory if it is in there.
fn beside(origin: Option<&str>, directories: &Directories) -> Vec<PathBuf> {
    let directory = Path::new(origin.unwrap_or_default()).parent().unwrap_or(Path::new(""));
    let mut all: Vec<PathBuf> = directories.all.iter().map(|base| Path::new(base).join(directory)).collect();
    all.dedup();
    all
}
