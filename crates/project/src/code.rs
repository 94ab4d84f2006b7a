//! The code of a project: what its Python files define, as whoever runs them found it.
//!
//! This crate runs nothing. It says which files and classes a project wants ([`WantedCode`]), after everything
//! else about the project was found to be right; a [`Catalog`](crate::Catalog) runs them and answers with
//! callables ([`Code`]) or with what is wrong ([`CodeProblem`]).

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use llm_do_core::{AgentSpec, Failure, Name, Prompt, Schema, Tool, Toolset};
use llm_do_runtime::EntrySpec;

use crate::diagnostic::{Diagnostic, Severity, shown_path};
use crate::project_files::ProjectFiles;
use crate::source::SourceFile;

/// The Python files of a project that shall be run.
#[derive(Debug, Clone, Copy)]
pub struct WantedCode<'a> {
    /// The directory of the project.
    pub root: &'a Path,
    /// The interpreter that the manifest names.
    pub interpreter: Option<&'a str>,
    /// How long the files may take to load, where the manifest says it.
    pub load_limit: Option<Duration>,
    /// Variables with keys of model providers that the code shall see; it sees all that are none.
    pub variables: &'a [String],
    /// Variables with keys of the providers that the manifest declares.
    pub keys: &'a [String],
    /// The files that the manifest lists.
    pub files: &'a [PathBuf],
    /// The classes that agents name, each once.
    pub classes: &'a [WantedClass],
    /// The function that a run starts with, where the manifest names one.
    pub entry: Option<&'a WantedFunction>,
    /// The files that decide what the project does.
    pub own: &'a ProjectFiles,
}

/// A class that an agent names.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct WantedClass {
    /// The file.
    pub file: PathBuf,
    /// The name of the class.
    pub name: String,
    /// What it is wanted for.
    pub purpose: ClassPurpose,
}

/// What a class is wanted for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ClassPurpose {
    /// The input of an agent: it also makes the prompt.
    Input,
    /// The answer of an agent.
    Output,
}

/// A function of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WantedFunction {
    /// The file.
    pub file: PathBuf,
    /// The name of the function.
    pub name: String,
}

/// What the files of a project define.
#[derive(Default)]
pub struct Code {
    /// Single tools.
    pub tools: Vec<Defined<Arc<dyn Tool>>>,
    /// Toolsets.
    pub toolsets: Vec<Defined<Arc<dyn Toolset>>>,
    /// Agents. Their tools and toolsets are named.
    pub agents: Vec<Defined<AgentSpec>>,
    /// Functions that a run can start with. Where the project wants one, it is the only one.
    pub entries: Vec<Defined<EntrySpec>>,
    /// The wanted classes, in their order.
    pub classes: Vec<CodeClass>,
    /// The providers of models that the code brings.
    pub providers: Vec<CodeProvider>,
    /// What the author should know.
    pub notices: Vec<CodeProblem>,
}

/// Something that code defines, and where.
#[derive(Clone)]
pub struct Defined<T> {
    /// What it is.
    pub value: T,
    /// Where it is defined.
    pub location: CodeLocation,
}

/// A file of code, and a line of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CodeLocation {
    /// The file.
    pub file: PathBuf,
    /// The line, from 1, where it is known.
    pub line: Option<u32>,
}

/// A class of an input or an answer.
#[derive(Clone)]
pub struct CodeClass {
    /// Its schema.
    pub schema: Schema,
    /// How an input becomes the prompt, where the class is one of an input.
    pub prompt: Option<Prompt>,
}

/// A provider of models that code brings.
#[derive(Clone)]
pub struct CodeProvider {
    /// The prefix of its models.
    pub name: Name,
    /// Says how a model of it is reached; the name comes without the prefix.
    pub reach: Arc<ReachModel>,
}

/// Asks code how a model is reached.
pub type ReachModel = dyn Fn(&str) -> Result<CodeModel, Failure> + Send + Sync;

/// How a model is reached that code knows.
#[derive(Clone)]
pub struct CodeModel {
    /// The protocol, such as `openai-chat`.
    pub api: String,
    /// The address.
    pub base_url: String,
    /// The key, where there is one.
    pub key: Option<String>,
    /// Headers that are sent with each request.
    pub headers: Vec<(String, String)>,
    /// The model's own name.
    pub model: String,
}

/// What is wrong with code, or worth knowing about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CodeProblem {
    /// Where, if it is about one file.
    pub location: Option<CodeLocation>,
    /// What.
    pub message: String,
    /// What can be done.
    pub hint: Option<String>,
}

impl CodeProblem {
    /// Returns the problem as a diagnostic. Whoever runs code knows absolute paths: they are shown as the project was
    /// named.
    pub(crate) fn into_diagnostic(self, severity: Severity, root: &Path) -> Diagnostic {
        let diagnostic = match self.location {
            Some(location) => {
                let file = as_written(&location.file, root);
                CodeLocation { file, ..location }.diagnostic(self.message)
            }
            None => Diagnostic::error(shown_path(root), self.message),
        };
        let diagnostic = diagnostic.with_severity(severity);
        self.hint.into_iter().fold(diagnostic, Diagnostic::with_hint)
    }
}

impl CodeLocation {
    /// Returns an error about this line of code.
    pub(crate) fn diagnostic(&self, message: impl Into<String>) -> Diagnostic {
        let text = std::fs::read_to_string(&self.file).unwrap_or_default();
        let source = SourceFile::new(shown_path(&self.file), text.as_str());
        let Some(line) = self.line else { return Diagnostic::error(source.path, message) };
        let line = usize::try_from(line).unwrap_or(usize::MAX).saturating_sub(1);
        let before: usize = text.split_inclusive('\n').take(line).map(str::len).sum();
        let shown = text[before..].lines().next().unwrap_or_default();
        let start = before + (shown.len() - shown.trim_start().len());
        Diagnostic::error_at(&source, &(start..before + shown.trim_end().len()).into(), message)
    }
}

/// The path of a file as the project was named: whoever runs code knows absolute paths.
fn as_written(file: &Path, root: &Path) -> PathBuf {
    let absolute = root.canonicalize().or_else(|_| std::path::absolute(root));
    let below =
        absolute.ok().and_then(|absolute| file.strip_prefix(absolute).ok().map(|below| root.join(below)));
    below.unwrap_or_else(|| file.to_path_buf())
}
