//! The built-in toolsets of llm-do.
//!
//! - [`Filesystem`] reads, writes, lists and searches the files below one directory.
//! - [`Shell`] runs listed programs without a shell.
//!
//! A toolset is a factory: each agent call opens an instance of its own. The names under which projects list
//! them stand in one table ([`built_in_names`]).

mod catalogue;
mod filesystem;
mod shell;

pub use catalogue::{built_in, built_in_names};
pub use filesystem::{Filesystem, FilesystemSettings, Protected};
pub use shell::{Operands, Shell, ShellRule, ShellSettings, Unlisted, end_all_commands};
