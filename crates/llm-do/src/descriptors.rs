//! Long texts that are read in pages, behind file descriptors.

pub use llm_do_core::DescriptorSettingsError;
pub use llm_do_runtime::{
    ContentReader, ContentStore, DescriptorSettings, Descriptors, Excerpt, Fd, FdId, FdInfo, FdSource,
    Position, Reference, Selection, StoredContent,
};
