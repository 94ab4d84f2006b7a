//! Files whose change can change what runs later.

use std::path::{Component, Path, PathBuf};

use globset::{GlobBuilder, GlobMatcher, escape};

/// The files that only a person may let be written, each time anew: what is written there can make other
/// programs, or the project itself, run something else.
///
/// Some names are protected everywhere: git's own files, manifests, agent files, environment files, the
/// configuration of shells and of MCP. A project adds its own files, such as the Python files of its tools.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Protected {
    paths: Vec<PathBuf>,
    globs: Vec<String>,
}

/// Names that are protected wherever they stand, with what they decide about.
const NAMES: &[(&str, &str)] = &[
    (".gitattributes", GIT),
    (".gitmodules", GIT),
    (".gitconfig", GIT),
    ("project.json", PROJECT),
    ("project.yaml", PROJECT),
    ("project.yml", PROJECT),
    ("project.toml", PROJECT),
    (".env", ENVIRONMENT),
    (".envrc", ENVIRONMENT),
    ("mcp.json", MCP),
    (".mcp.json", MCP),
    (".bashrc", SHELL),
    (".bash_aliases", SHELL),
    (".bash_login", SHELL),
    (".bash_logout", SHELL),
    (".bash_profile", SHELL),
    (".profile", SHELL),
    (".zshrc", SHELL),
    (".zshenv", SHELL),
    (".zprofile", SHELL),
    (".zlogin", SHELL),
    (".zlogout", SHELL),
    (".kshrc", SHELL),
    (".cshrc", SHELL),
    (".tcshrc", SHELL),
    ("config.fish", SHELL),
];

/// Directories whose files are protected wherever they stand. A short name of `.git` on some file systems is
/// another name for it.
const DIRECTORIES: &[(&str, &str)] = &[(".git", GIT), ("git~1", GIT), (".llm-do", RECORD)];

/// Endings that are protected wherever they stand.
const ENDINGS: &[(&str, &str)] = &[(".agent", PROJECT), (".worker", PROJECT)];

const GIT: &str = "it belongs to git and can make later git commands run programs";
const PROJECT: &str = "it decides what the agents of a project may do";
const ENVIRONMENT: &str = "it sets the environment of later runs";
const MCP: &str = "it decides which MCP servers are started";
const SHELL: &str = "shells run it when they start";
const RECORD: &str = "llm-do keeps its records there";
const LISTED: &str = "the project lists it as a file that it runs";

impl Protected {
    /// Protects these files or directories too. They are relative to the base directory of the toolset.
    pub fn new<P: Into<PathBuf>>(paths: impl IntoIterator<Item = P>) -> Self {
        Self { paths: paths.into_iter().map(Into::into).collect(), globs: Vec::new() }
    }

    /// Protects what matches these globs too, whether it exists or not. They are relative to the base directory.
    #[must_use]
    pub fn and_matching<G: Into<String>>(mut self, globs: impl IntoIterator<Item = G>) -> Self {
        self.globs.extend(globs.into_iter().map(Into::into));
        self
    }

    /// Returns what is protected when the paths are relative to this base, or which glob is none.
    pub(crate) fn below(&self, base: &Path) -> Result<Guarded, String> {
        let paths = self.paths.iter().flat_map(|path| names_of(&base.join(path)));
        let base = escape(&folded(base).to_string_lossy());
        let globs = self.globs.iter().map(|glob| compile(&base, glob));
        Ok(Guarded { paths: paths.collect(), globs: globs.collect::<Result<_, _>>()? })
    }
}

/// A file that is listed by a link is protected by its own name too.
fn names_of(path: &Path) -> impl Iterator<Item = PathBuf> + use<> {
    let real = path.canonicalize().ok();
    let parent = path.parent().and_then(|parent| parent.canonicalize().ok());
    let beside = parent.zip(path.file_name()).map(|(parent, name)| parent.join(name));
    [Some(path.to_path_buf()), real, beside].into_iter().flatten().map(|path| folded(&path))
}

fn compile(base: &str, glob: &str) -> Result<GlobMatcher, String> {
    let glob = glob.strip_prefix("./").unwrap_or(glob).to_lowercase();
    let whole = if Path::new(&glob).is_absolute() { glob } else { format!("{base}/{glob}") };
    let built = GlobBuilder::new(&whole).literal_separator(true).build();
    Ok(built.map_err(|error| format!("`{whole}` is no glob: {}", error.kind()))?.compile_matcher())
}

/// What is protected, by absolute paths in folded letters.
#[derive(Debug)]
pub(crate) struct Guarded {
    paths: Vec<PathBuf>,
    globs: Vec<GlobMatcher>,
}

impl Guarded {
    /// Says why a file is protected, if it is. The path is absolute and free of links.
    pub(crate) fn reason(&self, path: &Path) -> Option<&'static str> {
        let path = folded(path);
        let directory = |part: Component<'_>| find(DIRECTORIES, part.as_os_str().to_str()?);
        path.components().find_map(directory).or_else(|| self.listed(&path)).or_else(|| by_name(&path))
    }

    fn listed(&self, path: &Path) -> Option<&'static str> {
        let is_listed = self.paths.iter().any(|listed| path.starts_with(listed) || shadows(path, listed))
            || self.globs.iter().any(|glob| glob.is_match(path));
        is_listed.then_some(LISTED)
    }
}

fn by_name(path: &Path) -> Option<&'static str> {
    let name = path.file_name()?.to_str()?;
    let ending = || ENDINGS.iter().find(|(ending, _)| name.ends_with(ending)).map(|(_, reason)| *reason);
    let environment = || name.starts_with(".env.").then_some(ENVIRONMENT);
    find(NAMES, name).or_else(ending).or_else(environment)
}

fn find(table: &[(&str, &'static str)], name: &str) -> Option<&'static str> {
    table.iter().find(|(protected, _)| *protected == name).map(|(_, reason)| *reason)
}

/// A module beside a Python file is imported by it, also in place of one of the same name elsewhere.
fn shadows(path: &Path, listed: &Path) -> bool {
    let is_python = |path: &Path| path.extension().is_some_and(|extension| extension == "py");
    let Some(directory) = listed.parent().filter(|_| is_python(listed) && is_python(path)) else {
        return false;
    };
    let package = path.parent().filter(|_| path.ends_with("__init__.py")).and_then(Path::parent);
    path.parent() == Some(directory) || package == Some(directory)
}

/// Folds names that some file systems take for the same, and removes `.` and what `..` undoes.
fn folded(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => {
                plain.pop();
            }
            Component::CurDir => {}
            Component::Normal(name) => plain.push(folded_name(&name.to_string_lossy())),
            other => plain.push(other.as_os_str()),
        }
    }
    plain
}

/// Folds case, leaves out characters that HFS+ does not look at, and dots and blanks at the end as Windows does.
fn folded_name(name: &str) -> String {
    let is_seen = |sign: &char| !matches!(sign, '\u{200c}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{206a}'..='\u{206f}' | '\u{feff}');
    let seen: String = name.chars().filter(is_seen).flat_map(char::to_lowercase).collect();
    match seen.trim_end_matches(['.', ' ']) {
        "" => seen,
        trimmed => trimmed.to_owned(),
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
        for path in ["/p/code/tools.py", "/p/code/json.py", "/p/code/json/__init__.py"] {
            assert!(protected.reason(Path::new(path)).is_some(), "{path}");
        }
        for path in ["/p/json.py", "/p/code/data/other.py", "/p/code/notes.txt"] {
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
