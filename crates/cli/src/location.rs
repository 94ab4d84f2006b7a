//! Finds the project that a command works on: the one that is named, or that of the current directory.
//!
//! A path names a manifest, a directory or an agent file. An agent file that a manifest lists belongs to the project of
//! that manifest; without a path, the current directory and its parents are searched. This module loads nothing.

mod search;

use std::path::{Path, PathBuf};

use llm_do::project::RecordedFiles;
use llm_do::record::ProjectSource;
use llm_do_project::discovery;
use llm_do_project::discovery::Membership;

use crate::arguments::{self, ProjectArguments};
use crate::command_error::CommandError;
use crate::environment::machine_name;
use crate::output;
use crate::path_syntax::is_like_path;
use crate::text::visible_line;
use search::Ancestors;

/// Where a project is, and what the command line changes of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ProjectLocation {
    /// A manifest, a directory or an agent file that exists.
    pub(crate) path: PathBuf,
    /// Changes, `KEY=VALUE` each.
    pub(crate) set: Vec<String>,
    /// The files that are read from a record instead.
    pub(crate) recorded: Option<RecordedFiles>,
    /// Files that no tool of the project reaches, besides the directories of this binary.
    pub(crate) private: Vec<PathBuf>,
}

impl ProjectLocation {
    /// A project at a path, as its files describe it.
    pub(crate) fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), set: Vec::new(), recorded: None, private: Vec::new() }
    }

    /// Keeps the tools of the project away from files.
    pub(crate) fn with_private(mut self, files: Vec<PathBuf>) -> Self {
        self.private.extend(files);
        self
    }

    /// What another process needs to find and load it again.
    pub(crate) fn to_source(&self) -> ProjectSource {
        let path = self.path.canonicalize().unwrap_or_else(|_| self.path.clone());
        ProjectSource { path, set: self.set.clone(), machine: Some(machine_name()) }
    }

    /// The directory of the project.
    pub(crate) fn root(&self) -> &Path {
        match self.path.parent() {
            _ if self.path.is_dir() => &self.path,
            Some(parent) if parent != Path::new("") => parent,
            _ => Path::new("."),
        }
    }
}

/// Finds the project of a command that needs one.
pub(crate) fn locate(arguments: &ProjectArguments) -> Result<ProjectLocation, CommandError> {
    let mut location = match &arguments.path {
        Some(path) => named(path)?,
        None => around().map_err(Border::problem)?,
    };
    location.set.extend(arguments.set.iter().cloned());
    Ok(location)
}

/// Finds the project of a command that can do without one; none if no path is given and none is found.
pub(crate) fn locate_if_any(path: Option<&Path>) -> Result<Option<ProjectLocation>, CommandError> {
    match path {
        Some(path) => named(path).map(Some),
        None => Ok(around().ok()),
    }
}

/// Finds the project and the prompt of a command whose arguments are `[PATH] [PROMPT]`.
///
/// One argument alone is a path if it names something that exists or looks like a path, and otherwise the prompt.
pub(crate) fn locate_with_prompt(
    arguments: &ProjectArguments,
    prompt: Option<&str>,
    flag: Option<&str>,
) -> Result<(ProjectLocation, Option<String>), CommandError> {
    let given = prompt.or(flag).map(str::to_owned);
    let lone = arguments.path.as_deref().filter(|_| given.is_none()).and_then(Path::to_str);
    match lone {
        Some(text) if is_prompt(text) => {
            let here = ProjectArguments { path: None, set: arguments.set.clone() };
            let location = locate(&here).map_err(|problem| neither_path_nor_project(text, problem))?;
            Ok((location, Some(text.to_owned())))
        }
        Some(text) if Path::new(text).exists() && !is_loadable(Path::new(text)) => Err(not_a_project(text)),
        _ => {
            let location = locate(arguments);
            let location = if prompt.is_some() {
                location.map_err(|problem| unquoted(arguments, problem))
            } else {
                location
            };
            Ok((location?, given))
        }
    }
}

/// Returns the first positional argument if it is a prompt: nothing has that name, and it does not look like a path.
pub(crate) fn lone_prompt<'a>(arguments: &'a ProjectArguments, prompt: Option<&str>) -> Option<&'a str> {
    let lone = arguments.path.as_deref().filter(|_| prompt.is_none()).and_then(Path::to_str);
    lone.filter(|text| is_prompt(text))
}

fn is_prompt(text: &str) -> bool {
    !Path::new(text).exists() && !is_like_path(text)
}

/// Adds to the error about a path that it may be the first word of a prompt.
fn unquoted(arguments: &ProjectArguments, problem: CommandError) -> CommandError {
    let is_word = arguments.path.as_deref().and_then(Path::to_str).is_some_and(|path| !is_like_path(path));
    match problem {
        CommandError::Usage { message, hint: Some(hint) } if is_word => {
            CommandError::with_hint(message, format!("{hint}; put a prompt of several words in quotes"))
        }
        other => other,
    }
}

/// Refuses a project in the place of the name of what is to be called.
pub(crate) fn refuse_project_as_name(arguments: &ProjectArguments, name: &str) -> Result<(), CommandError> {
    let path = Path::new(name);
    if arguments.path.is_some() || !path.exists() || !is_loadable(path) {
        return Ok(());
    }
    let shown = visible_line(name);
    let message = format!("`{shown}` is a project, and the name of an agent or tool is missing");
    let hint = format!("write `llm-do call {shown} NAME`; `llm-do list {shown}` lists the names");
    Err(CommandError::with_hint(message, hint))
}

