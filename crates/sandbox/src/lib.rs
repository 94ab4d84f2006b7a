//! Child processes: starts them, confines them where the system can, and ends them with everything they started.
//!
//! - [`Sandbox`] limits what a process and its descendants may read, write and reach, by Landlock and seccomp on Linux.
//!   [`sandbox_status`] returns what this system supports.
//! - [`ProcessGroup`] starts programs and kills them, and every process that they left behind, when it is dropped.
//! - [`ProcessTag`] marks processes so that they are found again after they left their process group; it serves
//!   programs that do not start their children through a [`ProcessGroup`].
//!
//! This crate does not decide which program may run, reads no configuration, and depends on no other crate of llm-do:
//! its users are the shell toolset and the process that runs a project's Python files.

mod processes;
mod sandbox;

#[doc(hidden)]
pub use processes::end_all_commands;
pub use processes::{
    ChildProcess, ProcessGroup, ProcessTag, TAG_VARIABLE, TaggedProcesses, forget_group, guard_group,
    kill_group,
};
pub use sandbox::{PreparedSandbox, Reads, Sandbox, SandboxStatus, Writes, sandbox_status};
