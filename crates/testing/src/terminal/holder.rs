//! The shell behind the program.
//!
//! When the leader of a session ends, the kernel closes its terminal and gives it its first modes back, so
//! nobody could see in which state the program left it. So a shell with job control leads, as it does in
//! front of a person: the program is its job, alone in the foreground, can be stopped and resumed, and the
//! terminal outlives it. The shell tells of the job by notes within the output, in an escape sequence of its
//! own, so that a note comes after all that was written before it.

use std::process::Command;

use pty_process::blocking::Command as PtyCommand;
use rustix::process::Pid;

/// The number of the escape sequence (OSC) that carries notes.
const NOTE: &str = "5379";

/// Runs its arguments as a job, and resumes the job for each line read while it is stopped. The standard
/// error is the terminal, the standard input gives the orders.
const SCRIPT: &str = r#"
note() { printf '\033]5379;%s\007' "$1" >&2; }
trap : INT
sh -c 'printf "\033]5379;started %s\007" $$ >&2; exec "$@" <&2 >&2' sh "$@"
code=$?
while kill -0 %% 2>/dev/null; do
    note stopped
    read -r order || exit
    fg >/dev/null
    code=$?
done
trap '' INT QUIT
note "exited $code"
read -r order
"#;

/// What the shell tells about its job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Note {
    Started(Pid),
    Stopped,
    Exited(i32),
}

/// Makes the command of a shell that runs a command as its job.
pub(super) fn of(command: &Command) -> PtyCommand {
    let mut shell = Command::new(shell());
    shell.args(["-m", "-c", SCRIPT, "sh"]).arg(command.get_program()).args(command.get_args());
    if let Some(directory) = command.get_current_dir() {
        shell.current_dir(directory);
    }
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => shell.env(name, value),
            None => shell.env_remove(name),
        };
    }
    shell.into()
}

/// Names the shell that holds the terminal: bash would end with a job that an interrupt ended.
fn shell() -> &'static str {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let has_dash = std::env::split_paths(&path).any(|directory| directory.join("dash").exists());
    if has_dash { "dash" } else { "sh" }
}

impl Note {
    /// Reads the parts of an escape sequence, where it is a note.
    pub(super) fn of(parts: &[&[u8]]) -> Option<Self> {
        let [number, text] = parts else { return None };
        if *number != NOTE.as_bytes() {
            return None;
        }
        let text = std::str::from_utf8(text).ok()?;
        match text.split_once(' ') {
            Some(("started", pid)) => Some(Self::Started(Pid::from_raw(pid.parse().ok()?)?)),
            Some(("exited", code)) => Some(Self::Exited(code.parse().ok()?)),
            _ => (text == "stopped").then_some(Self::Stopped),
        }
    }

    /// Takes the last note out of what a terminal wrote.
    pub(super) fn remove_last(output: &mut Vec<u8>) {
        let start = format!("\u{1b}]{NOTE};");
        let at = output.windows(start.len()).rposition(|window| window == start.as_bytes());
        let Some(at) = at else { return };
        if let Some(length) = output[at..].iter().position(|byte| *byte == 7) {
            output.drain(at..=at + length);
        }
    }
}
