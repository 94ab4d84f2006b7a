//! The Python files of a project: what it wants of them, and what can be said about them without running them.
//!
//! A project is linked twice where it has code: once before the code is run, when whatever nothing else defines
//! may be defined there, so that everything else is known to be right; and once with what the code defines.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use llm_do_core::{CallContext, Name, Output, Schema, Tool, ToolError};
use llm_do_runtime::EntrySpec;
use serde_json::Value;

use crate::catalog::{Catalog, CodeRunner};
use crate::code::{
    ClassPurpose, Code, CodeClass, CodeLocation, Defined, WantedClass, WantedCode, WantedFunction,
};
use crate::diagnostic::{Diagnostic, Diagnostics, Severity, shown_path};
use crate::document::span_of;
use crate::file_reader::{FileReader, read_source};
use crate::format::manifest::ManifestFile;
use crate::project_files::ProjectFiles;
use crate::read::Files;
use crate::read::agent::Agent;
use crate::read::listing::FileListing;
use crate::source::Span;
use crate::suggest::suggest;

use super::assumed::{self, AssumedName};

/// What a project wants of its Python files.
#[derive(Default)]
pub(crate) struct Wanted {
    files: Vec<PathBuf>,
    classes: Vec<WantedClass>,
    entry: Option<WantedFunction>,
}

impl Wanted {
    /// Collects what the manifest and the agents name. What is wrong with it is said where it is linked.
    pub(crate) fn collect(files: &Files, agents: &[Agent]) -> Self {
        let mut unsaid = Diagnostics::default();
        let mut classes = Vec::new();
        for agent in agents {
            for (key, reference, purpose) in agent.header.classes() {
                let class = class_of(agent, key, reference, purpose, &files.root, &mut unsaid);
                classes.extend(class.filter(|class| !classes.contains(class)));
            }
        }
        let entry = files.manifest.as_ref().and_then(|file| entry_function(file, files, &mut unsaid));
        Self { files: files.python.clone(), classes, entry }
    }

    /// Returns every file that is run.
    pub(crate) fn files(&self) -> Vec<PathBuf> {
        let mut files = self.files.clone();
        for class in &self.classes {
            if !files.contains(&class.file) {
                files.push(class.file.clone());
            }
        }
        files
    }

    /// Returns whether no Python is needed.
    pub(crate) fn is_empty(&self) -> bool {
        self.files.is_empty() && self.classes.is_empty()
    }

    /// Returns a function in place of the entry of code that is not run. It fails if it is called.
    pub(crate) fn entry_without_code(&self) -> Option<Defined<EntrySpec>> {
        let refuse = |_: Value, _: CallContext| async {
            Err::<Output, ToolError>(ToolError::new("the Python code of this project was not run"))
        };
        let (name, file) = match &self.entry {
            Some(function) => (function.name.as_str(), function.file.clone()),
            None => ("entry", self.files.first()?.clone()),
        };
        let value = EntrySpec::new(name, "", refuse).ok()?;
        Some(Defined { value, location: CodeLocation { file, line: None } })
    }

    /// Lists what only running the files would show.
    pub(crate) fn unverified(&self, assumed: &[AssumedName], root: &Path) -> Vec<Diagnostic> {
        let notice = |file: &Path, message: String| Diagnostic::notice(shown_path(file), message);
        let name = |file: &Path| shown_path(file).display().to_string();
        let files = self
            .files
            .iter()
            .map(|file| notice(file, format!("`{}` was not run, so what it defines is unknown", name(file))));
        let classes = self.classes.iter().map(|class| {
            let (file, class) = (&class.file, &class.name);
            notice(file, format!("`{}` was not run, so the fields of `{class}` are unknown", name(file)))
        });
        // One notice says how all of them are run.
        let mut not_run: Vec<Diagnostic> = files.chain(classes).collect();
        if let Some(last) = not_run.pop() {
            not_run.push(last.with_hint(how_to_run(root)));
        }
        // Without a directory of its own to name, a notice is about the first file.
        let file = if shown_path(root) == Path::new("") {
            self.files.first().map_or(root, |file| file)
        } else {
            root
        };
        let assumed = assumed.iter().map(|AssumedName { what, near }| {
            let diagnostic = notice(file, format!("not verified: {what} must be defined by code"));
            match near {
                Some(near) => diagnostic.with_hint(format!("did you mean {near}?")),
                None => diagnostic,
            }
        });
        not_run.into_iter().chain(assumed).collect()
    }

