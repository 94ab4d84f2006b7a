//! Ends the child processes of this program if it is killed itself.
//!
//! A program that is killed (`kill -9`, out of memory) cannot end its children. So a guardian process waits beside it:
//! a shell that reads from a pipe, which the kernel closes when this program ends, for whatever reason. It is started
//! before the first tagged process, and outlives this program only to kill the remaining process groups and, on Linux,
//! every process with a [tag](super::ProcessTag) of this program.
//!
//! A parent-death signal works only for direct children, and must be set between fork and exec, which needs unsafe code.

use std::io::Write;
use std::os::unix::process::CommandExt;
use std::process::{ChildStdin, Command, Stdio};
use std::sync::OnceLock;

use parking_lot::Mutex;
use rustix::process::Pid;

use super::{ProcessTag, TAG_VARIABLE};

/// The program of the guardian.
const SCRIPT: &str = include_str!("guardian.sh");

/// The pipe to the guardian, or `None` if it could not be started.
static GUARDIAN: OnceLock<Option<Mutex<ChildStdin>>> = OnceLock::new();

/// Starts the guardian, once. It must be started before the first tagged process, so that it does not inherit the tag.
pub(super) fn start() {
    GUARDIAN.get_or_init(|| spawn(&ProcessTag::common()).map(Mutex::new));
}

/// Registers a process group.
pub(super) fn add(group: Pid) {
    send(&format!("+{}\n", group.as_raw_nonzero()));
}

/// Removes a process group that has ended.
pub(super) fn remove(group: Pid) {
    send(&format!("-{}\n", group.as_raw_nonzero()));
}

/// Ends the guardian, because nothing is left to kill.
pub(super) fn dismiss() {
    send("quit\n");
}

fn spawn(tag: &ProcessTag) -> Option<ChildStdin> {
    let (low, high) = tag.limits().into_inner();
    let variable = format!("{TAG_VARIABLE}={}", tag.value());
    let mut command = Command::new("/bin/sh");
    command.args(["-c", SCRIPT, "llm-do-guardian", &low.to_string(), &high.to_string(), &variable]);
    command.env_clear().env("PATH", "/usr/bin:/bin").current_dir("/");
    // In a group of its own, so that an interrupt at the terminal does not reach it.
    command.process_group(0).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    // Without `/bin/sh` there is no guardian, and children survive if this program is killed.
    command.spawn().ok()?.stdin.take()
}

fn send(line: &str) {
    if let Some(Some(pipe)) = GUARDIAN.get() {
        // An error means that the guardian has ended.
        let _ = pipe.lock().write_all(line.as_bytes());
    }
}
