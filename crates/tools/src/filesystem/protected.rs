//! Files whose change can change what runs later, and directories that no tool reaches.
//!
//! Which names other programs run by themselves is a table ([`super::run_later`]); what the Python code of a project
//! imports is found by reading it ([`super::python_imports`]). This module compares paths, and decides nothing about
//! calls: the gate asks about what is protected, each time, and refuses what is private.

use std::path::{Path, PathBuf};

use globset::{GlobBuilder, GlobMatcher, escape};

use super::folded_path::folded;
use super::python_imports::{PythonCode, PythonReport};
use super::run_later;
use crate::toolset_error::ToolsetError;

/// The files that only a person may let be written, each time anew: what is written there can make other
/// programs, or the project itself, run something else.
///
/// Some names are protected everywhere: git's own files, manifests, agent files, environment files, hooks, CI
/// definitions, start files of shells and editors. A project adds its own files, such as the Python files of its tools;
/// with them goes what those files import.
#[derive(Debug, Clone, Default)]
pub struct Protected {
    paths: Vec<PathBuf>,
    globs: Vec<String>,
    /// The directory of the project, where it is not the base.
    project: Option<PathBuf>,
    python: PythonReport,
    private: Vec<PrivateDirectory>,
}

/// A directory of the program itself.
#[derive(Debug, Clone)]
struct PrivateDirectory {
    path: PathBuf,
    reads: Reads,
}

/// Whether tools may read in a directory that they may not write to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reads {
    Blocked,
    Allowed,
}

const LISTED: &str = "the project lists it as a file that it runs";

impl Protected {
    /// Protects these files or directories too. They are relative to the base directory of the toolset.
    pub fn new<P: Into<PathBuf>>(paths: impl IntoIterator<Item = P>) -> Self {
        Self { paths: paths.into_iter().map(Into::into).collect(), ..Self::default() }
    }

    /// Protects what matches these globs too, whether it exists or not. They are relative to the base directory.
    #[must_use]
    pub fn and_matching<G: Into<String>>(mut self, globs: impl IntoIterator<Item = G>) -> Self {
        self.globs.extend(globs.into_iter().map(Into::into));
        self
    }

    /// Says which project the Python files belong to, and what its host reports.
    pub(crate) fn with_python(mut self, project: PathBuf, report: PythonReport) -> Self {
        (self.project, self.python) = (Some(project), report);
        self
    }

    /// Keeps tools out of directories: nothing there is written, and nothing read unless that is allowed.
    pub(crate) fn and_private<'p>(
        mut self,
        paths: impl IntoIterator<Item = &'p PathBuf>,
        reads: Reads,
    ) -> Self {
        let private = paths.into_iter().map(|path| PrivateDirectory { path: path.clone(), reads });
        self.private.extend(private);
        self
    }

    /// Returns what is protected if the paths are relative to this base, or which glob is invalid.
    pub(crate) fn below(&self, base: &Path) -> Result<Guarded, ToolsetError> {
        let paths = self.paths.iter().flat_map(|path| names_of(&base.join(path)));
        let is_python = |path: &&PathBuf| path.extension().is_some_and(|extension| extension == "py");
        let code = self.paths.iter().filter(is_python).map(|path| base.join(path)).collect();
        let python = PythonCode::new(code, self.project.as_deref().unwrap_or(base), self.python.clone());
        let private = self.private.iter().flat_map(|private| {
            names_of(&private.path).map(|path| PrivateDirectory { path, reads: private.reads })
        });
        let private = private.collect();
        let folded_base = escape(&folded(base).to_string_lossy());
        let globs = self.globs.iter().map(|glob| compile(&folded_base, glob));
        Ok(Guarded { paths: paths.collect(), globs: globs.collect::<Result<_, _>>()?, python, private })
    }
}

/// A file that is listed by a link is protected by its own name too.
fn names_of(path: &Path) -> impl Iterator<Item = PathBuf> + use<> {
    let real = path.canonicalize().ok();
    let parent = path.parent().and_then(|parent| parent.canonicalize().ok());
    let beside = parent.zip(path.file_name()).map(|(parent, name)| parent.join(name));
    [Some(path.to_path_buf()), real, beside].into_iter().flatten().map(|path| folded(&path))
}

fn compile(base: &str, glob: &str) -> Result<GlobMatcher, ToolsetError> {
    let glob = glob.strip_prefix("./").unwrap_or(glob).to_lowercase();
    let whole = if Path::new(&glob).is_absolute() { glob } else { format!("{base}/{glob}") };
    let built = GlobBuilder::new(&whole).literal_separator(true).build();
    let invalid = |error: globset::Error| format!("`{whole}` is not a valid glob: {}", error.kind());
    Ok(built.map_err(|error| ToolsetError::Setting(invalid(error)))?.compile_matcher())
}

/// What is protected, by absolute paths in folded letters.
#[derive(Debug)]
pub(crate) struct Guarded {
    paths: Vec<PathBuf>,
    globs: Vec<GlobMatcher>,
    python: PythonCode,
    private: Vec<PrivateDirectory>,
}