    /// Has the files run.
    pub(crate) fn run(
        &self,
        manifest: Option<&ManifestFile>,
        root: &Path,
        own: &ProjectFiles,
        runner: &dyn CodeRunner,
        out: &mut Diagnostics,
    ) -> Option<Arc<Code>> {
        let providers = manifest.iter().flat_map(|file| file.manifest.providers.values());
        let keys: Vec<String> = providers.filter_map(|provider| provider.api_key_env.clone()).collect();
        let wanted = WantedCode {
            keys: &keys,
            root,
            variables: manifest.map_or(&[], |file| &file.manifest.python_env),
            interpreter: manifest.and_then(|file| file.manifest.python.as_deref()),
            load_limit: manifest.and_then(|file| file.manifest.python_load_limit()),
            files: &self.files,
            classes: &self.classes,
            entry: self.entry.as_ref(),
            own,
        };
        match runner.code(wanted) {
            Ok(code) => Some(Arc::new(code)),
            Err(problems) => {
                problems
                    .into_iter()
                    .for_each(|problem| out.push(problem.into_diagnostic(Severity::Error, root)));
                None
            }
        }
    }
}

/// How `check` gets to know what code defines.
fn how_to_run(root: &Path) -> String {
    let shown = shown_path(root);
    let shown = if shown == Path::new("") { Path::new(".") } else { &shown }.display();
    format!(
        "`llm-do check {shown} --run-code` runs it once; `llm-do trust {shown} --own` lets `check` and `list` run it"
    )
}

/// What is known of a project's code while it is linked.
#[derive(Clone, Copy)]
pub(crate) enum KnownCode<'a> {
    /// There is none.
    Absent,
    /// It was not run yet.
    Unrun(&'a Wanted),
    /// It is not run at all: the project is looked at, or is not trusted.
    Withheld(&'a Wanted),
    /// It was run.
    Run(&'a Code, &'a [WantedClass]),
}

impl<'a> KnownCode<'a> {
    /// Code that was run for what was wanted of it.
    pub(crate) fn run(code: &'a Code, wanted: &'a Wanted) -> Self {
        Self::Run(code, &wanted.classes)
    }

    /// Returns whether a name that nothing else defines may be defined by code that was not run yet.
    pub(crate) fn may_define(self) -> bool {
        matches!(self, Self::Unrun(wanted) | Self::Withheld(wanted) if !wanted.files.is_empty())
    }

    /// Returns whether an agent that nothing else defines may be defined by code that was not run yet.
    pub(crate) fn may_define_agents(self) -> bool {
        self.may_define() && assumed::may_define_agents(self.files_not_run())
    }

    /// Returns the files that were not run yet.
    pub(crate) fn files_not_run(self) -> &'a [PathBuf] {
        match self {
            Self::Unrun(wanted) | Self::Withheld(wanted) => &wanted.files,
            Self::Absent | Self::Run(..) => &[],
        }
    }

    /// Returns whether the code is not run at all, so that what only it defines is left out.
    pub(crate) fn is_withheld(self) -> bool {
        matches!(self, Self::Withheld(_))
    }

    /// Returns whether the code has not run, so that the fields of its classes are not known.
    pub(crate) fn has_not_run(self) -> bool {
        matches!(self, Self::Unrun(_) | Self::Withheld(_))
    }

    /// Returns what was defined.
    pub(crate) fn defined(self) -> Option<&'a Code> {
        match self {
            Self::Run(code, _) => Some(code),
            Self::Absent | Self::Unrun(_) | Self::Withheld(_) => None,
        }
    }

    /// Returns the names of tools.
    pub(crate) fn tools(self) -> impl Iterator<Item = &'a Name> {
        let tools = self.defined().into_iter().flat_map(|code| &code.tools);
        tools.map(|tool| &tool.value.definition().name)
    }

    /// Returns the names of agents.
    pub(crate) fn agents(self) -> impl Iterator<Item = &'a Name> {
        self.defined().into_iter().flat_map(|code| &code.agents).map(|agent| &agent.value.name)
    }

    /// Returns the prefixes of models.
    pub(crate) fn providers(self) -> impl Iterator<Item = &'a str> {
        self.defined().into_iter().flat_map(|code| &code.providers).map(|provider| provider.name.as_str())
    }

    /// Returns a class that an agent names, where it was run.
    pub(crate) fn class(self, wanted: &WantedClass) -> Option<&'a CodeClass> {
        let Self::Run(code, classes) = self else { return None };
        let index = classes.iter().position(|class| class == wanted)?;
        code.classes.get(index)
    }
}

