//! Tools by which an agent works as a process does: with descriptors for texts that are too long to be shown.

mod descriptors;

pub use descriptors::FileDescriptors;
