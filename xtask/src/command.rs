//! Runs commands in the root of the workspace and shows them.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail};

/// Returns the root of the workspace, by the location of this package.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(1).unwrap_or(Path::new(".")).to_owned()
}

/// Prints a line on stderr.
pub(crate) fn tell(line: &str) {
    // Nothing can be done about a stderr that is closed.
    let _ = writeln!(std::io::stderr(), "{line}");
}

/// Returns a command that will run in the root of the workspace.
pub(crate) fn in_root(program: &str, arguments: &[&str]) -> Command {
    // cargo sets variables for the programs that it runs. A child cargo must not take them for its own.
    let inherited =
        ["CARGO", "CARGO_MANIFEST_DIR", "CARGO_MANIFEST_PATH", "CARGO_PKG_NAME", "CARGO_PKG_VERSION"];
    let mut command = Command::new(program);
    for variable in inherited {
        command.env_remove(variable);
    }
    command.args(arguments).current_dir(root());
    command
}

/// Runs a command to its end.
pub(crate) fn run(program: &str, arguments: &[&str]) -> anyhow::Result<()> {
    finish(in_root(program, arguments))
}

/// Runs a command with further arguments of the user.
pub(crate) fn run_with(program: &str, arguments: &[&str], further: &[String]) -> anyhow::Result<()> {
    let mut command = in_root(program, arguments);
    command.args(further);
    finish(command)
}

/// Shows a command, runs it, and fails if it fails.
pub(crate) fn finish(mut command: Command) -> anyhow::Result<()> {
    let shown = describe(&command);
    tell(&format!("$ {shown}"));
    let status = command.status().with_context(|| format!("`{shown}` could not be started"))?;
    if !status.success() {
        bail!("`{shown}` failed: {status}");
    }
    Ok(())
}

/// Returns a command as it would be typed, with the variables that are set for it.
fn describe(command: &Command) -> String {
    let variables = command.get_envs().filter_map(|(name, value)| Some((name, value?)));
    let variables = variables.map(|(name, value)| format!("{}={}", name.display(), value.display()));
    let program = command.get_program().display().to_string();
    let arguments = command.get_args().map(|argument| argument.display().to_string());
    variables.chain([program]).chain(arguments).collect::<Vec<_>>().join(" ")
}
