//! Reads the files of a project: from the disk, or from a record in their place.

use std::collections::BTreeMap;
use std::io;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use llm_do_core::ProjectBundle;

use crate::diagnostic::{Diagnostic, Diagnostics, shown_path};
use crate::source::SourceFile;

/// No file of a project is larger than this.
const MAX_BYTES: u64 = 4 * 1024 * 1024;

/// The manifest, agent files and prompts of a project as a record has them. They take the place of those on disk. Code is
/// never among them: it is run as it is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RecordedFiles {
    texts: BTreeMap<PathBuf, Arc<str>>,
}

impl RecordedFiles {
    /// The files of a project in this directory. Those whose content the record does not have are read from the disk.
    pub fn new(root: impl AsRef<Path>, bundle: &ProjectBundle) -> Self {
        let texts = bundle.files().filter(|(path, _)| !is_code(Path::new(path)));
        let texts =
            texts.filter_map(|(path, file)| Some((lexical(&root.as_ref().join(path)), file.text.clone()?)));
        Self { texts: texts.collect() }
    }
}

/// Returns whether a file is code, which is run and not only read.
pub(crate) fn is_code(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "py")
}

/// Reads files of a project.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct FileReader<'a> {
    recorded: Option<&'a RecordedFiles>,
}

impl<'a> FileReader<'a> {
    /// Reads from the disk.
    pub(crate) const DISK: Self = Self { recorded: None };

    /// Reads what a record has from there.
    pub(crate) fn new(recorded: Option<&'a RecordedFiles>) -> Self {
        Self { recorded }
    }

    /// Reads a text file, or says why it cannot be used.
    pub(crate) fn source(self, path: &Path, out: &mut Diagnostics) -> Option<SourceFile> {
        match self.recorded_text(path) {
            Some(text) => Some(SourceFile::new(shown_path(path), text.clone())),
            None => read_source(path, out),
        }
    }

    /// Returns whether the record has a file.
    pub(crate) fn is_recorded(self, path: &Path) -> bool {
        self.recorded_text(path).is_some()
    }

    /// Returns whether a file that need not be there belongs to the project. A record says so for good.
    pub(crate) fn exists(self, path: &Path) -> bool {
        if self.recorded.is_some() { self.is_recorded(path) } else { path.exists() }
    }

    /// Returns the path of a file without links; of one that only the record has, as it is written.
    pub(crate) fn real_path(self, path: &Path) -> io::Result<PathBuf> {
        path.canonicalize()
            .or_else(|error| if self.is_recorded(path) { Ok(lexical(path)) } else { Err(error) })
    }

    /// Returns the files of a directory, in no order.
    pub(crate) fn files_in(self, directory: &Path) -> Vec<PathBuf> {
        let Some(recorded) = self.recorded else {
            return std::fs::read_dir(directory)
                .into_iter()
                .flatten()
                .flatten()
                .map(|entry| entry.path())
                .collect();
        };
        let within = lexical(directory);
        let names = recorded.texts.keys().filter(|path| path.parent() == Some(&within));
        names.filter_map(|path| Some(directory.join(path.file_name()?))).collect()
    }

    /// Returns the files below a directory that the record has, relative to it and in order; none without a record.
    pub(crate) fn recorded_below(self, directory: &Path) -> Option<Vec<PathBuf>> {
        let within = lexical(directory);
        let below = self.recorded?.texts.keys().filter_map(|path| path.strip_prefix(&within).ok());
        Some(below.map(Path::to_path_buf).collect())
    }

    fn recorded_text(self, path: &Path) -> Option<&'a Arc<str>> {
        self.recorded?.texts.get(&lexical(path))
    }
}

/// Reads a text file: regular, not too large, UTF-8; a byte order mark is passed over.
pub(crate) fn read_source(path: &Path, out: &mut Diagnostics) -> Option<SourceFile> {
    let shown = shown_path(path);
    let refuse = |message: String| Diagnostic::error(&shown, message);
    let metadata = match std::fs::metadata(path) {
        Ok(metadata) if metadata.is_dir() => {
            out.push(refuse(format!("`{}` is a directory, not a file", shown.display())));
            return None;
        }
        Ok(metadata) => metadata,
        Err(error) => {
            out.push(refuse(format!("`{}` cannot be read: {error}", shown.display())));
            return None;
        }
    };
    if !metadata.is_file() || metadata.len() > MAX_BYTES {
        out.push(refuse(format!("`{}` is not a regular file of at most {MAX_BYTES} bytes", shown.display())));
        return None;
    }
    match std::fs::read(path).map(String::from_utf8) {
        Ok(Ok(text)) => Some(SourceFile::new(shown, text.strip_prefix('\u{feff}').unwrap_or(&text))),
        Ok(Err(_)) => {
            out.push(
                refuse(format!("`{}` is not UTF-8 text", shown.display())).with_hint("save it as UTF-8"),
            );
            None
        }
        Err(error) => {
            out.push(refuse(format!("`{}` cannot be read: {error}", shown.display())));
            None
        }
    }
}

/// An absolute path without `.` and `..`. The file need not exist.
fn lexical(path: &Path) -> PathBuf {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf());
    let mut found = PathBuf::new();
    for part in absolute.components() {
        match part {
            Component::ParentDir => drop(found.pop()),
            part => found.push(part),
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use llm_do_core::BundledFile;

    use super::*;

    #[test]
    fn a_record_has_texts_and_no_code() {
        let mut bundle = ProjectBundle::default();
        bundle.insert("agents/main.agent", BundledFile::new("text"));
        bundle.insert("tools.py", BundledFile::new("code"));
        bundle.insert("binary.agent", BundledFile::new([0xff]));
        let recorded = RecordedFiles::new("/project", &bundle);
        let reader = FileReader::new(Some(&recorded));
        assert!(reader.is_recorded(Path::new("/project/./agents/../agents/main.agent")));
        assert!(!reader.is_recorded(Path::new("/project/tools.py")));
        assert!(!reader.exists(Path::new("/project/binary.agent")));
        assert_eq!(reader.files_in(Path::new("/project/agents")), [Path::new("/project/agents/main.agent")]);
        assert_eq!(reader.files_in(Path::new("/project")), [""; 0].map(PathBuf::from));
        assert_eq!(reader.recorded_below(Path::new("/project")).unwrap(), [Path::new("agents/main.agent")]);
        assert_eq!(FileReader::DISK.recorded_below(Path::new("/project")), None);
    }
}