/// The entry function of a manifest: `path.py:function`, in a file that it lists.
pub(crate) fn entry_function(
    file: &ManifestFile,
    files: &Files,
    out: &mut Diagnostics,
) -> Option<WantedFunction> {
    let function = file.manifest.entry.function.as_deref()?;
    let span = file.node.field("entry").map_or(Span::START, |entry| span_of(&entry.value, "function"));
    let at = |message: String| Diagnostic::error_at(&file.source, &span, message);
    let Some((path, name)) = function.rsplit_once(':').filter(|(_, name)| is_name(name)) else {
        out.push(at(format!("`entry.function` is `{function}`, expected `path.py:function`")));
        return None;
    };
    let real = files.root.join(path).canonicalize().ok();
    let is_same = |listed: &&PathBuf| real.is_some() && listed.canonicalize().ok() == real;
    let Some(listed) = files.python.iter().find(is_same) else {
        let message = format!("`entry.function` names `{path}`, which `python_files` does not list");
        out.push(at(message).with_hint(format!("add \"{path}\" to `python_files`")));
        return None;
    };
    let source = read_source(listed, out)?;
    if let Some(hint) = missing(name, &source.text) {
        let message = format!("`entry.function` names `{name}`, which `{path}` does not define");
        out.push(at(message).with_hint(hint));
        return None;
    }
    Some(WantedFunction { file: listed.clone(), name: name.to_owned() })
}

/// A class that an agent names: `path.py:Class`, or `module.Class`, relative to the agent's file or the project.
pub(crate) fn class_of(
    agent: &Agent,
    key: &str,
    reference: &str,
    purpose: ClassPurpose,
    root: &Path,
    out: &mut Diagnostics,
) -> Option<WantedClass> {
    let name = &agent.header.name;
    let span = span_of(&agent.file.header, key);
    let at = |message: String| Diagnostic::error_at(&agent.file.source, &span, message);
    let Some((path, class)) = split_reference(reference) else {
        let message =
            format!("agent `{name}`: `{key}` is `{reference}`, which is not a reference to a class");
        out.push(at(message).with_hint("write `schemas.py:Class`, relative to the agent file"));
        return None;
    };
    let folder = agent.file.source.path.parent().unwrap_or(Path::new(""));
    let below = folder.strip_prefix(shown_path(root)).unwrap_or(folder);
    let listing = FileListing::new(root, FileReader::DISK);
    let file =
        match listing.named(below.join(&path)).or_else(|message| listing.named(&path).map_err(|_| message)) {
            Ok(file) => file,
            Err(message) => {
                out.push(at(format!("agent `{name}`: `{key}`: {message}")));
                return None;
            }
        };
    let source = read_source(&file, out)?;
    if let Some(hint) = missing(class, &source.text) {
        let message =
            format!("agent `{name}`: `{key}` names `{class}`, which `{}` does not define", path.display());
        out.push(at(message).with_hint(hint));
        return None;
    }
    Some(WantedClass { file, name: class.to_owned(), purpose })
}

