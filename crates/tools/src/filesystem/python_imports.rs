//! Which files Python imports when it runs the code of a project.
//!
//! The code is read, not run: names in import statements, wherever they are in a file, are looked up in the
//! directories of the project that are on Python's search path, and what they lead to is read in turn. A name that
//! leads nowhere yet counts too, since a file of that name would be imported the next time. What the code has imported
//! by other means is known from the host ([`PythonReport`]).
//!
//! Strings and comments are not told apart from code: what looks like an import in one of them counts as one.

use std::collections::BTreeSet;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;

use super::folded_path::folded;
use super::standard_library;

/// More files are not read; the rest counts as imported.
const MAX_FILES: usize = 2_000;
/// More of one file is not read.
const MAX_FILE_BYTES: u64 = 1024 * 1024;

/// Text by which code imports what no import statement names.
const DYNAMIC: &[&str] = &[
    "importlib",
    "__import__",
    "pkgutil",
    "runpy",
    "exec(",
    "eval(",
    "sys.path",
    "addsitedir",
    "load_source",
];

const IMPORTED: &str = "the Python code of the project imports it";
const SHADOWS: &str = "Python would import it in place of a module of its library or an installed package";

/// What the Python host of a project tells about itself, once it runs.
#[derive(Debug, Clone, Default)]
pub struct PythonReport(Arc<Mutex<Reported>>);

#[derive(Debug, Default)]
struct Reported {
    /// Files of the project that were imported, in folded letters.
    files: BTreeSet<PathBuf>,
    /// The directories in which Python looks for modules.
    search: Vec<PathBuf>,
}

impl PythonReport {
    /// Adds what a host has imported, and where it looks for modules.
    pub fn add(&self, files: &[String], search: &[String]) {
        let mut reported = self.0.lock();
        reported.files.extend(files.iter().map(|file| folded(&real(Path::new(file)))));
        reported.search.extend(search.iter().map(PathBuf::from).filter(|path| path.is_absolute()));
    }

    fn has_imported(&self, folded: &Path) -> bool {
        self.0.lock().files.contains(folded)
    }

    fn directories_of_files(&self) -> BTreeSet<PathBuf> {
        let reported = self.0.lock();
        reported.files.iter().filter_map(|file| file.parent().map(Path::to_path_buf)).collect()
    }

    fn search(&self) -> Vec<PathBuf> {
        self.0.lock().search.clone()
    }
}

/// The Python code of a project.
#[derive(Debug, Default)]
pub(crate) struct PythonCode {
    /// The files that are run.
    files: Vec<PathBuf>,
    /// The directories of the project on Python's search path: those of the files, and the project itself.
    search: Vec<PathBuf>,
    report: PythonReport,
}

impl PythonCode {
    /// Describes the code of a project. Without files there is none, and nothing is imported.
    pub(crate) fn new(files: Vec<PathBuf>, project: &Path, report: PythonReport) -> Self {
        let files: Vec<PathBuf> = files.iter().map(|file| real(file)).collect();
        let directories = files.iter().filter_map(|file| file.parent().map(Path::to_path_buf));
        let project = (!files.is_empty()).then(|| real(project));
        let mut search: Vec<PathBuf> = directories.chain(project).collect();
        search.sort();
        search.dedup();
        Self { files, search, report }
    }

    /// Says why the code would import a file. The path is absolute and in folded letters.
    pub(crate) fn reason(&self, path: &Path) -> Option<&'static str> {
        if self.files.is_empty() {
            return None;
        }
        let module = module_of(path)?;
        if self.report.has_imported(path) {
            return Some(IMPORTED);
        }
        if self.shadows(&module) {
            return Some(SHADOWS);
        }
        Reached::from(self).imports(&module).then_some(IMPORTED)
    }

    /// Returns whether a module has the name of one that Python would find later on its search path.
    fn shadows(&self, module: &Path) -> bool {
        let is_top = self.search.iter().any(|directory| module.parent() == Some(&folded(directory)));
        let Some(name) = module.file_name().and_then(|name| name.to_str()).filter(|_| is_top) else {
            return false;
        };
        standard_library::has(name) || self.installed().iter().any(|directory| holds_module(directory, name))
    }

    /// The directories in which packages are installed: those that the host names, and that of the project's own
    /// virtual environment before the host has run.
    fn installed(&self) -> Vec<PathBuf> {
        let own = self.search.iter().flat_map(|directory| {
            let versions = fs::read_dir(directory.join(".venv/lib")).into_iter().flatten().flatten();
            versions.map(|version| version.path().join("site-packages"))
        });
        let is_outside = |directory: &PathBuf| !self.search.contains(&real(directory));
        self.report.search().into_iter().chain(own).filter(is_outside).collect()
    }
}

