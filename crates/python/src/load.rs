//! Loads the Python files of a project: finds the interpreter, starts the process and reports what is wrong.

use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use llm_do_project::{ClassPurpose, Code, CodeProblem, WantedClass, WantedCode};
use llm_do_tools::ToolsetEnv;

use crate::define::{define, problem};
use crate::host::{Host, describe};
use crate::interpreter::find;
use crate::outside::Outside;
use crate::package::Package;
use crate::process::{Launch, LoadError};
use crate::settings::PythonSettings;
use crate::wire::{ToHost, WireClass, WireFunction};

/// Runs the Python files of a project and makes callables of what they define. The process runs on until the last of
/// them is dropped.
///
/// It waits for the files to load; neither this nor the calls need a particular async runtime.
pub fn python_code(
    wanted: WantedCode<'_>,
    env: &ToolsetEnv,
    settings: &PythonSettings,
) -> Result<Code, Vec<CodeProblem>> {
    let (launch, package) = prepare(&wanted, env, settings).map_err(|problem| vec![problem])?;
    let interpreter = launch.interpreter.clone();
    let root = text(&absolute(wanted.root)).into_owned();
    let (host, loaded) =
        Host::load(launch, root, package).map_err(|error| problems_of(&error, &interpreter))?;
    env.python_report.add(&loaded.imported.files, &loaded.imported.search);
    define(&host, loaded, &wanted, env, settings)
}

/// Returns the interpreter that [`python_code`] would start in a working directory, as a person would write it: relative
/// to the project if it is in there.
pub fn python_interpreter(
    named: Option<&str>,
    root: &Path,
    directory: &Path,
    settings: &PythonSettings,
) -> String {
    let found = find(named, root, directory, settings);
    let Ok(path) = found else { return named.unwrap_or("python3").to_owned() };
    path.strip_prefix(root).unwrap_or(&path).to_string_lossy().into_owned()
}

fn prepare(
    wanted: &WantedCode<'_>,
    env: &ToolsetEnv,
    settings: &PythonSettings,
) -> Result<(Launch, Package), CodeProblem> {
    let interpreter = find(wanted.interpreter, wanted.root, &env.directory, settings)
        .map_err(|missing| problem_without_location(missing.message, Some(missing.hint)))?;
    check_paths(wanted)?;
    let load = load_message(wanted).map_err(|error| problem_without_location(error, None))?;
    let package = Package::unpack(settings.cache.as_deref()).map_err(|error| {
        let message = format!("the Python sources of llm-do cannot be unpacked: {error}");
        problem_without_location(message, error.hint())
    })?;
    let launch = Launch {
        interpreter: absolute(&interpreter),
        start: absolute(&package.start()),
        directory: working_directory(env),
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
    Err(problem_without_location(message, Some("rename the directory or the file".to_owned())))
}

fn working_directory(env: &ToolsetEnv) -> PathBuf {
    match env.directory.as_os_str().is_empty() {
        true => PathBuf::from("."),
        false => env.directory.clone(),
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
            vec![problem_without_location(format!("the Python `{shown}` cannot be started: {error}"), None)]
        }
        error => {
            let message = format!("the Python process (`{shown}`) failed: {}", describe(error));
            let is_slow = matches!(error, LoadError::TooLong { .. });
            let hint = "raise `python_load_seconds` in the manifest if the file needs more time";
            vec![problem_without_location(message, is_slow.then(|| hint.to_owned()))]
        }
    }
}

fn problem_without_location(message: String, hint: Option<String>) -> CodeProblem {
    CodeProblem { location: None, message, hint }
}
