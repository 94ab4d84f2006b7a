//! The built-in toolsets by name: the one table of them.
//!
//! A project lists a toolset as data: a name, settings, the directory of the project. [`built_in`] makes it. This module
//! does not read projects; the crate that does hands over what it read as a [`ToolsetRequest`].

use std::path::{Path, PathBuf};
use std::sync::Arc;

use llm_do_core::{Name, Toolset};
use llm_do_secrets::SecretFiles;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::calculator as arithmetic;
use crate::filesystem::{Filesystem, FilesystemSettings, Protected, PythonReport, Reads};
use crate::process::{ExportSettings, FileDescriptors, Process, Stderr};
use crate::shell::{Shell, ShellSettings};
use crate::toolset_error::ToolsetError;

/// A toolset, or why it cannot be made.
type ToolsetResult = Result<Arc<dyn Toolset>, ToolsetError>;

/// A built-in toolset.
struct BuiltIn {
    name: &'static str,
    make: fn(&ToolsetRequest<'_>, &ToolsetEnv) -> ToolsetResult,
}

/// A built-in toolset as a project lists it.
#[derive(Debug, Clone, Copy)]
pub struct ToolsetRequest<'a> {
    /// The built-in name.
    pub built_in: &'a str,
    /// The name under which agents list it.
    pub name: &'a Name,
    /// Its settings, or null.
    pub settings: &'a Value,
    /// The settings in the manifest, if these are those of one agent: an agent may narrow them, not loosen them.
    pub section: Option<&'a Value>,
    /// The directory of the project.
    pub root: &'a Path,
    /// Files and directories that decide what the project does, relative to it. Writing to them always asks.
    pub protected_paths: &'a [PathBuf],
    /// Globs of such files, relative to the project.
    pub protected_globs: &'a [String],
    /// Globs of files that look secret and may be read without a question, relative to the project.
    pub allowed_secrets: &'a [String],
}

impl ToolsetRequest<'_> {
    fn secret_files(&self) -> Result<SecretFiles, ToolsetError> {
        let globs = self.allowed_secrets.iter().map(String::as_str);
        SecretFiles::new(real(self.root)?, globs).map_err(|error| ToolsetError::Setting(error.to_string()))
    }
}

/// What toolsets know about the process that they work in.
#[derive(Debug, Clone, Default)]
pub struct ToolsetEnv {
    /// Its working directory.
    pub directory: PathBuf,
    /// The home directory of the user.
    pub home: Option<PathBuf>,
    /// Files and directories of the process itself that are written only after a fresh approval.
    pub own: Vec<PathBuf>,
    /// Directories of the process itself that no tool reads or writes, such as its records and configuration.
    pub private: Vec<PathBuf>,
    /// Directories of the process itself that no tool writes to, such as its cache.
    pub read_only: Vec<PathBuf>,
    /// What the Python host of the project has imported.
    pub python_report: PythonReport,
}

const BUILT_IN: &[BuiltIn] = &[
    BuiltIn { name: "filesystem_cwd", make: |wanted, env| filesystem(wanted, env, Base::Working) },
    BuiltIn { name: "filesystem_cwd_ro", make: |wanted, env| read_only(wanted, env, Base::Working) },
    BuiltIn { name: "filesystem_project", make: |wanted, env| filesystem(wanted, env, Base::Project) },
    BuiltIn { name: "filesystem_project_ro", make: |wanted, env| read_only(wanted, env, Base::Project) },
    BuiltIn { name: "shell_readonly", make: |wanted, env| shell(wanted, env, Shell::read_only) },
    BuiltIn { name: "shell_file_ops", make: |wanted, env| shell(wanted, env, Shell::file_ops) },
    BuiltIn { name: "process", make: |wanted, _| process(wanted) },
    BuiltIn { name: "stderr", make: |wanted, _| stderr(wanted) },
    BuiltIn { name: "file_descriptors", make: file_descriptors },
    BuiltIn { name: "pocket_calculator", make: |wanted, _| calculator(wanted) },
];