/// Splits `path.py:Class` or `package.module.Class`.
fn split_reference(reference: &str) -> Option<(PathBuf, &str)> {
    let by_path = reference.rsplit_once(':').filter(|(path, _)| path.ends_with(".py"));
    if let Some((path, class)) = by_path {
        return is_name(class).then(|| (PathBuf::from(path), class));
    }
    let (module, class) = reference.rsplit_once('.')?;
    let is_module = module.split('.').all(is_name) && is_name(class);
    is_module.then(|| (PathBuf::from(format!("{}.py", module.replace('.', "/"))), class))
}

fn is_name(text: &str) -> bool {
    !text.is_empty()
        && text.chars().all(|c| c.is_alphanumeric() || c == '_')
        && !text.starts_with(|c: char| c.is_ascii_digit())
}

/// What may have been meant by a name that a module does not have, as far as its text shows: whoever runs it
/// has the last word.
fn missing(name: &str, text: &str) -> Option<String> {
    let is_part = |c: char| !(c.is_alphanumeric() || c == '_');
    let is_there = text.split(is_part).any(|word| word == name) || text.contains("import *");
    (!is_there).then(|| suggest(name, top_level_names(text)))
}

/// The names that a module defines or imports at its top level, as far as its lines show them.
pub(super) fn top_level_names(text: &str) -> Vec<&str> {
    text.lines().flat_map(names_of_line).collect()
}

fn names_of_line(line: &str) -> Vec<&str> {
    let first_name = |rest: &'_ str| -> usize {
        rest.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(rest.len())
    };
    let after = ["def ", "async def ", "class "].iter().find_map(|word| line.strip_prefix(word));
    if let Some(rest) = after {
        return vec![&rest[..first_name(rest)]];
    }
    if let Some((_, names)) = line.strip_prefix("from ").and_then(|rest| rest.split_once(" import ")) {
        return names.split(',').filter_map(|name| name.split_whitespace().last()).collect();
    }
    let name = &line[..first_name(line)];
    let is_assigned = line[name.len()..].trim_start().starts_with([':', '=']);
    if is_assigned && is_name(name) { vec![name] } else { Vec::new() }
}

/// Reports settings for Python in a project without Python files.
pub(crate) fn notice_settings(file: &ManifestFile, code: KnownCode<'_>, out: &mut Diagnostics) {
    let set = [
        ("python", file.manifest.python.is_some()),
        ("python_env", !file.manifest.python_env.is_empty()),
        ("python_load_seconds", file.manifest.python_load_seconds.is_some()),
    ];
    for (key, _) in set.into_iter().filter(|(_, is_set)| *is_set && matches!(code, KnownCode::Absent)) {
        let message = format!("`{key}` has no effect: the project has no Python files");
        out.push(Diagnostic::notice_at(&file.source, &span_of(&file.node, key), message));
    }
}

/// Checks that what code defines shares no name with anything else.
pub(crate) fn check_names(
    code: KnownCode<'_>,
    agents: &[Agent],
    manifest: Option<&ManifestFile>,
    catalog: &dyn Catalog,
    out: &mut Diagnostics,
) {
    let Some(code) = code.defined() else { return };
    let built_in = catalog.toolsets();
    let mut taken: Vec<(Name, String)> =
        agents.iter().map(|agent| (agent.header.name.as_str().into(), "an agent".to_owned())).collect();
    for agent in &code.agents {
        claim(&mut taken, &agent.value.name, "the agent", &agent.location, out);
    }
    let mut toolsets = taken.clone();
    toolsets.extend(built_in.iter().map(|name| ((*name).into(), "a built-in toolset".to_owned())));
    let sections = manifest.into_iter().flat_map(|file| file.manifest.toolsets.keys());
    toolsets.extend(sections.map(|name| (name.as_str().into(), "a toolset of the manifest".to_owned())));
    let of_program = catalog.program_toolsets().iter();
    toolsets
        .extend(of_program.map(|toolset| (toolset.name().clone(), "a toolset of the program".to_owned())));
    let of_program = catalog.program_tools().iter().map(|tool| tool.definition().name.clone());
    taken.extend(of_program.map(|name| (name, "a tool of the program".to_owned())));
    for toolset in &code.toolsets {
        claim(&mut toolsets, toolset.value.name(), "the toolset", &toolset.location, out);
    }
    for tool in &code.tools {
        claim(&mut taken, &tool.value.definition().name, "the tool", &tool.location, out);
    }
}

