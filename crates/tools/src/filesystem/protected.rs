//! Files whose change can change what runs later.

use std::path::{Component, Path, PathBuf};

/// The files that only a person may let be written, each time anew: what is written there can make other
/// programs, or the project itself, run something else.
///
/// Some names are protected everywhere: git's own files, manifests, agent files, environment files, the
/// configuration of shells and of MCP. A project adds its own files, such as the Python files of its tools.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Protected {
    paths: Vec<PathBuf>,
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
    (".bash_login", SHELL),
    (".bash_profile", SHELL),
    (".profile", SHELL),
    (".zshrc", SHELL),
    (".zshenv", SHELL),
    (".zprofile", SHELL),
];

/// Endings that are protected wherever they stand.
const ENDINGS: &[(&str, &str)] = &[(".agent", PROJECT), (".worker", PROJECT)];

const GIT: &str = "it belongs to git and can make later git commands run programs";
const PROJECT: &str = "it decides what the agents of a project may do";
const ENVIRONMENT: &str = "it sets the environment of later runs";
const MCP: &str = "it decides which MCP servers are started";
const SHELL: &str = "shells run it when they start";
const LISTED: &str = "the project lists it as a file that it runs";

impl Protected {
    /// Protects these files or directories too. They are relative to the base directory of the toolset.
    pub fn new<P: Into<PathBuf>>(paths: impl IntoIterator<Item = P>) -> Self {
        Self { paths: paths.into_iter().map(Into::into).collect() }
    }

    /// Returns what the paths are when they are relative to this base.
    pub(crate) fn below(&self, base: &Path) -> Self {
        Self { paths: self.paths.iter().map(|path| folded(&base.join(path))).collect() }
    }

    /// Says why a file is protected, if it is. The path is absolute and free of links.
    pub(crate) fn reason(&self, path: &Path) -> Option<&'static str> {
        let path = folded(path);
        if path.components().any(|part| part == Component::Normal(".git".as_ref())) {
            return Some(GIT);
        }
        if self.paths.iter().any(|listed| path.starts_with(listed)) {
            return Some(LISTED);
        }
        let name = path.file_name()?.to_str()?;
        let named = NAMES.iter().find(|(protected, _)| *protected == name);
        let ending = || ENDINGS.iter().find(|(ending, _)| name.ends_with(ending));
        let environment = || name.starts_with(".env.").then_some(ENVIRONMENT);
        named.or_else(ending).map(|(_, reason)| *reason).or_else(environment)
    }
}

/// Folds case, as some file systems do, and removes `.` and what `..` undoes.
fn folded(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => {
                plain.pop();
            }
            Component::CurDir => {}
            other => plain.push(other.as_os_str().to_string_lossy().to_lowercase()),
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_can_change_what_runs_is_protected_wherever_it_stands() {
        let protected = Protected::default();
        for path in [
            "/p/.git/config",
            "/p/sub/.git/hooks/pre-commit",
            "/p/.GIT/config",
            "/p/.gitattributes",
            "/p/project.json",
            "/p/nested/project.toml",
            "/p/agents/main.agent",
            "/p/old.worker",
            "/p/.env",
            "/p/.env.local",
            "/p/.mcp.json",
        ] {
            assert!(protected.reason(Path::new(path)).is_some(), "{path}");
        }
    }

    #[test]
    fn ordinary_files_are_not_protected() {
        let protected = Protected::default();
        for path in ["/p/.gitignore", "/p/git/config", "/p/a.txt", "/p/agent", "/p/environment", "/p/a.py"] {
            assert_eq!(protected.reason(Path::new(path)), None, "{path}");
        }
    }

    #[test]
    fn files_that_the_project_lists_are_protected_below_its_base() {
        let protected = Protected::new(["tools.py", "./plugins/"]).below(Path::new("/p"));
        assert!(protected.reason(Path::new("/p/tools.py")).is_some());
        assert!(protected.reason(Path::new("/p/plugins/a/b.py")).is_some());
        assert_eq!(protected.reason(Path::new("/p/other/tools.py")), None);
    }
}
