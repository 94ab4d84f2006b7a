//! A list of the files below a directory, for agents that are told about it.

use std::path::{Component, Path, PathBuf};

use llm_do_core::{counted, visible_line};

use crate::format::front_matter::EnvironmentSection;

/// How many files are listed where nothing else is said.
const USUAL: usize = 50;

/// How many files and directories are looked at.
const MAX_ENTRIES: usize = 20_000;

/// How deep directories are looked at.
const MAX_DEPTH: usize = 16;

/// Which files are listed, and how.
pub(super) struct FileMap {
    project: PathBuf,
    below: PathBuf,
    most: usize,
    shows_size: bool,
}

impl FileMap {
    pub(super) fn new(project: &Path, section: &EnvironmentSection) -> Self {
        Self {
            project: project.to_path_buf(),
            below: section.file_map_root.as_deref().unwrap_or(".").into(),
            most: section.file_map_max_files.unwrap_or(USUAL),
            shows_size: section.file_map_show_size.unwrap_or(true),
        }
    }

    /// Checks the directory.
    pub(super) fn check(&self) -> Result<(), String> {
        self.directory().map(drop)
    }

    /// The directory, unless it lies outside the project now.
    fn directory(&self) -> Result<PathBuf, String> {
        let shown = self.below.display();
        let is_plain = |part| matches!(part, Component::Normal(_) | Component::CurDir);
        let real =
            |path: &Path| path.canonicalize().map_err(|error| format!("`file_map_root`: `{shown}`: {error}"));
        if !self.below.components().all(is_plain) {
            return Err(format!("`file_map_root`: `{shown}` lies outside the project"));
        }
        let directory = real(&self.project.join(&self.below))?;
        match directory.starts_with(real(&self.project)?) {
            _ if !directory.is_dir() => Err(format!("`file_map_root`: `{shown}` is not a directory")),
            false => Err(format!("`file_map_root`: `{shown}` lies outside the project")),
            true => Ok(directory),
        }
    }

    /// Lists the files.
    pub(super) fn text(&self) -> String {
        let Ok(directory) = self.directory() else { return "file_map: (the directory is gone)".to_owned() };
        let mut walk = FileWalk { files: Vec::new(), entries: 0 };
        walk.visit(&directory, Path::new(""), 0);
        let mut lines = vec!["file_map:".to_owned()];
        lines.extend(walk.files.iter().take(self.most).map(|file| self.line(file)));
        match walk.files.len().saturating_sub(self.most) {
            _ if walk.entries > MAX_ENTRIES => lines.push("  ... (many more files)".to_owned()),
            0 => {}
            more => lines.push(format!("  ... ({})", counted(more, "more file"))),
        }
        lines.join("\n")
    }

    fn line(&self, (path, size): &(PathBuf, u64)) -> String {
        let path = path.display().to_string();
        let path = visible_line(&path);
        if self.shows_size { format!("  {path} ({})", counted(*size, "byte")) } else { format!("  {path}") }
    }
}

/// Walks over directories by name, so that the same files come out in the same order. Links are not followed.
struct FileWalk {
    files: Vec<(PathBuf, u64)>,
    entries: usize,
}

impl FileWalk {
    fn visit(&mut self, root: &Path, below: &Path, depth: usize) {
        let entries = std::fs::read_dir(root.join(below)).into_iter().flatten().flatten();
        let mut entries: Vec<_> = entries.take(MAX_ENTRIES).collect();
        entries.retain(|entry| !entry.file_name().to_string_lossy().starts_with('.'));
        entries.sort_by_key(std::fs::DirEntry::file_name);
        for entry in entries {
            self.entries += 1;
            if self.entries > MAX_ENTRIES {
                return;
            }
            let path = below.join(entry.file_name());
            match entry.metadata() {
                Ok(metadata) if metadata.is_dir() && depth < MAX_DEPTH => self.visit(root, &path, depth + 1),
                Ok(metadata) if metadata.is_file() => self.files.push((path, metadata.len())),
                _ => {}
            }
        }
    }
}
