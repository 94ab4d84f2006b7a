//! The environment as one value: the process's own, and beneath it the `.env` beside the project.

use std::collections::HashMap;
use std::ffi::OsString;
use std::io::Read;
use std::path::{Path, PathBuf};

use etcetera::BaseStrategy;
use llm_do::Environment;

use crate::problem::Problem;

/// No `.env` is larger.
const LARGEST: u64 = 1024 * 1024;

/// Returns the directory in which this binary keeps what it remembers between runs.
pub(crate) fn state_directory() -> Option<PathBuf> {
    let base = etcetera::choose_base_strategy().ok()?;
    Some(base.state_dir().unwrap_or_else(|| base.data_dir()).join("llm-do"))
}

/// Returns the directory in which this binary keeps what can be made anew.
pub(crate) fn cache_directory() -> Option<PathBuf> {
    Some(etcetera::choose_base_strategy().ok()?.cache_dir().join("llm-do"))
}

/// Returns the variables for the code of a project: those of its `.env`, and over them the process's own.
pub(crate) fn for_code(root: &Path) -> Result<Vec<(OsString, OsString)>, Problem> {
    let file = project_variables(root)?;
    let file = file.into_iter().map(|(name, value)| (name.into(), value.into()));
    Ok(file.chain(std::env::vars_os()).collect())
}

/// Reads the environment of a project: the process's own variables, and those of its `.env` where there is one.
///
/// What this binary itself goes by (`EDITOR`, `PATH`, `NO_COLOR`) is read from the process alone: a project that
/// somebody cloned must not choose programs to run.
pub(crate) fn of_project(root: &Path) -> Result<Environment, Problem> {
    Ok(Environment::of_process().with_project(project_variables(root)?))
}

/// Reads the variables that a project sets in its `.env`, where there is one.
fn project_variables(root: &Path) -> Result<HashMap<String, String>, Problem> {
    let path = root.join(".env");
    if !path.is_file() {
        return Ok(HashMap::new());
    }
    let refuse = |reason: String| {
        let message = format!("`{}` cannot be read: {reason}", path.display());
        Problem::with_hint(message, "write lines of the form `NAME=value`, with quotes around blanks")
    };
    let text = read(&path).map_err(refuse)?;
    let pairs = dotenvy::from_read_iter(text.as_bytes());
    pairs.collect::<Result<_, _>>().map_err(|error| refuse(place_of(&error, &text)))
}

fn read(path: &Path) -> Result<String, String> {
    let file = std::fs::File::open(path).map_err(|error| error.to_string())?;
    let mut bytes = Vec::new();
    file.take(LARGEST + 1).read_to_end(&mut bytes).map_err(|error| error.to_string())?;
    if bytes.len() as u64 > LARGEST {
        return Err(format!("it is larger than {LARGEST} bytes"));
    }
    let text = String::from_utf8(bytes).map_err(|_| "it is not UTF-8".to_owned())?;
    Ok(text.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(text))
}

/// Says in which line it is wrong and about which variable; never a value, which may be a secret.
fn place_of(error: &dotenvy::Error, text: &str) -> String {
    let dotenvy::Error::LineParse(part, _) = error else { return "a line is wrong".to_owned() };
    let found = text.lines().enumerate().find(|(_, line)| line.contains(part.trim_end()));
    let Some((place, line)) = found else { return "a line is wrong".to_owned() };
    let is_name = |name: &&str| name.chars().all(|sign| sign.is_ascii_alphanumeric() || sign == '_');
    match line.split_once('=').map(|(name, _)| name.trim()).filter(is_name) {
        Some(name) => format!("line {} is wrong (`{name}`)", place + 1),
        None => format!("line {} is wrong", place + 1),
    }
}
