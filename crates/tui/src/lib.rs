//! The terminal UI of llm-do: draws the events of runs and asks for approvals.

#[allow(dead_code, unused_imports)]
mod completion;
#[allow(dead_code)]
mod editor;
#[allow(dead_code)]
mod form;
#[allow(dead_code)]
mod history;
mod markdown;
mod theme;
#[cfg(test)]
mod typed;
mod wrap;

pub use theme::Theme;