/// Tools that agents may list alone, and the toolset from which they come then.
const LONE_TOOLS: &[(&str, &str)] = &[
    ("read_file", "filesystem_project_ro"),
    ("list_files", "filesystem_project_ro"),
    ("search_files", "filesystem_project_ro"),
    ("write_file", "filesystem_project"),
    ("edit_file", "filesystem_project"),
    ("spawn", "process"),
    ("fork", "process"),
    ("goto", "process"),
    ("tune", "process"),
    ("write_stderr", "stderr"),
    ("read_fd", "file_descriptors"),
    ("grep_fd", "file_descriptors"),
    ("list_fd", "file_descriptors"),
    ("close_fd", "file_descriptors"),
    ("fd_to_file", "file_descriptors"),
    ("calculator", "pocket_calculator"),
];

/// Returns the toolset of a tool that agents may list alone.
pub fn tool_home(tool: &str) -> Option<&'static str> {
    let (_, home) = LONE_TOOLS.iter().find(|(name, _)| *name == tool)?;
    BUILT_IN.iter().any(|built_in| built_in.name == *home).then_some(home)
}

/// Returns the names of all tools that agents may list alone.
pub fn lone_tools() -> Vec<&'static str> {
    LONE_TOOLS.iter().map(|(name, _)| *name).filter(|name| tool_home(name).is_some()).collect()
}

/// Returns the names of all built-in toolsets.
pub fn built_in_names() -> Vec<&'static str> {
    BUILT_IN.iter().map(|built_in| built_in.name).collect()
}

/// Makes a built-in toolset.
pub fn built_in(wanted: &ToolsetRequest<'_>, env: &ToolsetEnv) -> Result<Arc<dyn Toolset>, ToolsetError> {
    let found = BUILT_IN.iter().find(|built_in| built_in.name == wanted.built_in);
    let built_in = found.ok_or_else(|| ToolsetError::Unknown { name: wanted.built_in.to_owned() })?;
    (built_in.make)(wanted, env)
}

/// The directory that a filesystem toolset starts from.
#[derive(Clone, Copy)]
enum Base {
    Working,
    Project,
}

/// Files below a directory.
fn filesystem(wanted: &ToolsetRequest<'_>, env: &ToolsetEnv, base: Base) -> ToolsetResult {
    let settings = read(wanted.settings)?;
    make_filesystem(wanted, env, base, settings)
}

/// Files below a directory, to be looked at only.
fn read_only(wanted: &ToolsetRequest<'_>, env: &ToolsetEnv, base: Base) -> ToolsetResult {
    if wanted.settings.get("read_only") == Some(&Value::Bool(false)) {
        return Err(ToolsetError::Setting(format!(
            "`{}` is read-only by its name: remove `read_only: false`, or use `{}`",
            wanted.built_in,
            wanted.built_in.trim_end_matches("_ro")
        )));
    }
    let settings = FilesystemSettings { read_only: true, ..read(wanted.settings)? };
    make_filesystem(wanted, env, base, settings)
}

fn make_filesystem(
    wanted: &ToolsetRequest<'_>,
    env: &ToolsetEnv,
    base: Base,
    settings: FilesystemSettings,
) -> ToolsetResult {
    let base = match base {
        Base::Working => &env.directory,
        Base::Project => wanted.root,
    };
    let base = &real(base)?;
    check_below(base, &settings.root)?;
    check_narrower::<FilesystemSettings>(wanted, base, &settings)?;
    let toolset = Filesystem::new(wanted.name, base, settings)?.protect(&protected(wanted, env)?)?;
    Ok(Arc::new(toolset.secret_files(wanted.secret_files()?)?))
}

/// What one agent sets may narrow what the manifest sets for the toolset, and not loosen it.
fn check_narrower<Settings: DeserializeOwned + Default + Into<FilesystemSettings>>(
    wanted: &ToolsetRequest<'_>,
    base: &Path,
    settings: &FilesystemSettings,
) -> Result<(), ToolsetError> {
    let Some(section) = wanted.section else { return Ok(()) };
    let section: FilesystemSettings = read::<Settings>(section)?.into();
    check_below(&base.join(&section.root), &base.join(&settings.root))?;
    match settings.loosens(&section) {
        Some(key) => Err(loosened(key, wanted)),
        None => Ok(()),
    }
}

