//! What is drawn: the live rows below the transcript, and the tree on the whole screen.

mod detail;
mod live;
mod status;
mod tree;

pub(crate) use live::{Live, Section, activity};
pub(crate) use status::Status;
pub(crate) use tree::{TreeStep, TreeView};
