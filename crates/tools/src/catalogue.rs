//! The built-in toolsets by name: the one table of them.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use llm_do_core::{Name, Toolset};
use llm_do_project::WantedToolset;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::dynamic_agents::DynamicAgents;
use crate::filesystem::{Filesystem, FilesystemSettings, Protected};
use crate::shell::{Shell, ShellSettings};

/// A toolset, or what is wrong with its settings.
type Made = Result<Arc<dyn Toolset>, String>;

/// A built-in toolset.
struct BuiltIn {
    name: &'static str,
    make: fn(&WantedToolset<'_>, &Path) -> Made,
}

const BUILT_IN: &[BuiltIn] = &[
    BuiltIn { name: "filesystem_cwd", make: |wanted, cwd| filesystem(wanted, cwd, false) },
    BuiltIn { name: "filesystem_cwd_ro", make: |wanted, cwd| filesystem(wanted, cwd, true) },
    BuiltIn { name: "filesystem_project", make: |wanted, _| filesystem(wanted, wanted.root, false) },
    BuiltIn { name: "filesystem_project_ro", make: |wanted, _| filesystem(wanted, wanted.root, true) },
    BuiltIn { name: "shell_readonly", make: |wanted, _| shell(wanted, Shell::read_only) },
    BuiltIn { name: "shell_file_ops", make: |wanted, _| shell(wanted, Shell::file_ops) },
    BuiltIn { name: "dynamic_agents", make: |wanted, _| dynamic_agents(wanted) },
];

/// Returns the names of all built-in toolsets.
pub fn built_in_names() -> Vec<&'static str> {
    BUILT_IN.iter().map(|built_in| built_in.name).collect()
}

/// Makes a built-in toolset for a process that works in a directory.
pub fn built_in(wanted: &WantedToolset<'_>, working_directory: &Path) -> Result<Arc<dyn Toolset>, String> {
    let found = BUILT_IN.iter().find(|built_in| built_in.name == wanted.built_in);
    let built_in = found.ok_or_else(|| format!("there is no toolset `{}`", wanted.built_in))?;
    (built_in.make)(wanted, working_directory)
}

/// Files below a directory. What is read-only by name stays so whatever its settings say.
fn filesystem(wanted: &WantedToolset<'_>, base: &Path, read_only: bool) -> Made {
    let mut settings: FilesystemSettings = read(wanted.settings)?;
    settings.read_only |= read_only;
    check_below(base, &settings.root)?;
    let toolset = Filesystem::new(wanted.name.clone(), base, settings, Protected::default())?;
    Ok(Arc::new(toolset))
}

/// The root of a toolset lies below the directory that its name says. A project that somebody cloned must not
/// open other directories by its settings.
fn check_below(base: &Path, root: &Path) -> Result<(), String> {
    let real = |path: &Path| path.canonicalize().map_err(|error| format!("`{}`: {error}", path.display()));
    if real(&base.join(root))?.starts_with(real(base)?) {
        return Ok(());
    }
    Err(format!("the root `{}` lies outside `{}`", root.display(), base.display()))
}

/// Commands in the project, by a preset with the settings over it.
fn shell(wanted: &WantedToolset<'_>, preset: fn(Name, PathBuf) -> Result<Shell, String>) -> Made {
    let settings: ShellSettings = read(wanted.settings)?;
    check_below(wanted.root, &settings.root)?;
    let toolset = preset(wanted.name.clone(), wanted.root.to_path_buf())?.with_settings(settings)?;
    Ok(Arc::new(toolset))
}

/// Agents that create agents; the settings are what the created ones get where nothing else is said.
fn dynamic_agents(wanted: &WantedToolset<'_>) -> Made {
    Ok(Arc::new(DynamicAgents::new(wanted.name.clone(), read(wanted.settings)?)?))
}

fn read<T: DeserializeOwned + Default>(settings: &Value) -> Result<T, String> {
    match settings {
        Value::Null => Ok(T::default()),
        settings => serde_json::from_value(settings.clone()).map_err(|error| error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn tools(built_in_name: &str, settings: &Value) -> Result<Vec<String>, String> {
        let name = Name::from("files");
        let root = std::env::temp_dir();
        let wanted = WantedToolset { built_in: built_in_name, name: &name, settings, root: &root };
        let toolset = built_in(&wanted, &root)?;
        Ok(toolset.definitions().iter().map(|definition| definition.name.to_string()).collect())
    }

    #[test]
    fn every_name_makes_a_toolset() {
        for name in built_in_names() {
            assert!(!tools(name, &Value::Null).unwrap().is_empty(), "{name}");
        }
    }

    #[test]
    fn what_is_read_only_by_name_cannot_be_set_otherwise() {
        let names = tools("filesystem_project_ro", &json!({"read_only": false, "prefix": "docs_"})).unwrap();
        assert_eq!(names, ["docs_read_file", "docs_list_files", "docs_search_files"]);
    }

    #[test]
    fn an_unknown_setting_is_an_error() {
        assert!(tools("filesystem_cwd", &json!({"readonly": true})).unwrap_err().contains("`readonly`"));
    }
}
