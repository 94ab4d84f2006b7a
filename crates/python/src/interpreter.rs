//! Finds the Python interpreter of a project.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use crate::settings::PythonSettings;

/// Why no interpreter was found.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct InterpreterNotFound {
    pub(crate) message: String,
    pub(crate) hint: String,
}

/// Finds the interpreter: the one that the manifest names, else that of the project's `.venv`, else that of the
/// active virtual environment, else the first on the search path.
pub(crate) fn find(
    named: Option<&str>,
    root: &Path,
    directory: &Path,
    settings: &PythonSettings,
) -> Result<PathBuf, InterpreterNotFound> {
    let search_path = settings.variable("PATH");
    if let Some(named) = named {
        return find_named(named, root, directory, search_path);
    }
    let own = root.join(".venv/bin/python");
    let active = settings.variable("VIRTUAL_ENV").map(|directory| Path::new(directory).join("bin/python"));
    let mut looked_at = Vec::new();
    for path in std::iter::once(own).chain(active) {
        if is_program(&path) {
            return Ok(path);
        }
        looked_at.push(format!("`{}`", path.display()));
    }
    for name in ["python3", "python"] {
        if let Some(path) = on_path(name, directory, search_path) {
            return Ok(path);
        }
        looked_at.push(format!("`{name}` on the search path"));
    }
    Err(InterpreterNotFound {
        message: format!(
            "the project has Python files, and no Python was found: looked at {}",
            looked_at.join(", ")
        ),
        hint: "install Python 3.10 or newer, or name the interpreter as `python` in the manifest".to_owned(),
    })
}

/// The interpreter of a manifest: a path relative to the project, or the name of a program.
fn find_named(
    named: &str,
    root: &Path,
    directory: &Path,
    search_path: Option<&OsStr>,
) -> Result<PathBuf, InterpreterNotFound> {
    let found = match named.contains('/') {
        true => Some(root.join(named)).filter(|path| is_program(path)),
        false => on_path(named, directory, search_path),
    };
    found.ok_or_else(|| InterpreterNotFound {
        message: format!(
            "the manifest names `{named}` as its Python, which is not a program that can be started"
        ),
        hint: "`python` is a path relative to the project, or the name of a program on the search path"
            .to_owned(),
    })
}

pub(crate) fn on_path(name: &str, directory: &Path, search_path: Option<&OsStr>) -> Option<PathBuf> {
    which::which_in(name, Some(search_path?), directory).ok()
}

fn is_program(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    path.metadata().is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn plant(folder: &tempfile::TempDir, path: &str) -> PathBuf {
        let path = folder.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, "#!/bin/sh\n").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        path
    }

    fn settings(variables: &[(&str, &Path)]) -> PythonSettings {
        let environment = variables.iter().map(|(name, value)| (name.into(), value.into())).collect();
        PythonSettings { environment, ..PythonSettings::default() }
    }

    #[test]
    fn the_nearest_interpreter_is_taken() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("project");
        let settings =
            settings(&[("PATH", &folder.path().join("bin")), ("VIRTUAL_ENV", &folder.path().join("active"))]);
        let find = |named| find(named, &root, folder.path(), &settings);
        let plain = plant(&folder, "bin/python");
        assert_eq!(find(None).unwrap(), plain);
        let third = plant(&folder, "bin/python3");
        assert_eq!(find(None).unwrap(), third);
        let active = plant(&folder, "active/bin/python");
        assert_eq!(find(None).unwrap(), active);
        let own = plant(&folder, "project/.venv/bin/python");
        assert_eq!(find(None).unwrap(), own);
        assert_eq!(find(Some("python3")).unwrap(), third);
        assert_eq!(find(Some("./.venv/bin/python")).unwrap(), root.join("./.venv/bin/python"));
    }

    #[test]
    fn where_there_is_none_everything_that_was_looked_at_is_said() {
        let folder = tempfile::tempdir().unwrap();
        let settings = settings(&[("PATH", folder.path()), ("VIRTUAL_ENV", Path::new("/nowhere"))]);
        let error = find(None, folder.path(), folder.path(), &settings).unwrap_err();
        for place in [".venv/bin/python`", "`/nowhere/bin/python`", "`python3` on the search path"] {
            assert!(error.message.contains(place), "{}", error.message);
        }
        let error = find(Some("py9"), folder.path(), folder.path(), &settings).unwrap_err();
        assert!(error.message.contains("`py9`"), "{}", error.message);
    }

    #[test]
    fn of_a_variable_that_is_set_twice_the_last_value_counts() {
        let settings = settings(&[("A", Path::new("1")), ("B", Path::new("")), ("A", Path::new("2"))]);
        assert_eq!(settings.variable("A"), Some(OsStr::new("2")));
        assert_eq!(settings.variable("B"), None);
    }
}