/// What was found by following the imports of the code.
#[derive(Default)]
struct Reached {
    /// Modules that would be imported, as paths without an ending, in folded letters.
    modules: BTreeSet<PathBuf>,
    /// The directories of the files that were read, in folded letters.
    directories: BTreeSet<PathBuf>,
    /// Names of modules, wherever they are.
    names: BTreeSet<String>,
    /// Whether the code imports by other means than statements, or is too much to be read.
    is_dynamic: bool,
}

impl Reached {
    fn from(code: &PythonCode) -> Self {
        let mut reached = Self { directories: code.report.directories_of_files(), ..Self::default() };
        let mut seen: BTreeSet<PathBuf> = code.files.iter().cloned().collect();
        let mut pending = code.files.clone();
        while let Some(file) = pending.pop() {
            let Some(text) = text_of(&file) else { continue };
            reached.directories.extend(file.parent().map(folded));
            reached.is_dynamic |= DYNAMIC.iter().any(|word| text.contains(word));
            for import in imports(&text) {
                for module in import.modules(&file, &code.search) {
                    reached.modules.insert(folded(&module));
                    let files = [module.with_added_extension("py"), module.join("__init__.py")];
                    pending
                        .extend(files.into_iter().filter(|file| file.is_file() && seen.insert(file.clone())));
                }
                reached.names.extend(import.names());
            }
            if seen.len() > MAX_FILES {
                reached.is_dynamic = true;
                break;
            }
        }
        reached
    }

    fn imports(&self, module: &Path) -> bool {
        let name = || module.file_name().and_then(|name| name.to_str());
        let beside = || module.parent().is_some_and(|parent| self.directories.contains(parent));
        let is_named = || name().is_some_and(|name| self.names.contains(name));
        self.modules.contains(module) || (self.is_dynamic && (beside() || is_named()))
    }
}

/// One import statement.
#[derive(Debug, PartialEq, Eq)]
struct Import {
    /// How many dots are before the module: none for an absolute name.
    level: usize,
    /// The names between the dots.
    module: Vec<String>,
    /// What is imported from the module: names in it, or modules below it.
    from: Vec<String>,
}

impl Import {
    /// The paths of the modules that the statement may import, without an ending.
    fn modules(&self, file: &Path, search: &[PathBuf]) -> Vec<PathBuf> {
        let above = self.level.checked_sub(1).and_then(|up| file.ancestors().nth(up + 1));
        let relative = above.map(Path::to_path_buf).into_iter();
        let bases: Vec<PathBuf> = if self.level == 0 { search.to_vec() } else { relative.collect() };
        bases.iter().flat_map(|base| self.below(base)).collect()
    }

    fn below(&self, base: &Path) -> Vec<PathBuf> {
        let mut found = Vec::new();
        let mut path = base.to_path_buf();
        for name in &self.module {
            path.push(name);
            found.push(path.clone());
        }
        found.extend(self.from.iter().map(|name| path.join(name)));
        found
    }

    fn names(&self) -> impl Iterator<Item = String> {
        self.module.iter().chain(&self.from).map(|name| name.to_lowercase())
    }
}

/// Finds the import statements of a file, also those inside functions, branches and one-line blocks.
fn imports(text: &str) -> Vec<Import> {
    let text = text.replace("\\\r\n", " ").replace("\\\n", " ");
    let mut lines = text.lines();
    let mut found = Vec::new();
    while let Some(line) = lines.next() {
        let mut line = line.to_owned();
        // A list of names may go on over several lines, in parentheses.
        while line.contains("import") && line.matches('(').count() > line.matches(')').count() {
            let Some(more) = lines.next() else { break };
            line = format!("{} {}", without_comment(&line), more);
        }
        found.extend(without_comment(&line).split([';', ':']).flat_map(statement));
    }
    found
}

fn without_comment(line: &str) -> &str {
    line.split('#').next().unwrap_or(line)
}

fn statement(text: &str) -> Vec<Import> {
    let text = text.trim();
    if let Some(list) = text.strip_prefix("import").filter(|rest| rest.starts_with(char::is_whitespace)) {
        let module = |name: &str| Import { level: 0, module: dotted(name), from: Vec::new() };
        return list.split(',').filter_map(first_word).map(module).collect();
    }
    let is_apart = |rest: &&str| rest.starts_with(|c: char| c.is_whitespace() || c == '.');
    text.strip_prefix("from").filter(is_apart).and_then(from_statement).into_iter().collect()
}