fn claim(
    taken: &mut Vec<(Name, String)>,
    name: &Name,
    what: &str,
    location: &CodeLocation,
    out: &mut Diagnostics,
) {
    let hint = "rename one of them";
    if !Name::is_valid(name) {
        let message = format!("{what} name `{name}` is not valid");
        out.push(location.diagnostic(message).with_hint("use 1 to 64 letters, digits, `_` and `-`"));
    } else if let Some((_, other)) = taken.iter().find(|(other, _)| other == name) {
        let message = format!("{what} name `{name}` is already the name of {other}");
        out.push(location.diagnostic(message).with_hint(hint));
    }
    let line = location.line.map(|line| format!(":{line}")).unwrap_or_default();
    let article = what.replacen("the", if what == "the agent" { "an" } else { "a" }, 1);
    taken.push((name.clone(), format!("{article} of {}{line}", shown_path(&location.file).display())));
}

/// Returns the entry that code defines, under a name that nothing else has: the original keeps functions and
/// agents apart, so that both may be called `main`.
pub(crate) fn entry(code: &Code, agents: &[Agent]) -> Option<Defined<EntrySpec>> {
    let found = code.entries.first()?.clone();
    let name = found.value.name();
    let is_taken = agents.iter().any(|agent| agent.header.name == name.as_str())
        || code.agents.iter().any(|agent| agent.value.name == *name)
        || code.tools.iter().any(|tool| tool.value.definition().name == *name);
    if !is_taken {
        return Some(found);
    }
    let stem =
        found.location.file.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
    let renamed = found.value.renamed(format!("{stem}_{name}"));
    Some(Defined { value: renamed, location: found.location })
}

/// Returns the schema of the input of an entry.
pub(crate) fn input_of(entry: &EntrySpec) -> Schema {
    entry.definition().input.clone()
}

/// Returns the tools as a project links them.
pub(crate) fn tools(code: KnownCode<'_>) -> impl Iterator<Item = Arc<dyn Tool>> {
    code.defined().into_iter().flat_map(|code| &code.tools).map(|tool| tool.value.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_at_the_top_level_are_found_without_running_anything() {
        let module = "import os\nfrom a import b as c, d\nasync def run(x):\n    def inner(): pass\n\
            class Input(BaseModel):\n    y = 1\nTOOLS = {}\nz: int = 3\nprint(w)\nif x == 1: pass\n";
        assert_eq!(top_level_names(module), ["c", "d", "run", "Input", "TOOLS", "z"]);
    }

    #[test]
    fn a_name_is_missing_only_where_the_text_does_not_have_it() {
        let module = "try:\n    class Input: pass\nexcept Exception: pass\n";
        assert_eq!(missing("Input", module), None);
        assert!(missing("Inputs", module).is_some());
        assert_eq!(missing("Inputs", "from others import *\n"), None);
    }

    #[test]
    fn classes_are_named_by_file_or_by_module() {
        assert_eq!(split_reference("a/s.py:Topic"), Some((PathBuf::from("a/s.py"), "Topic")));
        assert_eq!(split_reference("a.s.Topic"), Some((PathBuf::from("a/s.py"), "Topic")));
        for wrong in ["Topic", "s.py:", "s:Topic", "s.py:1a", ".Topic"] {
            assert_eq!(split_reference(wrong), None, "{wrong}");
        }
    }
}
