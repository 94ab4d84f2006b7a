//! The terminal UI of llm-do: draws the events of runs and asks for approvals.
//!
//! It reads events and answers questions, and knows nothing else of a run. What the person wants otherwise it hands out
//! as a [`Wish`]; what comes of that it is [`Told`].
//!
//! State is plain data that events, keys and the time change; drawing is a function of that state. Only `terminal`
//! touches the terminal, which is given back as it was whatever happens ([`restore`]).

mod app;
mod commands;
mod completion;
mod desk;
mod editor;
mod form;
mod history;
mod markdown;
mod question;
mod scroll;
mod story;
mod terminal;
#[cfg(test)]
mod tests;
mod theme;
mod transcript;
#[cfg(test)]
mod typed;
mod view;
mod wish;
mod wrap;

pub use desk::Desk;
pub use terminal::restore;
pub use theme::Theme;
pub use wish::{EditOutside, OfferedModel, Opening, Told, Wish};
