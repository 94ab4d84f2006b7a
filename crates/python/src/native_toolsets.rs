//! The toolsets of Python files that this program makes itself: files and commands.
//!
//! A Python file may set up the toolsets of the older Python program for files and commands. They are never run in
//! Python: their settings become those of the toolsets here. What cannot be said with these is a problem, and what is
//! asked about more often than the file says is a notice; nothing becomes looser.

use std::path::Path;
use std::sync::Arc;

use llm_do_core::{Approval, Name, Toolset};
use llm_do_project::WantedCode;
use llm_do_tools::{ShellRule, ShellSettings, ToolsetEnv, ToolsetRequest, Unlisted, built_in, plain_shell};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::wire::{ToolsetKind, WireToolset};

/// A toolset, with what its author should know.
pub(crate) struct Made {
    pub(crate) toolset: Arc<dyn Toolset>,
    pub(crate) notices: Vec<Remark>,
}

/// What is wrong or worth knowing, and what can be done.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Remark {
    pub(crate) message: String,
    pub(crate) hint: String,
}

impl Remark {
    fn new(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { message: message.into(), hint: hint.into() }
    }
}

/// Makes a toolset as a Python file sets it up.
pub(crate) fn make(found: &WireToolset, wanted: &WantedCode<'_>, env: &ToolsetEnv) -> Result<Made, Remark> {
    let name = Name::from(&*found.name);
    let make = |settings: &Value, read_only: bool| {
        let request = ToolsetRequest {
            built_in: if read_only { "filesystem_project_ro" } else { "filesystem_project" },
            name: &name,
            settings,
            section: None,
            root: wanted.root,
            protected_paths: &wanted.own.paths,
            protected_globs: &wanted.own.globs,
            allowed_secrets: &wanted.own.allowed_secrets,
        };
        match found.kind {
            ToolsetKind::Shell => plain_shell(&request, env),
            ToolsetKind::Filesystem | ToolsetKind::Python => built_in(&request, env),
        }
    };
    let (settings, read_only, notices) = match found.kind {
        ToolsetKind::Shell => (shell_settings(&found.config, wanted.root)?, false, Vec::new()),
        ToolsetKind::Filesystem | ToolsetKind::Python => {
            let (settings, notices) = file_settings(&found.config, found.read_only)?;
            (settings, found.read_only, notices)
        }
    };
    let made = make(&settings, read_only);
    let toolset = made.map_err(|error| {
        Remark::new(
            format!("the toolset `{name}`: {error}"),
            "paths are relative to the project, and stay below it",
        )
    })?;
    Ok(Made { toolset, notices })
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, default)]
struct FileConfig {
    base_path: Option<String>,
    read_approval: bool,
    write_approval: bool,
}

impl Default for FileConfig {
    fn default() -> Self {
        Self { base_path: None, read_approval: false, write_approval: true }
    }
}

