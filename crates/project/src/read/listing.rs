//! Finds the files that a manifest lists: names and globs, inside the project.

use std::collections::HashSet;
use std::path::{Component, Path, PathBuf};

use globset::{GlobBuilder, GlobMatcher};

use crate::file_reader::{FileReader, is_code};
use crate::globs::{MAX_GLOB_LEN, is_glob};

/// How deep folders are searched for what a glob matches.
const MAX_DEPTH: usize = 16;

/// How many files and folders are looked at for globs.
const MAX_ENTRIES: usize = 100_000;

/// How many files beside a missing one are compared with its name.
const MAX_NEIGHBORS: usize = 1_000;

/// How many globs one project may have: each is matched against every file.
const MAX_GLOBS: usize = 64;

/// The files of a project's folder, walked over once, and only where there is a glob.
pub(crate) struct FileListing<'a> {
    root: &'a Path,
    reader: FileReader<'a>,
    /// The files below the root, or none where there are too many to look at.
    files: Option<Option<Vec<PathBuf>>>,
    globs: HashSet<String>,
}

impl<'a> FileListing<'a> {
    pub(crate) fn new(root: &'a Path, reader: FileReader<'a>) -> Self {
        Self { root, reader, files: None, globs: HashSet::new() }
    }

    /// Returns the files that an entry of a list means, or what is wrong with it.
    pub(crate) fn resolve(&mut self, name: &str) -> Result<Vec<PathBuf>, String> {
        if name.trim().is_empty() {
            return Err("an entry is empty".to_owned());
        }
        if is_glob(name) {
            let found = self.matching(name)?;
            return if found.is_empty() { Err(format!("no file matches `{name}`")) } else { Ok(found) };
        }
        self.named(name).map(|path| vec![path])
    }

    /// Returns the existing file of the same ending whose name is most like one that does not exist.
    pub(crate) fn nearest(&self, name: &str) -> Option<String> {
        let missing = Path::new(name);
        if is_glob(name) || self.root.join(missing).exists() || self.named(name).is_ok() {
            return None;
        }
        let directory = missing.parent()?;
        let is_inside = directory.components().all(|part| matches!(part, Component::Normal(_)));
        let beside = std::fs::read_dir(self.root.join(directory)).ok().filter(|_| is_inside)?;
        let names = beside.flatten().take(MAX_NEIGHBORS).map(|entry| PathBuf::from(entry.file_name()));
        let names: Vec<PathBuf> = names.filter(|path| path.extension() == missing.extension()).collect();
        // The ending is the same, so it would make every name alike.
        let stems = names.iter().filter_map(|path| path.file_stem()?.to_str());
        let near = Path::new(llm_do_core::nearest(missing.file_stem()?.to_str()?, stems)?);
        let near = near.with_added_extension(missing.extension().unwrap_or_default());
        Some(directory.join(near).to_str()?.to_owned())
    }

    /// Returns the file of a name, links resolved, unless it lies outside.
    pub(crate) fn named(&self, name: impl AsRef<Path>) -> Result<PathBuf, String> {
        let path = self.root.join(&name);
        if self.reader.is_recorded(&path) {
            return Ok(path);
        }
        let name = name.as_ref().display().to_string();
        let name = name.as_str();
        let escapes = Path::new(name).components().any(|part| part == Component::ParentDir)
            || Path::new(name).is_absolute();
        let real_root = self.root.canonicalize().map_err(|error| error.to_string())?;
        match path.canonicalize() {
            Ok(real) if !real.starts_with(&real_root) => Err(format!("`{name}` lies outside the project")),
            Ok(real) if real.is_dir() => Err(format!("`{name}` is a directory")),
            Ok(_) => Ok(path),
            Err(_) if escapes => Err(format!("`{name}` lies outside the project")),
            Err(_) if path.is_symlink() => {
                Err(format!("`{name}` is a symbolic link that is broken or points outside the project"))
            }
            Err(_) => Err(format!("`{name}` was not found")),
        }
    }

    /// Files below the root that match a glob, in order. Links are not followed out of the project.
    fn matching(&mut self, pattern: &str) -> Result<Vec<PathBuf>, String> {
        self.globs.insert(pattern.to_owned());
        if self.globs.len() > MAX_GLOBS {
            return Err(format!("`{pattern}` exceeds the limit of {MAX_GLOBS} globs in one project"));
        }
        if pattern.len() > MAX_GLOB_LEN {
            return Err(format!("a glob has more than {MAX_GLOB_LEN} bytes"));
        }
        let glob: GlobMatcher = GlobBuilder::new(pattern)
            .literal_separator(true)
            .build()
            .map_err(|error| format!("`{pattern}` is not a glob: {}", error.kind()))?
            .compile_matcher();
        let (root, reader) = (self.root, self.reader);
        let files = self.files.get_or_insert_with(|| all_files(root, reader)).as_ref();
        let files = files.ok_or_else(|| {
            format!("`{pattern}` cannot be matched: the project has more than {MAX_ENTRIES} files")
        })?;
        Ok(files.iter().filter(|path| glob.is_match(path)).map(|path| root.join(path)).collect())
    }
}

/// The files below a folder: those on disk, or those of a record and the code on disk.
fn all_files(root: &Path, reader: FileReader<'_>) -> Option<Vec<PathBuf>> {
    let on_disk = walk(root);
    let Some(recorded) = reader.recorded_below(root) else { return on_disk };
    let code = on_disk?.into_iter().filter(|path| is_code(path));
    let mut files: Vec<PathBuf> = recorded.into_iter().chain(code).collect();
    files.sort();
    Some(files)
}

/// All regular files below a folder, relative to it and in order; none where there are too many.
fn walk(root: &Path) -> Option<Vec<PathBuf>> {
    let mut files = Vec::new();
    let mut folders = vec![(PathBuf::new(), 0)];
    let mut looked_at = 0;
    while let Some((below, depth)) = folders.pop() {
        for entry in std::fs::read_dir(root.join(&below)).into_iter().flatten().flatten() {
            looked_at += 1;
            if looked_at > MAX_ENTRIES {
                return None;
            }
            let path = below.join(entry.file_name());
            match entry.file_type() {
                Ok(kind) if kind.is_dir() && depth < MAX_DEPTH => folders.push((path, depth + 1)),
                Ok(kind) if kind.is_file() => files.push(path),
                _ => {}
            }
        }
    }
    files.sort();
    Some(files)
}
