//! Where a repository reads from: its directories, what they link to, the objects that it borrows, and the
//! files that its configuration names.

use std::fs;
use std::path::{Path, PathBuf};

use super::root::Root;

/// Where git says that a repository lies.
#[derive(Debug, Default)]
pub(crate) struct Directories {
    /// Of this working tree, then of all of them, then the working tree itself where there is one.
    all: Vec<String>,
}

impl Directories {
    /// Takes what git says: the directory of this working tree, that of all, and the working tree.
    pub(crate) fn read<'l>(lines: impl Iterator<Item = &'l str>) -> Self {
        Self { all: lines.map(str::to_owned).collect() }
    }

    fn of_git(&self) -> impl Iterator<Item = &Path> {
        self.all.iter().take(2).map(Path::new)
    }
}

/// Returns the paths outside the root that a repository reads.
pub(crate) fn outside(directories: &Directories, configuration: &[(&str, &str)], root: &Root) -> Vec<String> {
    let own = directories.all.iter().map(PathBuf::from);
    let linked = directories.of_git().flat_map(links);
    let borrowed = directories.of_git().flat_map(|directory| borrowed(&directory.join("objects")));
    let named = configuration.iter().filter_map(|(key, value)| named(key, value, directories));
    let reached = own.chain(linked).chain(borrowed).chain(named);
    let mut outside: Vec<String> =
        reached.map(|path| path.display().to_string()).filter(|path| root.is_outside(path)).collect();
    outside.dedup();
    outside
}

/// The links in the directories of a repository. What lies deeper is only read as objects and references.
fn links(directory: &Path) -> Vec<PathBuf> {
    const PLACES: [&str; 8] =
        ["", "info", "objects", "objects/info", "objects/pack", "refs", "refs/heads", "logs"];
    let entries = |place: &&str| fs::read_dir(directory.join(place)).into_iter().flatten().flatten();
    let all = PLACES.iter().flat_map(entries);
    all.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_symlink()))
        .map(|entry| entry.path())
        .collect()
}

/// The directories from which objects are borrowed, directly or by those from which they are borrowed.
fn borrowed(objects: &Path) -> Vec<PathBuf> {
    const MOST: usize = 100;
    let mut found = vec![objects.to_path_buf()];
    let mut next = 0;
    while let Some(directory) = found.get(next).filter(|_| found.len() < MOST).cloned() {
        let list = fs::read_to_string(directory.join("info/alternates")).unwrap_or_default();
        let lines = list.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
        found.extend(lines.map(|line| directory.join(line.trim_matches('"'))));
        next += 1;
    }
    found
}

/// The file that an entry of the configuration names.
fn named(key: &str, value: &str, directories: &Directories) -> Option<PathBuf> {
    let base = match key.to_lowercase().as_str() {
        // Beside the file that includes it; what that one includes again is listed too.
        "include.path" => directories.all.first(),
        key if key.starts_with("includeif.") && key.ends_with(".path") => directories.all.first(),
        "core.excludesfile" | "diff.orderfile" | "mailmap.file" => directories.all.last(),
        _ => None,
    }?;
    // Of a home directory git would be told by the environment, which has none; it lies outside anyway.
    let value = if value.starts_with('~') { "/" } else { value };
    Some(Path::new(base).join(value))
}
