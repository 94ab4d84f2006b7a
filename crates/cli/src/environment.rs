//! The environment as one value: the process's own, and beneath it the `.env` beside the project.

use std::collections::HashMap;
use std::io::Read;
use std::path::Path;

use crate::problem::Problem;

/// No `.env` is larger.
const LARGEST: u64 = 1024 * 1024;

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
        let refuse = |reason: String| {
            let message = format!("`{}` cannot be read: {reason}", path.display());
            Problem::with_hint(message, "write lines of the form `NAME=value`, with quotes around blanks")
        };
        let text = read(&path).map_err(refuse)?;
        let pairs = dotenvy::from_read_iter(text.as_bytes());
        let file = pairs.collect::<Result<_, _>>().map_err(|error| refuse(place_of(&error, &text)))?;
        Ok(Self { file })
    }

    /// Returns it as providers of models read it: what the project set is marked.
    pub(crate) fn for_models(&self) -> llm_do::Environment {
        llm_do::Environment::of_process().with_project(self.file.clone())
    }

    /// Returns a variable that is set and not empty.
    pub(crate) fn get(&self, name: &str) -> Option<String> {
        let own = std::env::var(name).ok();
        own.or_else(|| self.file.get(name).cloned()).filter(|value| !value.trim().is_empty())
    }
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
