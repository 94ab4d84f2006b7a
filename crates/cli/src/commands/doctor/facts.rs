//! What is set up on this machine: files of the user, trust, Python. Nothing is started, and nobody is asked.

use std::path::{Path, PathBuf};

use llm_do::project::{CodeRunner, LoadedProject, StandardCatalog};
use llm_do::record::StoreError;
use llm_do::tools::PythonSettings;
use llm_do_core::counted;
use llm_do_record::{Reader, RunFilter, damaged_files};
use llm_do_trust::Power;
use serde_json::{Value, json};

use crate::arguments::RecordArguments;
use crate::config::{self, ConfigError, UserConfig, shown};
use crate::credentials::Credentials;
use crate::environment::state_directory;
use crate::location::ProjectLocation;
use crate::record::RecordTarget;
use crate::text::visible_line;
use crate::trust;

/// Something that was looked at.
pub(super) struct Fact {
    pub(super) state: FactState,
    kind: &'static str,
    text: String,
}

/// What came of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FactState {
    /// As it should be.
    Ok,
    /// Not there, which is not a failure.
    None,
    /// Wrong.
    Fail,
}

impl FactState {
    /// The word at the beginning of a line.
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::None => "none",
            Self::Fail => "fail",
        }
    }
}

impl Fact {
    fn new(state: FactState, kind: &'static str, text: impl Into<String>) -> Self {
        Self { state, kind, text: text.into() }
    }

    pub(super) fn line(&self) -> String {
        format!("{:4}  {:8}  {}", self.state.as_str(), self.kind, self.text)
    }

    pub(super) fn value(&self) -> Value {
        json!({"kind": self.kind, "state": self.state.as_str(), "result": self.text})
    }
}

/// Looks at everything. A project is missing if there is none at its location that can be loaded.
pub(super) fn facts(
    config: &UserConfig,
    config_error: Option<&ConfigError>,
    location: Option<&ProjectLocation>,
    project: Option<&LoadedProject>,
) -> Vec<Fact> {
    let root = location.map(ProjectLocation::root);
    let mut facts = vec![configuration(config, config_error), keys(root), state(), record(), python(project)];
    facts.extend(location.map(|location| project_fact(project, &location.path)));
    facts.extend(trust_variable());
    facts
}

fn configuration(config: &UserConfig, error: Option<&ConfigError>) -> Fact {
    if let Some(error) = error {
        return Fact::new(FactState::Fail, "config", format!("{}; the defaults are used", error.line()));
    }
    let path = config.shown_path();
    let count = config::leaves(&config.text).len() as u64;
    match config.path.as_ref().is_some_and(|path| path.exists()) {
        true => Fact::new(FactState::Ok, "config", format!("{path} ({})", counted(count, "setting"))),
        false => Fact::new(FactState::None, "config", format!("{path}; `llm-do config edit` makes it")),
    }
}

fn keys(root: Option<&Path>) -> Fact {
    let Some(store) = Credentials::for_user(root) else {
        return Fact::new(FactState::None, "keys", "no stored keys here");
    };
    match store.keys() {
        Err(reason) => Fact::new(FactState::Fail, "keys", visible_line(&reason)),
        Ok(keys) if keys.is_empty() => {
            Fact::new(FactState::None, "keys", "no key is stored; `llm-do auth login PROVIDER` stores one")
        }
        Ok(keys) => {
            let names: Vec<&str> = keys.keys().map(String::as_str).collect();
            let text = format!("{} ({})", store.shown_path(), visible_line(&names.join(", ")));
            Fact::new(FactState::Ok, "keys", text)
        }
    }
}

/// The directory of what llm-do remembers, such as trusted projects.
fn state() -> Fact {
    let Some(directory) = state_directory() else {
        return Fact::new(
            FactState::Fail,
            "state",
            "no directory for it, so nothing is remembered; set HOME",
        );
    };
    let text = shown(&directory);
    // The first part that exists must be a directory that can be written to.
    let existing =
        directory.ancestors().find(|part| part.exists()).map(Path::to_path_buf).unwrap_or_default();
    match (directory.is_dir(), is_writable(&existing)) {
        (true, true) => Fact::new(FactState::Ok, "state", text),
        (false, true) => {
            Fact::new(FactState::None, "state", format!("{text}; made when something is remembered"))
        }
        (_, false) => Fact::new(FactState::Fail, "state", format!("{text} cannot be written to")),
    }
}

