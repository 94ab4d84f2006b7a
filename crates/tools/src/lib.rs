//! The built-in toolsets of llm-do.
//!
//! - [`Filesystem`] reads, writes, lists and searches the files below one directory.
//!
//! A toolset is a factory: each agent call opens an instance of its own.

mod filesystem;

pub use filesystem::{Filesystem, FilesystemSettings, Protected};
