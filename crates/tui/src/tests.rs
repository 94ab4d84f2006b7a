//! The UI as a person sees it, without a terminal.

mod arguments;
mod asking;
mod driver;
mod events;
mod focus;
mod forms;
mod frames;
mod input;
mod live;
mod panel;
mod requests;
mod runs;
mod tree;
