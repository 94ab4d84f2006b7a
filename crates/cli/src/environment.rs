//! The environment as one value: the process's own, and beneath it the `.env` beside the project.

use std::collections::HashMap;
use std::path::Path;

use crate::problem::Problem;

/// Variables that a project may set in its `.env`. The process's own variables win.
///
/// What this binary itself goes by (`EDITOR`, `PATH`, `NO_COLOR`) is read from the process alone: a project that
/// somebody cloned must not choose programs to run.
#[derive(Debug, Default)]
pub(crate) struct Environment {
    file: HashMap<String, String>,
}

impl Environment {
    /// Reads the `.env` of a project, where there is one.
    pub(crate) fn of_project(root: &Path) -> Result<Self, Problem> {
        let path = root.join(".env");
        if !path.is_file() {
            return Ok(Self::default());
        }
        let refuse = |error: dotenvy::Error| {
            let message = format!("`{}` cannot be read: {error}", path.display());
            Problem::with_hint(message, "write lines of the form `NAME=value`")
        };
        let pairs = dotenvy::from_path_iter(&path).map_err(refuse)?;
        let file = pairs.collect::<Result<_, _>>().map_err(refuse)?;
        Ok(Self { file })
    }

    /// Returns a variable that is set and not empty.
    pub(crate) fn get(&self, name: &str) -> Option<String> {
        let own = std::env::var(name).ok();
        own.or_else(|| self.file.get(name).cloned()).filter(|value| !value.trim().is_empty())
    }
}