/// Reads what follows `from`.
fn from_statement(rest: &str) -> Option<Import> {
    let ends_word = |text: &str| text.chars().next().is_none_or(|c| c.is_whitespace() || "(*".contains(c));
    let begins_word = |text: &str| text.ends_with(|c: char| c.is_whitespace() || c == '.');
    let cut = rest.match_indices("import").map(|(at, _)| at);
    let cut = cut.into_iter().find(|at| begins_word(&rest[..*at]) && ends_word(&rest[at + 6..]))?;
    let module: String = rest[..cut].split_whitespace().collect();
    let level = module.chars().take_while(|c| *c == '.').count();
    let list = rest[cut + 6..].replace(['(', ')'], " ");
    let names = list.split(',').filter_map(first_word).filter(|name| *name != "*");
    Some(Import { level, module: dotted(&module[level..]), from: names.map(str::to_owned).collect() })
}

fn first_word(text: &str) -> Option<&str> {
    text.split_whitespace().next()
}

fn dotted(name: &str) -> Vec<String> {
    name.split('.').filter(|part| !part.is_empty()).map(str::to_owned).collect()
}

/// The module that a file is, as its path without an ending; none for what Python does not import.
fn module_of(path: &Path) -> Option<PathBuf> {
    let name = path.file_name()?.to_str()?;
    let (stem, ending) = name.rsplit_once('.')?;
    let stem = match ending {
        "py" | "pyw" => stem,
        // The name of a compiled module ends before the version that it was made for.
        "so" | "pyd" => stem.split('.').next()?,
        _ => return None,
    };
    let directory = path.parent()?;
    Some(if stem == "__init__" { directory.to_path_buf() } else { directory.join(stem) })
}

/// Returns whether a directory holds a module or package of this name.
fn holds_module(directory: &Path, name: &str) -> bool {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    names.into_iter().any(|entry| {
        let module = module_of(Path::new(&entry)).and_then(|path| path.to_str().map(str::to_owned));
        module.as_deref().unwrap_or(&entry).eq_ignore_ascii_case(name)
    })
}

fn text_of(file: &Path) -> Option<String> {
    let mut bytes = Vec::new();
    let opened =
        fs::File::open(file).ok().filter(|opened| opened.metadata().is_ok_and(|found| found.is_file()));
    opened?.take(MAX_FILE_BYTES).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// The path without links, as far as it exists.
fn real(path: &Path) -> PathBuf {
    let beside = || Some(path.parent()?.canonicalize().ok()?.join(path.file_name()?));
    path.canonicalize().ok().or_else(beside).unwrap_or_else(|| path.to_path_buf())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<String> {
        let shown = |import: Import| {
            let dots = ".".repeat(import.level);
            format!("{dots}{} [{}]", import.module.join("."), import.from.join(" "))
        };
        imports(text).into_iter().map(shown).collect()
    }

    #[test]
    fn import_statements_are_found_wherever_they_are() {
        assert_eq!(found("import a, b.c as d\n"), ["a []", "b.c []"]);
        assert_eq!(found("def f():\n    from a.b import c as d, e\n"), ["a.b [c e]"]);
        assert_eq!(found("if x: import a; from . import b"), ["a []", ". [b]"]);
        assert_eq!(
            found("from .import a\nfrom.b import c\nfrom .. d import(e)"),
            [". [a]", ".b [c]", "..d [e]"]
        );
        assert_eq!(found("from a import (\n    b,  # why\n    c,\n)\nimport \\\n  d"), ["a [b c]", "d []"]);
        assert_eq!(found("from importlib import x\nfrom a import *"), ["importlib [x]", "a []"]);
        assert_eq!(found("important = 1\nfromage = 2\n# import a\n"), [""; 0]);
    }

    #[test]
    fn files_are_modules_by_their_names() {
        let module = |path: &str| module_of(Path::new(path)).map(|path| path.display().to_string());
        assert_eq!(module("/p/a.py").as_deref(), Some("/p/a"));
        assert_eq!(module("/p/a/__init__.py").as_deref(), Some("/p/a"));
        assert_eq!(module("/p/a.cpython-311-x86_64-linux-gnu.so").as_deref(), Some("/p/a"));
        assert_eq!(module("/p/a.txt"), None);
    }
}