/// The settings for files, with what the author should know.
fn file_settings(config: &Value, read_only: bool) -> Result<(Value, Vec<Remark>), Remark> {
    let config: FileConfig = read(config, "`base_path`, `read_approval`, `write_approval`")?;
    if config.read_approval {
        return Err(Remark::new(
            "`read_approval` asks before files are read, which this toolset cannot",
            "leave it out, and write `approval: {read_file: ask, list_files: ask, search_files: ask}` in the agent file",
        ));
    }
    let free = !config.write_approval && !read_only;
    let notices = free.then(|| {
        Remark::new(
            "`write_approval` is false, and writing asks all the same",
            "write `approval: {write_file: pre_approved}` in the agent file to let it write without a question",
        )
    });
    let mut settings = json!({ "root": config.base_path.as_deref().unwrap_or(".") });
    if read_only && let Value::Object(map) = &mut settings {
        map.insert("read_only".to_owned(), true.into());
    }
    Ok((settings, notices.into_iter().collect()))
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
struct ShellConfig {
    rules: Vec<RuleConfig>,
    #[serde(rename = "default")]
    unlisted: Option<UnlistedConfig>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RuleConfig {
    pattern: String,
    #[serde(default = "yes")]
    approval_required: bool,
    #[serde(default)]
    approval_required_if_args: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct UnlistedConfig {
    #[serde(default = "yes")]
    approval_required: bool,
}

fn yes() -> bool {
    true
}

fn shell_settings(config: &Value, project: &Path) -> Result<Value, Remark> {
    let config: ShellConfig = read(config, "`rules`, `default`")?;
    let unlisted = match config.unlisted {
        None => Unlisted::Blocked,
        Some(UnlistedConfig { approval_required: true }) => Unlisted::Ask,
        Some(UnlistedConfig { approval_required: false }) => {
            return Err(Remark::new(
                "`default` lets every command run without a question",
                "set `approval_required` to true there, and list the commands that need no question under `rules`",
            ));
        }
    };
    let rules = config.rules.iter().map(|rule| shell_rule(rule, project)).collect::<Result<_, _>>()?;
    let settings = ShellSettings { rules, unlisted, ..ShellSettings::default() };
    serde_json::to_value(settings).map_err(|error| Remark::new(error.to_string(), "fix the rules"))
}

fn shell_rule(config: &RuleConfig, project: &Path) -> Result<ShellRule, Remark> {
    let pattern = &config.pattern;
    let approval = if config.approval_required { Approval::Ask } else { Approval::PreApproved };
    let message: Vec<&str> = pattern.split_whitespace().collect();
    let rule = match &*message {
        [program] => ShellRule::new(program, approval),
        [program, subcommand] => ShellRule::new(program, approval).subcommand(subcommand),
        _ => {
            return Err(Remark::new(
                format!("the pattern `{pattern}` is not a program, or a program with one subcommand"),
                "write `git` or `git log`",
            ));
        }
    };
    let would_run =
        |argument: &&String| approval == Approval::PreApproved && !rule.asks_for(argument, project);
    match config.approval_required_if_args.iter().find(would_run) {
        None => Ok(rule),
        Some(argument) => Err(Remark::new(
            format!(
                "the rule for `{pattern}` asks for `{argument}`, which this toolset runs without a question"
            ),
            format!("set `approval_required` to true for `{pattern}`"),
        )),
    }
}

fn read<T: for<'a> Deserialize<'a> + Default>(config: &Value, keys: &str) -> Result<T, Remark> {
    match config {
        Value::Null => Ok(T::default()),
        config => T::deserialize(config).map_err(|error| {
            Remark::new(error.to_string(), format!("the settings of this toolset are {keys}"))
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell_settings(config: &Value) -> Result<Value, Remark> {
        super::shell_settings(config, tempfile::tempdir().unwrap().path())
    }

    #[test]
    fn rules_for_commands_become_rules_here() {
        let config = json!({
            "rules": [
                {"pattern": "git log", "approval_required": false},
                {"pattern": "find", "approval_required": false, "approval_required_if_args": ["-exec", "-delete"]},
                {"pattern": "mv"}
            ],
            "default": {"approval_required": true}
        });
        let settings: ShellSettings = serde_json::from_value(shell_settings(&config).unwrap()).unwrap();
        let expected = [
            ShellRule::new("git", Approval::PreApproved).subcommand("log"),
            ShellRule::new("find", Approval::PreApproved),
            ShellRule::new("mv", Approval::Ask),
        ];
        assert_eq!((settings.rules.as_slice(), settings.unlisted), (&expected[..], Unlisted::Ask));
        let nothing: ShellSettings = serde_json::from_value(shell_settings(&json!({})).unwrap()).unwrap();
        assert_eq!(nothing, ShellSettings::default());
    }

    #[test]
    fn what_would_become_looser_is_a_problem() {
        for (config, message) in [
            (json!({"default": {"approval_required": false}}), "every command"),
            (json!({"rules": [{"pattern": "git remote add"}]}), "`git remote add`"),
            (json!({"rules": [{"pattern": ""}]}), "is not a program"),
            (
                json!({"rules": [{"pattern": "ls", "approval_required": false, "approval_required_if_args": ["-l"]}]}),
                "`-l`",
            ),
            (json!({"rules": [{"pattern": "ls", "aproval_required": false}]}), "unknown field"),
            (json!({"rule": []}), "unknown field"),
        ] {
            let problem = shell_settings(&config).unwrap_err();
            assert!(problem.message.contains(message), "{config}: {}", problem.message);
        }
        assert!(file_settings(&json!({"read_approval": true}), false).is_err());
    }

    #[test]
    fn writing_asks_whatever_the_file_says() {
        let (settings, notices) =
            file_settings(&json!({"base_path": "docs", "write_approval": false}), false).unwrap();
        assert_eq!((settings, notices.len()), (json!({"root": "docs"}), 1));
        let (settings, notices) = file_settings(&Value::Null, true).unwrap();
        assert_eq!((settings, notices.len()), (json!({"root": ".", "read_only": true}), 0));
    }
}