/// The files of the project and of the process, by absolute paths: a toolset may have another base.
fn protected(wanted: &ToolsetRequest<'_>, env: &ToolsetEnv) -> Result<Protected, ToolsetError> {
    let absolute = |path: &Path| std::path::absolute(path).map_err(ToolsetError::path(path));
    let paths = wanted.protected_paths.iter().chain(&env.own);
    let paths = paths.map(|path| absolute(path)).collect::<Result<Vec<_>, _>>()?;
    let root = globset::escape(&real(wanted.root)?.to_string_lossy());
    let globs = wanted.protected_globs.iter().map(|glob| format!("{root}/{}", glob.trim_start_matches("./")));
    let protected = Protected::new(paths).and_matching(globs);
    let protected = protected.with_python(wanted.root.to_path_buf(), env.python_report.clone());
    Ok(protected.and_private(&env.private, Reads::Blocked).and_private(&env.read_only, Reads::Allowed))
}

/// The root of a toolset lies below the directory that its name says. A project that somebody cloned must not
/// open other directories by its settings.
fn check_below(base: &Path, root: &Path) -> Result<(), ToolsetError> {
    if real(&base.join(root))?.starts_with(real(base)?) {
        return Ok(());
    }
    Err(ToolsetError::RootOutside { root: root.to_path_buf(), base: base.to_path_buf() })
}

fn real(path: &Path) -> Result<PathBuf, ToolsetError> {
    path.canonicalize().map_err(ToolsetError::path(path))
}

/// Makes a shell toolset without a preset, whatever built-in name is requested: only its settings list commands.
pub fn plain_shell(wanted: &ToolsetRequest<'_>, env: &ToolsetEnv) -> Result<Arc<dyn Toolset>, ToolsetError> {
    shell(wanted, env, |name, root| Shell::new(name, root, ShellSettings::default()))
}

/// Commands in the project, by a preset with the settings over it.
fn shell(
    wanted: &ToolsetRequest<'_>,
    env: &ToolsetEnv,
    preset: fn(Name, PathBuf) -> Result<Shell, ToolsetError>,
) -> ToolsetResult {
    let mut settings: ShellSettings = read(wanted.settings)?;
    let root = real(wanted.root)?;
    check_below(&root, &settings.root)?;
    let toolset = preset(wanted.name.clone(), wanted.root.to_path_buf())?;
    if let Some(section) = wanted.section {
        let section: ShellSettings = read(section)?;
        check_below(&root.join(&section.root), &root.join(&settings.root))?;
        let listed = toolset.preset_rules().iter().chain(&section.rules);
        if let Some(key) = settings.loosens(&section, listed) {
            return Err(loosened(key, wanted));
        }
        settings = settings.over(&section);
    }
    let toolset = toolset.with_settings(settings)?.secret_files(wanted.secret_files()?);
    Ok(Arc::new(toolset.protect(&protected(wanted, env)?)?))
}

fn loosened(key: &'static str, wanted: &ToolsetRequest<'_>) -> ToolsetError {
    ToolsetError::Loosened { key, toolset: wanted.name.clone() }
}

/// Arithmetic.
fn calculator(wanted: &ToolsetRequest<'_>) -> ToolsetResult {
    read::<NoSettings>(wanted.settings)?;
    Ok(arithmetic::toolset(wanted.name.clone())?)
}

/// Long texts; they are written to files of the project, unless they may only be looked at.
fn file_descriptors(wanted: &ToolsetRequest<'_>, env: &ToolsetEnv) -> ToolsetResult {
    let settings: ExportSettings = read(wanted.settings)?;
    let base = &real(wanted.root)?;
    check_below(base, &settings.root)?;
    check_narrower::<ExportSettings>(wanted, base, &settings.clone().into())?;
    let toolset = FileDescriptors::new(wanted.name.clone(), base, settings, &protected(wanted, env)?)?;
    Ok(Arc::new(toolset))
}

/// What an agent does as a process.
fn process(wanted: &ToolsetRequest<'_>) -> ToolsetResult {
    Ok(Arc::new(Process::new(wanted.name.clone(), read(wanted.settings)?)?))
}

/// The error log.
fn stderr(wanted: &ToolsetRequest<'_>) -> ToolsetResult {
    read::<NoSettings>(wanted.settings)?;
    Ok(Arc::new(Stderr::new(wanted.name.clone())?))
}

