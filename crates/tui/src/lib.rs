//! The terminal UI of llm-do: draws the events of runs and asks for approvals.
//!
//! It depends on the core alone and runs nothing itself. What the person asks for reaches the program around it as a
//! [`UiCommand`]; the program answers with a [`UiUpdate`].
//!
//! The state is plain data that events, keys and the time change, and drawing is a function of that state. Only
//! `terminal` touches the terminal, which is restored whatever happens ([`restore`]).

mod app;
mod call_tree;
mod completion;
mod editor;
mod event_loop;
mod form;
mod handle;
mod history;
mod markdown;
mod protocol;
mod question;
mod scroll;
mod slash_commands;
mod terminal;
#[cfg(test)]
mod test_support;
#[cfg(test)]
mod tests;
mod theme;
mod transcript;
mod view;
mod wrap;

pub use handle::TuiHandle;
pub use protocol::{ExternalEditor, OfferedModel, UiCommand, UiOptions, UiUpdate};
pub use terminal::restore;
pub use theme::Theme;
