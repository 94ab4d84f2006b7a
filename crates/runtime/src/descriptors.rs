//! File descriptors: texts that are too long to be shown at once.
//!
//! A long result, a long input or a reference becomes a descriptor: the model reads a header and the first page, and
//! reads on by pages, lines or characters. [`Descriptors`] is the table of one agent call; the texts behind it lie in
//! a [`ContentStore`], in memory or on the disk, and are shared by everyone who holds them.
//!
//! The module decides nothing about when a descriptor is made and runs no tools: the agent loop asks it
//! ([`Descriptors::page_result`], [`Descriptors::page_value`], [`Descriptors::page_input`], [`Descriptors::keep_references`]), and so do the tools
//! of the toolset `file_descriptors`.

mod content;
mod fd;
mod fields;
mod id;
mod pages;
mod references;
mod show;
mod spill;
mod table;

pub use content::{ContentReader, ContentStore, StoredContent};
pub use fd::{Excerpt, Fd, FdInfo, FdSource, Selection};
pub use id::FdId;
pub use llm_do_core::DescriptorSettings;
pub use pages::{Position, page_starts};
pub use references::{Reference, find_references};
pub use show::{extraction_view, first_view, reading_view};
pub use table::Descriptors;
pub(crate) use table::READER;