impl Guarded {
    /// Says why a file is protected, if it is. The path is absolute and free of links.
    pub(crate) fn reason(&self, path: &Path) -> Option<&'static str> {
        let plain = folded(path);
        run_later::reason(&plain)
            .or_else(|| self.listed(&plain))
            .or_else(|| self.python.reason(&plain))
            .or_else(|| run_later::in_virtual_environment(path))
    }

    /// Forgets private directories that nothing below a root can lead to.
    pub(crate) fn near(mut self, root: &Path) -> Self {
        let root = folded(root);
        self.private.retain(|private| private.path.starts_with(&root) || root.starts_with(&private.path));
        self
    }

    /// Returns whether there are directories that no tool reaches.
    pub(crate) fn has_private(&self) -> bool {
        !self.private.is_empty()
    }

    /// Returns whether a file is in a directory in which no tool reads.
    pub(crate) fn is_unreadable(&self, path: &Path) -> bool {
        self.is_private(path, |reads| reads == Reads::Blocked)
    }

    /// Returns whether a file is in a directory in which no tool writes.
    pub(crate) fn is_unwritable(&self, path: &Path) -> bool {
        self.is_private(path, |_| true)
    }

    /// Returns whether a directory, or one below it, is one in which no tool reads.
    pub(crate) fn leads_to_unreadable(&self, directory: &Path) -> bool {
        let directory = folded(directory);
        let is_below = |private: &PrivateDirectory| private.path.starts_with(&directory);
        self.private.iter().any(|private| private.reads == Reads::Blocked && is_below(private))
    }

    /// Returns whether a directory, or one below it, is one in which no tool writes.
    pub(crate) fn leads_to_unwritable(&self, directory: &Path) -> bool {
        let directory = folded(directory);
        self.private.iter().any(|private| private.path.starts_with(&directory))
    }

    fn is_private(&self, path: &Path, counts: impl Fn(Reads) -> bool) -> bool {
        if self.private.is_empty() {
            return false;
        }
        let path = folded(path);
        self.private.iter().any(|private| counts(private.reads) && path.starts_with(&private.path))
    }

    fn listed(&self, path: &Path) -> Option<&'static str> {
        let is_listed = self.paths.iter().any(|listed| path.starts_with(listed))
            || self.globs.iter().any(|glob| glob.is_match(path));
        is_listed.then_some(LISTED)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn by_default() -> Guarded {
        Protected::default().below(Path::new("/p")).unwrap()
    }

    #[test]
    fn what_can_change_what_runs_is_protected_wherever_it_stands() {
        let protected = by_default();
        for path in [
            "/p/.git/config",
            "/p/sub/.git/hooks/pre-commit",
            "/p/.git",
            "/p/.GIT/config",
            "/p/.git./config",
            "/p/.g\u{200c}it/config",
            "/p/GIT~1/config",
            "/p/.gitattributes",
            "/p/.GitAttributes ",
            "/p/project.json",
            "/p/nested/project.toml",
            "/p/agents/main.agent",
            "/p/old.worker",
            "/p/.env",
            "/p/.env.local",
            "/p/.mcp.json",
            "/p/.vscode/mcp.json",
            "/p/.zlogin",
            "/p/.llm-do/runs/1",
        ] {
            assert!(protected.reason(Path::new(path)).is_some(), "{path}");
        }
    }

    #[test]
    fn ordinary_files_are_not_protected() {
        let protected = by_default();
        for path in
            ["/p/.gitignore", "/p/git/config", "/p/a.txt", "/p/agent", "/p/environment", "/p/a.py", "/p/..."]
        {
            assert_eq!(protected.reason(Path::new(path)), None, "{path}");
        }
    }

    #[test]
    fn files_that_the_project_lists_are_protected_below_its_base() {
        let protected = Protected::new(["prompts/Main.md", "./plugins/"]).below(Path::new("/p")).unwrap();
        assert!(protected.reason(Path::new("/p/prompts/main.md")).is_some());
        assert!(protected.reason(Path::new("/p/plugins/a/b.txt")).is_some());
        assert_eq!(protected.reason(Path::new("/p/other/main.md")), None);
    }

    #[test]
    fn modules_that_a_listed_python_file_could_import_are_protected() {
        let protected = Protected::new(["code/tools.py"]).below(Path::new("/p")).unwrap();
        for path in ["/p/code/tools.py", "/p/code/json.py", "/p/code/json/__init__.py", "/p/json.py"] {
            assert!(protected.reason(Path::new(path)).is_some(), "{path}");
        }
        for path in ["/p/other/json.py", "/p/code/other.py", "/p/code/data/other.py", "/p/code/notes.txt"] {
            assert_eq!(protected.reason(Path::new(path)), None, "{path}");
        }
    }

    #[test]
    fn what_would_match_a_glob_is_protected_before_it_exists() {
        let protected = Protected::default().and_matching(["./Plugins/**/*.md"]);
        let protected = protected.below(Path::new("/p[1]")).unwrap();
        assert!(protected.reason(Path::new("/p[1]/plugins/a/New.md")).is_some());
        assert_eq!(protected.reason(Path::new("/p1/plugins/a/new.md")), None);
        assert_eq!(protected.reason(Path::new("/p[1]/plugins/a/new.txt")), None);
        assert!(Protected::default().and_matching(["a[b"]).below(Path::new("/p")).is_err());
    }
}
