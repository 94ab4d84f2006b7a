//! The terminal UI of llm-do: draws the events of runs and asks for approvals.

mod markdown;
mod theme;
mod wrap;

pub use theme::Theme;
