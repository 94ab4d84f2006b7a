//! The built-in toolsets of llm-do.
//!
//! - [`Filesystem`] reads, writes, lists and searches the files below one directory.
//!
//! A toolset is a factory: each agent call opens an instance of its own.

mod catalogue;
mod filesystem;

pub use catalogue::{built_in, built_in_names};
pub use filesystem::{Filesystem, FilesystemSettings, Protected};
