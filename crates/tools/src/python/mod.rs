//! Runs the Python files of a project, in one process of their own.
//!
//! The process speaks with this program in lines of JSON ([`wire`]) through a channel that its code does not see. What
//! comes with this program is unpacked for it ([`package`]) and started with the project's interpreter
//! ([`interpreter`]). The process lives as long as the project ([`host`], [`process`]); each call of a tool is one
//! request ([`call`]), and what code asks for meanwhile goes through the gate.
//!
//! A crash, an endless loop, noise or a refusal to stop is an error of the call that it hits: the next call finds
//! a new process.

mod blocking;
mod call;
mod define;
mod ending;
mod host;
mod interpreter;
mod native_toolsets;
mod outbox;
mod outside;
mod package;
mod process;
mod sources;
mod syntax;
mod tool;
mod toolset;
mod watch;
mod wire;

use std::borrow::Cow;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use llm_do_core::NoticeSink;
use llm_do_project::{ClassPurpose, Code, CodeProblem, WantedClass, WantedCode};

use self::define::{define, problem};
use self::host::{Host, describe};
use self::interpreter::{find, variable};
use self::outside::Outside;
use self::package::Package;
use self::process::{Launch, LoadError};
pub use self::syntax::python_syntax_problems;
use self::wire::{ToHost, WireClass, WireFunction};
use crate::catalog::ToolsetEnv;

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
    fn variable(&self, name: &str) -> Option<&OsStr> {
        variable(&self.environment, name)
    }
}

/// Runs the Python files of a project and makes callables of what they define. The process runs on until the last of
/// them is dropped.
///
/// It waits for the files to load; neither this nor the calls need a particular async runtime.
pub fn python_code(wanted: WantedCode<'_>, around: &ToolsetEnv) -> Result<Code, Vec<CodeProblem>> {
    let launch = prepare(&wanted, around).map_err(|problem| vec![problem])?;
    let (launch, package) = launch;
    let interpreter = launch.interpreter.clone();
    let root = text(&absolute(wanted.root)).into_owned();
    let (host, loaded) =
        Host::load(launch, root, package).map_err(|error| problems_of(&error, &interpreter))?;
    around.python_report.add(&loaded.imported.files, &loaded.imported.search);
    define(&host, loaded, &wanted, around)
}

/// Returns the interpreter that [`python_code`] would start, as a person would write it: relative to the project if it
/// lies there.
pub fn python_interpreter(named: Option<&str>, root: &Path, around: &ToolsetEnv) -> String {
    let found = find(named, root, &around.directory, &around.python);
    let Ok(path) = found else { return named.unwrap_or("python3").to_owned() };
    path.strip_prefix(root).unwrap_or(&path).to_string_lossy().into_owned()
}

fn prepare(wanted: &WantedCode<'_>, around: &ToolsetEnv) -> Result<(Launch, Package), CodeProblem> {
    let settings = &around.python;
    let interpreter = find(wanted.interpreter, wanted.root, &around.directory, settings)
        .map_err(|missing| problem_without_place(missing.message, Some(missing.hint)))?;
    check_paths(wanted)?;
    let load = load_message(wanted).map_err(|error| problem_without_place(error, None))?;
    let package = Package::unpack(settings.cache.as_deref()).map_err(|error| {
        let message = format!("the Python sources of llm-do cannot be unpacked: {error}");
        problem_without_place(message, error.hint())
    })?;
    let launch = Launch {
        interpreter: absolute(&interpreter),
        start: absolute(&package.start()),
        directory: working_directory(around),
        environment: settings.environment.clone(),
        load,
        load_limit: wanted.load_limit.unwrap_or(settings.load_limit),
        outside: Arc::new(Outside::new(settings.notices.clone())),
    };
    Ok((launch, package))
}

/// Refuses paths that cannot be named to Python: messages are UTF-8 text, and so are the names of modules.
fn check_paths(wanted: &WantedCode<'_>) -> Result<(), CodeProblem> {
    let entry = wanted.entry.iter().map(|entry| &*entry.file);
    let classes = wanted.classes.iter().map(|class| &*class.file);
    let mut paths = std::iter::once(wanted.root).chain(wanted.files.iter().map(|file| &**file));
    let unnamed = paths.find(|path| absolute(path).to_str().is_none());
    let Some(path) = unnamed.or_else(|| entry.chain(classes).find(|path| absolute(path).to_str().is_none()))
    else {
        return Ok(());
    };
    let shown = absolute(path);
    let message =
        format!("the path `{}` is not valid UTF-8, so Python files cannot be run there", shown.display());
    Err(problem_without_place(message, Some("rename the directory or the file".to_owned())))
}

fn working_directory(around: &ToolsetEnv) -> PathBuf {
    match around.directory.as_os_str().is_empty() {
        true => PathBuf::from("."),
        false => around.directory.clone(),
    }
}

fn load_message(wanted: &WantedCode<'_>) -> Result<Vec<u8>, String> {
    let path = |path: &Path| Cow::Owned(text(&absolute(path)).into_owned());
    let class = |class: &'_ WantedClass| (path(&class.file), class.purpose);
    let classes = wanted.classes.iter().map(|wanted| {
        let (file, purpose) = class(wanted);
        let purpose = match purpose {
            ClassPurpose::Input => "input",
            ClassPurpose::Output => "output",
        };
        WireClass { file, name: &wanted.name, purpose }
    });
    let message = ToHost::Load {
        root: path(wanted.root),
        files: wanted.files.iter().map(|file| path(file)).collect(),
        classes: classes.collect(),
        entry: wanted.entry.map(|entry| WireFunction { file: path(&entry.file), name: &entry.name }),
    };
    message.line()
}

fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf())
}

fn text(path: &Path) -> Cow<'_, str> {
    path.to_string_lossy()
}

fn problems_of(error: &LoadError, interpreter: &Path) -> Vec<CodeProblem> {
    let shown = interpreter.display();
    match error {
        LoadError::Refused(problems) if !problems.is_empty() => problems.iter().map(problem).collect(),
        LoadError::NotStarted(error) => {
            vec![problem_without_place(format!("the Python `{shown}` cannot be started: {error}"), None)]
        }
        error => {
            let message = format!("the Python process (`{shown}`) failed: {}", describe(error));
            let is_slow = matches!(error, LoadError::TooLong { .. });
            let hint = "raise `python_load_seconds` in the manifest if the file needs more time";
            vec![problem_without_place(message, is_slow.then(|| hint.to_owned()))]
        }
    }
}

fn problem_without_place(message: String, hint: Option<String>) -> CodeProblem {
    CodeProblem { place: None, message, hint }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::fs;
    use std::path::{Path, PathBuf};

    /// A directory that vanishes with its value.
    pub(crate) struct Folder(PathBuf);

    impl Folder {
        pub(crate) fn new() -> Self {
            let path = std::env::temp_dir().join(format!("llm-do-python-test-{}", uuid::Uuid::new_v4()));
            fs::create_dir_all(&path).unwrap();
            Self(path.canonicalize().unwrap())
        }

        pub(crate) fn path(&self) -> &Path {
            &self.0
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }
}
