//! Child processes of this program: none of them, and nothing that they start, outlives its purpose.
//!
//! What a call starts carries a [mark](process_tag::ProcessTag) and leads a process group, whether it is a command of the shell
//! toolset or the process that runs a project's Python files. If this program is killed, its [guardian] ends them.

mod guardian;
mod process_tag;

use rustix::process::{Pid, Signal, kill_process_group};

pub(crate) use process_tag::{ProcessTag, VARIABLE};

/// Kills every process that a toolset of this program has started and that still runs: commands, and the
/// processes of Python files. For a program that leaves at once and waits for nothing.
pub fn end_all_commands() {
    if ProcessTag::is_in_use() {
        ProcessTag::of_this_process().kill_all();
        guardian::dismiss();
    }
}

/// Has a process group killed if this program is killed.
pub(crate) fn guard_group(group: Pid) {
    guardian::add(group);
}

/// Notes that a process group has ended.
pub(crate) fn forget_group(group: Pid) {
    guardian::remove(group);
}

/// Kills a process group.
pub(crate) fn kill_group(group: Pid) {
    // A group that is gone already is what was wanted.
    let _ = kill_process_group(group, Signal::KILL);
}