/// The record of runs, which is read as a whole.
fn record() -> Fact {
    let target = RecordTarget::new(&RecordArguments::default());
    let Some(path) = target.path() else {
        return Fact::new(FactState::None, "record", "runs are not recorded: see LLM_DO_RECORD and HOME");
    };
    let name = shown(path);
    let damaged = match damaged_files(path).len() as u64 {
        0 => String::new(),
        count => format!("; {} beside it, see `llm-do runs repair --help`", counted(count, "damaged file")),
    };
    match checked(path) {
        Ok(Some(runs)) => {
            Fact::new(FactState::Ok, "record", format!("{name} ({}){damaged}", counted(runs, "run")))
        }
        Ok(None) => Fact::new(FactState::None, "record", format!("{name}; made with the first run{damaged}")),
        Err(problem) => {
            Fact::new(FactState::Fail, "record", format!("{name}: {}{damaged}", visible_line(&problem)))
        }
    }
}

/// Returns how many runs a record has, or what is wrong with it.
fn checked(path: &Path) -> Result<Option<u64>, String> {
    let failed = |error: StoreError| match error {
        StoreError::Corrupt(problem) => format!("{problem}; the next run sets it aside and begins a new one"),
        error => error.to_string(),
    };
    let Some(reader) = Reader::open(path).map_err(failed)? else { return Ok(None) };
    if let Some(problem) = reader.problem().map_err(failed)? {
        return Err(failed(StoreError::Corrupt(problem)));
    }
    let runs = reader.runs(&RunFilter::default()).map_err(failed)?;
    Ok(Some(runs.len() as u64))
}

#[cfg(unix)]
fn is_writable(directory: &Path) -> bool {
    use rustix::fs::{Access, access};
    directory.is_dir() && access(directory, Access::WRITE_OK | Access::EXEC_OK).is_ok()
}

#[cfg(not(unix))]
fn is_writable(directory: &Path) -> bool {
    directory.is_dir()
}

/// The interpreter of the project, or the one that a project here would get.
fn python(project: Option<&LoadedProject>) -> Fact {
    let of_project =
        project.into_iter().flat_map(|project| project.powers.to_vec()).find_map(|power| match power {
            Power::Code { interpreter } => Some(interpreter),
            _ => None,
        });
    let root = project.map_or_else(PathBuf::new, |project| project.root.clone());
    let interpreter = of_project.unwrap_or_else(|| {
        let environment = std::env::vars_os().collect();
        let settings = PythonSettings { environment, ..PythonSettings::default() };
        let directory = std::env::current_dir().unwrap_or_else(|_| ".".into());
        StandardCatalog::new(directory).python(settings).interpreter(&root, None)
    });
    let shown = visible_line(&interpreter);
    match root.join(&interpreter).is_file() {
        true => Fact::new(FactState::Ok, "python", shown),
        false => Fact::new(
            FactState::None,
            "python",
            format!("{shown} was not found; only projects with Python files need it"),
        ),
    }
}

fn project_fact(project: Option<&LoadedProject>, path: &Path) -> Fact {
    let shown = visible_line(&path.display().to_string());
    let Some(project) = project else {
        let text = format!("{shown}: it cannot be loaded; `llm-do check {shown}` says why");
        return Fact::new(FactState::Fail, "project", text);
    };
    let count = counted(project.powers.len() as u64, "power");
    if project.powers.is_empty() {
        return Fact::new(
            FactState::Ok,
            "project",
            format!("{shown}: no powers, so there is nothing to trust"),
        );
    }
    match trust::is_trusted(project) {
        true => Fact::new(FactState::Ok, "project", format!("{shown}: trusted, {count}")),
        false => {
            let text = format!("{shown}: not trusted, {count}; `llm-do trust {shown}` shows them");
            Fact::new(FactState::None, "project", text)
        }
    }
}

/// A variable that trusts projects is easily forgotten.
fn trust_variable() -> Option<Fact> {
    let value = std::env::var("LLM_DO_TRUST").ok().filter(|value| !value.trim().is_empty())?;
    let text = format!("LLM_DO_TRUST is `{}`: what it covers runs without a question", visible_line(&value));
    Some(Fact::new(FactState::Ok, "trust", text))
}
