//! The built-in toolsets of llm-do.
//!
//! - [`Filesystem`] reads, writes, lists and searches the files below one directory.
//! - [`Shell`] runs listed programs without a shell.
//! - [`FileDescriptors`] reads, searches and exports texts that are too long to be shown.
//! - [`Process`] starts, forks and tunes agents as processes; [`Stderr`] writes their error log.
//! - `pocket_calculator` evaluates arithmetic.
//!
//! A toolset is a factory: each agent call opens an instance of its own. Projects list toolsets by the names in one
//! table ([`built_in_names`]).
//!
//! This crate does not read projects: toolsets that need one (`dynamic_agents`, Python files) are in crates above it.

mod builtin;
mod calculator;
mod filesystem;
mod pattern;
mod process;
mod shell;
mod toolset_error;
mod toolset_powers;

pub use builtin::{ToolsetEnv, ToolsetRequest, built_in, built_in_names, lone_tools, plain_shell, tool_home};
pub use filesystem::{Filesystem, FilesystemSettings, Protected, PythonReport, diff_preview, small_file};
pub use process::{ExportSettings, FileDescriptors, Process, ProcessSettings, Stderr};
pub use shell::{Operands, ReadScope, SandboxMode, Shell, ShellRule, ShellSettings, Unlisted, WriteScope};
pub use toolset_error::ToolsetError;
pub use toolset_powers::toolset_powers;
