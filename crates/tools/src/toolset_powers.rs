//! The powers that settings of built-in toolsets bring: what runs or is reached without a question because of them.
//!
//! Settings are destructured without `..`, so that a new one does not compile until somebody has classified it.

use std::path::{Path, PathBuf};

use llm_do_core::Approval;
use llm_do_trust::Power;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::builtin::{ToolsetEnv, ToolsetRequest};
use crate::filesystem::FilesystemSettings;
use crate::process::ExportSettings;
use crate::shell::{Operands, ReadScope, SandboxMode, ShellRule, ShellSettings, WriteScope};

/// Returns the powers of a built-in toolset with these settings. Settings that cannot be read have none: they are
/// reported when the toolset is made.
pub fn toolset_powers(wanted: &ToolsetRequest<'_>, env: &ToolsetEnv) -> Vec<Power> {
    match wanted.built_in {
        "filesystem_cwd" | "filesystem_cwd_ro" => files(wanted, &env.directory, env),
        "filesystem_project" | "filesystem_project_ro" => files(wanted, wanted.root, env),
        "shell_readonly" | "shell_file_ops" => shell(wanted, env),
        "file_descriptors" => descriptors(wanted),
        // Creating agents asks, and the others change nothing outside the conversation.
        _ => Vec::new(),
    }
}

fn read<T: DeserializeOwned + Default>(settings: &Value) -> Option<T> {
    match settings {
        Value::Null => Some(T::default()),
        settings => serde_json::from_value(settings.clone()).ok(),
    }
}

fn files(wanted: &ToolsetRequest<'_>, base: &Path, env: &ToolsetEnv) -> Vec<Power> {
    let Some(settings) = read::<FilesystemSettings>(wanted.settings) else { return Vec::new() };
    let FilesystemSettings {
        root,
        // They name, narrow or bound what is below the root.
        prefix: _,
        read_only: _,
        suffixes: _,
        max_read_bytes: _,
        max_write_bytes: _,
        max_list: _,
        allow_run_later,
    } = settings;
    let shown = |path: PathBuf| root.join(path).to_string_lossy().trim_start_matches("./").to_owned();
    let run_later = allow_run_later.into_iter().map(|path| Power::RunLater { path: shown(path) });
    wide_root(&base.join(&root), wanted.root, env).into_iter().chain(run_later).collect()
}

fn descriptors(wanted: &ToolsetRequest<'_>) -> Vec<Power> {
    let Some(settings) = read::<ExportSettings>(wanted.settings) else { return Vec::new() };
    // Writing to a file asks, and stays below the project.
    let ExportSettings { root: _, read_only: _, suffixes: _, max_write_bytes: _ } = settings;
    Vec::new()
}

/// A directory that is wider than a project, or that the project did not choose.
fn wide_root(directory: &Path, project: &Path, env: &ToolsetEnv) -> Option<Power> {
    let real = directory.canonicalize().ok()?;
    let project = project.canonicalize().ok()?;
    let home = env.home.as_deref().and_then(|home| home.canonicalize().ok());
    let is_wide = real.parent().is_none()
        || home.is_some_and(|home| home.starts_with(&real))
        || std::env::temp_dir().canonicalize().is_ok_and(|temporary| temporary == real)
        || real == Path::new("/tmp");
    if is_wide || !real.starts_with(&project) {
        return Some(Power::Root { which: format!("all files below {}", real.display()) });
    }
    None
}

fn shell(wanted: &ToolsetRequest<'_>, env: &ToolsetEnv) -> Vec<Power> {
    let Some(settings) = read::<ShellSettings>(wanted.settings) else { return Vec::new() };
    let ShellSettings {
        rules,
        // What no rule names asks, or is blocked.
        unlisted: _,
        root,
        timeout: _,
        max_output_bytes: _,
        program_directories,
        environment,
        prefix: _,
        sandbox,
        reads,
        writes,
        network,
    } = settings;
    let mut powers: Vec<Power> = rules.iter().filter_map(command).collect();
    powers.extend(wide_root(&wanted.root.join(root), wanted.root, env));
    let directories = program_directories.iter().map(|path| path.to_string_lossy().into_owned());
    powers.extend(directories.map(|path| Power::ProgramDirectory { path }));
    powers.extend(environment.into_iter().map(|(name, value)| Power::ShellVariable { name, value }));
    let loosened = [
        (sandbox == SandboxMode::Off, "commands outside the sandbox"),
        (reads == ReadScope::Anywhere, "commands that read files anywhere without a question"),
        (writes == Some(WriteScope::Anywhere), "commands that write files anywhere"),
        (network, "commands that use the network"),
    ];
    let loosened = loosened.into_iter().filter(|(is_loose, _)| *is_loose);
    powers.extend(loosened.map(|(_, what)| Power::Sandbox { what: what.to_owned() }));
    powers
}

/// A command that runs without a question.
fn command(rule: &ShellRule) -> Option<Power> {
    let ShellRule { program, subcommand, allow_flags, refuse_flags: _, operands, approval } = rule;
    if *approval != Approval::PreApproved {
        return None;
    }
    let mut flags = allow_flags.clone();
    // Operands that are text are not judged as paths: they may name any file.
    flags.extend((*operands == Operands::Text).then(|| "any operands".to_owned()));
    flags.sort();
    flags.dedup();
    Some(Power::Command { program: program.clone(), subcommand: subcommand.clone(), flags })
}
