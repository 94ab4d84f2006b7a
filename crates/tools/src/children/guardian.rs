//! Ends the processes of this program if it is killed itself.
//!
//! A program that is killed (`kill -9`, out of memory) cannot end what it started. So a small process waits beside it:
//! a shell that reads from a pipe, which the kernel closes when this program is gone, however it ended. It is started
//! with the first family, outlives this program only to kill the process groups that were left, and on Linux every
//! process with the [mark](super::ProcessTag) of this program, wherever it went.
//!
//! A parent-death signal would do the same only for direct children, and must be set between fork and exec, where Rust
//! code is unsafe.

use std::io::Write;
use std::os::unix::process::CommandExt;
use std::process::{ChildStdin, Command, Stdio};
use std::sync::{Mutex, OnceLock, PoisonError};

use rustix::process::Pid;

use super::{ProcessTag, VARIABLE};

/// What the guardian does.
const SCRIPT: &str = include_str!("guardian.sh");

/// The pipe to the guardian; nothing if it could not be started.
static GUARDIAN: OnceLock<Option<Mutex<ChildStdin>>> = OnceLock::new();

/// Starts the guardian, once. Must come before the first process is started that it ends, so that it does not inherit
/// the mark.
pub(super) fn start() {
    GUARDIAN.get_or_init(|| spawn(&ProcessTag::of_this_process()).map(Mutex::new));
}

/// Tells the guardian of a process group.
pub(super) fn add(group: Pid) {
    tell(&format!("+{}\n", group.as_raw_nonzero()));
}

/// Tells the guardian that a process group has ended.
pub(super) fn remove(group: Pid) {
    tell(&format!("-{}\n", group.as_raw_nonzero()));
}

/// Lets the guardian go: everything has been ended.
pub(super) fn dismiss() {
    tell("quit\n");
}

fn spawn(tag: &ProcessTag) -> Option<ChildStdin> {
    let (low, high) = tag.limits().into_inner();
    let variable = format!("{VARIABLE}={}", tag.value());
    let mut command = Command::new("/bin/sh");
    command.args(["-c", SCRIPT, "llm-do-guardian", &low.to_string(), &high.to_string(), &variable]);
    command.env_clear().env("PATH", "/usr/bin:/bin").current_dir("/");
    // In a group of its own: what a terminal sends to this program does not reach it.
    command.process_group(0).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    // Without a shell, processes end with this program only if it can still end them.
    command.spawn().ok()?.stdin.take()
}

fn tell(line: &str) {
    if let Some(Some(pipe)) = GUARDIAN.get() {
        // A guardian that is gone cannot be told anything.
        let _ = pipe.lock().unwrap_or_else(PoisonError::into_inner).write_all(line.as_bytes());
    }
}