/// The settings of toolsets that have none.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct NoSettings {}

fn read<T: DeserializeOwned + Default>(settings: &Value) -> Result<T, ToolsetError> {
    match settings {
        Value::Null => Ok(T::default()),
        settings => Ok(serde_json::from_value(settings.clone())?),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn tools(built_in_name: &str, settings: &Value) -> Result<Vec<String>, String> {
        tools_over(None, built_in_name, settings)
    }

    fn tools_over(section: Option<&Value>, built_in: &str, settings: &Value) -> Result<Vec<String>, String> {
        let name = Name::from("files");
        let root = std::env::temp_dir();
        let env = ToolsetEnv { directory: root.clone(), ..ToolsetEnv::default() };
        let wanted = ToolsetRequest {
            built_in,
            name: &name,
            settings,
            section,
            root: &root,
            protected_paths: &[],
            protected_globs: &[],
            allowed_secrets: &[],
        };
        let toolset = super::built_in(&wanted, &env).map_err(|error| error.to_string())?;
        Ok(toolset.definitions().iter().map(|definition| definition.name.to_string()).collect())
    }

    #[test]
    fn every_name_makes_a_toolset() {
        for name in built_in_names() {
            assert!(!tools(name, &Value::Null).unwrap().is_empty(), "{name}");
        }
    }

    #[test]
    fn every_tool_that_can_be_listed_alone_is_in_its_toolset() {
        for tool in lone_tools() {
            let home = tool_home(tool).unwrap();
            assert!(tools(home, &Value::Null).unwrap().iter().any(|name| name == tool), "{tool} in {home}");
        }
        assert_eq!(tool_home("shell"), None);
    }

    #[test]
    fn what_is_read_only_by_name_cannot_be_set_otherwise() {
        let names = tools("filesystem_project_ro", &json!({"prefix": "docs_"})).unwrap();
        assert_eq!(names, ["docs_read_file", "docs_list_files", "docs_search_files"]);
        let error = tools("filesystem_project_ro", &json!({"read_only": false})).unwrap_err();
        assert!(error.contains("is read-only by its name"), "{error}");
    }

    #[test]
    fn an_unknown_setting_is_an_error() {
        assert!(tools("filesystem_cwd", &json!({"readonly": true})).unwrap_err().contains("`readonly`"));
    }

    #[test]
    fn a_root_outside_is_an_error() {
        for root in ["..", "/etc"] {
            let error = tools("filesystem_project", &json!({"root": root})).unwrap_err();
            assert!(error.contains("lies outside"), "{error}");
        }
    }

    #[test]
    fn settings_of_an_agent_narrow_those_of_the_manifest() {
        let section = json!({"read_only": true});
        let over = |settings| tools_over(Some(&section), "filesystem_project", &settings);
        assert_eq!(over(json!({"read_only": true, "max_list": 5})).unwrap().len(), 3);
        let error = over(json!({"read_only": false})).unwrap_err();
        assert!(error.starts_with("`read_only` allows more than the manifest does for `files`"), "{error}");
        let section = json!({"rules": [{"program": "cargo", "approval": "ask"}], "sandbox": "required"});
        let over = |settings| tools_over(Some(&section), "shell_file_ops", &settings);
        let stricter = json!([{"program": "mv", "approval": "blocked"}]);
        assert_eq!(
            over(json!({"sandbox": "required", "timeout": 20, "rules": stricter})).unwrap(),
            ["shell"]
        );
        for (key, settings) in [
            ("sandbox", json!({})),
            ("network", json!({"sandbox": "required", "network": true})),
            ("writes", json!({"sandbox": "required", "writes": "anywhere"})),
            ("default", json!({"sandbox": "required", "default": "ask"})),
            ("timeout", json!({"sandbox": "required", "timeout": 31})),
            ("rules", json!({"sandbox": "required", "rules": [{"program": "rm", "approval": "ask"}]})),
            (
                "rules",
                json!({"sandbox": "required", "rules": [{"program": "mv", "approval": "ask", "allow_flags": ["*"]}]}),
            ),
        ] {
            let error = over(settings).unwrap_err();
            assert!(error.starts_with(&format!("`{key}` allows more")), "{error}");
        }
    }
}
