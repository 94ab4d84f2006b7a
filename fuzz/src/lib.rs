//! What the fuzz targets share: a project folder in which one file changes, and what must hold however it is
//! written.
//!
//! The folder is written and loaded as any other project is, so that a target covers reading, checking and
//! linking. With `TMPDIR` on a file system in memory that costs little.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use llm_do_core::{StatelessToolset, Toolset};
use llm_do_project::{Catalog, Diagnostic, Diagnostics, WantedToolset, load};

/// A folder for the projects of this process.
pub fn folder(target: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("llm-do-fuzz-{target}-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a temporary folder can be made");
    folder
}

/// Writes one file of the project, loads the project, and checks what comes out of it.
pub fn load_with(path: &Path, file: &Path, bytes: &[u8]) {
    std::fs::write(file, bytes).expect("a temporary file can be written");
    match load(path, &Names) {
        Ok(project) => {
            check(&project.notices);
            let _ = project.reach().to_string();
        }
        Err(diagnostics) => {
            assert!(diagnostics.has_errors(), "refused without an error");
            check(&diagnostics);
        }
    }
}

fn check(diagnostics: &Diagnostics) {
    let _ = serde_json::to_string(&diagnostics.0).expect("diagnostics can be written as JSON");
    diagnostics.0.iter().for_each(check_one);
}

fn check_one(diagnostic: &Diagnostic) {
    let shown = diagnostic.to_string();
    assert!(!diagnostic.message.trim().is_empty(), "no message: {diagnostic:?}");
    assert!(!diagnostic.file.as_os_str().is_empty(), "no file: {diagnostic:?}");
    assert_eq!(diagnostic.line.is_some(), diagnostic.column.is_some(), "{diagnostic:?}");
    assert!(diagnostic.line != Some(0) && diagnostic.column != Some(0), "{diagnostic:?}");
    assert!(!shown.chars().any(|c| c.is_control() && c != '\n'), "{shown:?}");
}

/// The names of some toolsets, without their tools.
struct Names;

impl Catalog for Names {
    fn toolsets(&self) -> Vec<&str> {
        vec!["filesystem_project", "shell_readonly"]
    }

    fn toolset(&self, wanted: WantedToolset<'_>) -> Result<Arc<dyn Toolset>, String> {
        match wanted.settings.as_object().and_then(|map| map.keys().find(|key| *key != "rules")) {
            Some(key) => Err(format!("unknown setting `{key}`")),
            None => Ok(Arc::new(StatelessToolset::new(wanted.name, []))),
        }
    }

    fn providers(&self) -> Vec<&str> {
        vec!["test", "anthropic", "openai"]
    }

    fn protocols(&self) -> Vec<&str> {
        vec!["anthropic", "openai"]
    }
}