/// Returns whether a path can be given to the loader at all.
fn is_loadable(path: &Path) -> bool {
    let is_document = |path: &Path| {
        let ending = path.extension().and_then(|ending| ending.to_str());
        matches!(ending, Some("json" | "yaml" | "yml" | "toml"))
    };
    if path.is_dir() {
        return discovery::is_project_directory(path);
    }
    discovery::is_agent_file(path) || is_document(path)
}

/// The project at a path that somebody wrote.
fn named(path: &Path) -> Result<ProjectLocation, CommandError> {
    if !path.exists() {
        return Err(no_project(path));
    }
    if path.is_file() && !is_loadable(path) {
        return Err(not_a_project(&path.to_string_lossy()));
    }
    if !discovery::is_agent_file(path) || path.is_dir() {
        return Ok(ProjectLocation::new(path));
    }
    Ok(locate_agent_file(path))
}

/// The project of an agent file: that of the nearest manifest, if it lists the file.
fn locate_agent_file(path: &Path) -> ProjectLocation {
    let alone = ProjectLocation::new(path);
    let Ok(real) = path.canonicalize() else { return alone };
    let Some(directory) = real.parent() else { return alone };
    let Some(manifest) = Ancestors::new(directory, home().as_deref()).manifest() else { return alone };
    let manifest = relative_to(directory, path, &manifest);
    let shown = visible_line(&manifest.display().to_string());
    match discovery::membership(&manifest, path) {
        Membership::NotListed => {
            let file = visible_line(&path.display().to_string());
            notice(&format!("`{shown}` does not list `{file}`, which is used alone"));
            alone
        }
        Membership::Agent(Some(name)) => {
            let entry = serde_json::json!({"agent": name});
            ProjectLocation { set: vec![format!("entry={entry}")], ..ProjectLocation::new(manifest) }
        }
        _ => ProjectLocation::new(manifest),
    }
}

/// Spells a manifest as the person spelled the agent file, if it lies in the same directory.
fn relative_to(directory: &Path, written: &Path, manifest: &Path) -> PathBuf {
    let name = manifest.file_name().filter(|_| manifest.parent() == Some(directory));
    let is_link = written.symlink_metadata().is_ok_and(|metadata| metadata.is_symlink());
    match name {
        Some(name) if !is_link => written.with_file_name(name),
        _ => manifest.to_path_buf(),
    }
}

/// Why there is no project around the current directory.
struct Border(Option<(PathBuf, &'static str)>);

impl Border {
    fn problem(self) -> CommandError {
        let message = match self.0 {
            Some((directory, reason)) => format!(
                "no project was found in the current directory or above it, up to `{}` ({reason})",
                visible_line(&directory.display().to_string())
            ),
            None => "no project was found in the current directory or above it".to_owned(),
        };
        let hint = match discovery::is_project_directory(Path::new(".")) {
            true => "others can write to this directory, so its project is used only if you name it: `.`",
            false => "name a project, or create one with `llm-do init`",
        };
        CommandError::with_hint(message, hint)
    }
}

/// The project of the current directory. One that lies elsewhere is named on stderr.
fn around() -> Result<ProjectLocation, Border> {
    let here = std::env::current_dir().and_then(|here| here.canonicalize()).map_err(|_| Border(None))?;
    let ancestors = Ancestors::new(&here, home().as_deref());
    match ancestors.project() {
        Some(directory) if directory == here => Ok(ProjectLocation::new(".")),
        Some(directory) => {
            let shown = visible_line(&directory.display().to_string());
            notice(&format!("using the project `{shown}`, above the current directory"));
            Ok(ProjectLocation::new(directory))
        }
        None => Err(Border(ancestors.stopped)),
    }
}

fn home() -> Option<PathBuf> {
    etcetera::home_dir().ok()?.canonicalize().ok()
}

fn notice(text: &str) {
    output::early_notice(text);
}

fn no_project(path: &Path) -> CommandError {
    let message = format!("there is no project at `{}`", visible_line(&path.to_string_lossy()));
    match path.to_str().and_then(arguments::command_like) {
        Some(command) => CommandError::with_hint(message, format!("did you mean the command `{command}`?")),
        None if path.to_str().is_some_and(is_like_path) => CommandError::with_hint(
            message,
            "name a project file, a directory or an agent file; a prompt that looks like a path is given with `-p`",
        ),
        None => CommandError::with_hint(message, "name a project file, a directory or an agent file"),
    }
}

/// The first argument names something that is not a project.
fn not_a_project(text: &str) -> CommandError {
    let shown = visible_line(text);
    let hint = if Path::new(text).is_dir() {
        format!("make a project there with `llm-do init {shown}`, or give a prompt with `-p {shown}`")
    } else {
        format!("attach it with `--attach {shown}`, or give a prompt with `-p {shown}`")
    };
    CommandError::with_hint(format!("`{shown}` is not a project or an agent file"), hint)
}

/// A lone argument is not a path, and there is no project to which it could be the prompt.
fn neither_path_nor_project(text: &str, problem: CommandError) -> CommandError {
    match problem {
        CommandError::Usage { message, hint: Some(hint) } => {
            let shown = visible_line(&crate::text::shortened(text, 40));
            CommandError::with_hint(message, format!("{hint}; `{shown}` is neither a file nor a directory"))
        }
        other => other,
    }
}
