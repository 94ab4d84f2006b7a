//! Child processes that do not outlive the call or the project that they were started for.
//!
//! Every child carries a [tag](ProcessTag) and leads a process group. A [`ProcessGroup`] kills its programs and their
//! descendants when it is dropped. If this program is killed itself, the [`guardian`] process kills them.

mod guardian;
mod process_group;
mod process_tag;

use rustix::process::{Pid, Signal, kill_process_group};

pub use process_group::{ChildProcess, ProcessGroup};
pub use process_tag::{ProcessTag, TAG_VARIABLE, TaggedProcesses};

/// Kills every running process that was started with a [`ProcessTag`] by this program, for all its runtimes at once.
///
/// This is a kill switch for a command-line program that exits immediately, without waiting for its runs. Calls whose
/// processes are killed fail, so a program that goes on must cancel its runs instead.
pub fn end_all_commands() {
    if ProcessTag::is_in_use() {
        ProcessTag::common().kill_all();
        guardian::dismiss();
    }
}

/// Registers a process group to be killed if this program is killed.
pub fn guard_group(group: Pid) {
    guardian::add(group);
}

/// Removes a process group that has ended from those of [`guard_group`].
pub fn forget_group(group: Pid) {
    guardian::remove(group);
}

/// Kills a process group.
pub fn kill_group(group: Pid) {
    // An error means that the group has already ended.
    let _ = kill_process_group(group, Signal::KILL);
}
