//! A fresh directory with files.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

/// A fresh directory, which is removed with everything in it when this is dropped.
///
/// No symbolic link is on the way to it, so that paths can be compared.
#[derive(Debug)]
pub struct TestDir(TempDir);

impl TestDir {
    /// Makes an empty directory.
    #[track_caller]
    #[expect(clippy::new_without_default, reason = "it makes something on the disk")]
    pub fn new() -> Self {
        Self::named("test")
    }

    /// Makes an empty directory whose name begins with `llm-do-` and this one, for whoever finds it left
    /// behind by a crash.
    #[track_caller]
    pub fn named(name: &str) -> Self {
        let parent = std::env::temp_dir().canonicalize().expect("a temporary directory");
        // Unlike the defaults: not a hidden name, and other users can enter, as programs of a test do that
        // are run without privileges.
        let permissions = PermissionsExt::from_mode(0o755);
        let prefix = format!("llm-do-{name}-");
        let directory = tempfile::Builder::new().prefix(&prefix).permissions(permissions).tempdir_in(parent);
        Self(directory.expect("a fresh directory"))
    }

    /// Makes a directory with files, given as relative path and content.
    #[track_caller]
    pub fn with_files(files: &[(&str, &str)]) -> Self {
        let directory = Self::new();
        for (path, content) in files {
            directory.write(path, content);
        }
        directory
    }

    /// Returns its absolute path.
    pub fn path(&self) -> &Path {
        self.0.path()
    }

    /// Returns the absolute path of something in it.
    pub fn join(&self, path: impl AsRef<Path>) -> PathBuf {
        self.path().join(path)
    }

    /// Writes a file, and makes the directories above it.
    #[track_caller]
    pub fn write(&self, path: impl AsRef<Path>, content: impl AsRef<[u8]>) {
        let path = self.join(path);
        std::fs::create_dir_all(path.parent().expect("a file in the directory")).expect("directories");
        std::fs::write(path, content).expect("a file");
    }

    /// Returns the text of a file.
    #[track_caller]
    pub fn read(&self, path: impl AsRef<Path>) -> String {
        std::fs::read_to_string(self.join(path)).expect("a file with text")
    }
}
