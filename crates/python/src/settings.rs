//! How the Python files of projects are run.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::time::Duration;

use llm_do_core::NoticeSink;

/// How long a Python tool may run that does not say it itself.
const DEFAULT_TIME_LIMIT: Duration = Duration::from_secs(10 * 60);
/// How long the files of a project may take to load.
const DEFAULT_LOAD_LIMIT: Duration = Duration::from_secs(30);

/// How the Python files of projects are run.
#[derive(Debug, Clone)]
pub struct PythonSettings {
    /// The environment of Python code, and where an interpreter is looked for (`PATH`, `VIRTUAL_ENV`). Of two values
    /// of one variable the last counts. By default the environment of this process.
    pub environment: Vec<(OsString, OsString)>,
    /// Where what comes with this program is unpacked, to be used again. Without one, each project that is loaded has
    /// a directory of its own for the time that it is used.
    pub cache: Option<PathBuf>,
    /// How long the files of a project may take to load.
    pub load_limit: Duration,
    /// How long a tool may run that does not say it itself.
    pub time_limit: Duration,
    /// Where notices go that belong to no run: that loading takes its time, what code prints after the last run.
    pub notices: NoticeSink,
}

impl Default for PythonSettings {
    fn default() -> Self {
        Self {
            environment: std::env::vars_os().collect(),
            cache: None,
            load_limit: DEFAULT_LOAD_LIMIT,
            time_limit: DEFAULT_TIME_LIMIT,
            notices: NoticeSink::none(),
        }
    }
}

impl PythonSettings {
    /// Returns a variable of the environment. Of two values the last counts, and an empty one counts as unset.
    pub(crate) fn variable(&self, name: &str) -> Option<&OsStr> {
        let found = self.environment.iter().rev().find(|(other, _)| other == name);
        found.map(|(_, value)| value.as_os_str()).filter(|value| !value.is_empty())
    }
}
