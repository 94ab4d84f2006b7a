//! What a run or chat shows to the user, and what it reads from the user: the terminal UI, or lines.
//!
//! A front end turns what the user types into a [`UserRequest`] and shows what came of it. It carries nothing out: see
//! [`crate::controller`].

mod kind;
mod line_commands;
mod lines;
mod message_reader;
mod tui;

use std::io;
use std::path::PathBuf;

use llm_do::event::RunId;
use llm_do::value::{Input, Key};

pub(crate) use kind::FrontEndKind;
pub(crate) use lines::LineFrontEnd;
pub(crate) use tui::{TuiFrontEnd, ui_options};

/// Something that the user asks for.
#[derive(Debug)]
pub(crate) enum UserRequest {
    /// Send a message or a typed input to the entry.
    Send(Input),
    /// Call an agent or tool by name, beside the conversation.
    Call { name: String, input: Input },
    /// Show which model answers.
    ShowModel,
    /// Let another model answer.
    UseModel(String),
    /// Show what the conversation used so far.
    ShowUsage,
    /// Show what was allowed for the session.
    ListGrants,
    /// Withdraw a grant, by its number.
    Revoke(String),
    /// Continue in a copy of the conversation, or in another one.
    Fork(Option<u32>),
    /// Go back to before a message, or list the messages.
    GoBack(Option<u32>),
    /// Begin a new conversation.
    Clear,
    /// Name the chat in the record.
    Title(String),
    /// Write the conversation to a file.
    Save(PathBuf),
    /// Stop the run.
    Interrupt,
    /// Stop one call and everything below it.
    Cancel { run: RunId, call: Key },
    /// Something that cannot be carried out, and why.
    Invalid(String),
    /// Leave.
    Quit,
}

/// How a run or chat talks with the user.
pub(crate) enum FrontEnd {
    /// Lines on stderr; messages come from a line editor or a pipe.
    Lines(LineFrontEnd),
    /// The terminal UI.
    Tui(TuiFrontEnd),
}

impl FrontEnd {
    /// Returns the next request; none if there will be no more.
    pub(crate) async fn next(&mut self) -> Option<UserRequest> {
        match self {
            Self::Lines(lines) => lines.next().await,
            Self::Tui(tui) => tui.next().await,
        }
    }

    /// Returns the next request of a user who watches a run; none if the front end is gone. Lines are read only between
    /// runs.
    pub(crate) async fn next_during_run(&mut self) -> Option<UserRequest> {
        match self {
            Self::Lines(_) => std::future::pending().await,
            Self::Tui(tui) => tui.next_during_run().await,
        }
    }

    /// Shows a message that the user did not type here; `is_demo` if the project begins the conversation with it.
    pub(crate) fn show_message(&self, input: &Input, is_demo: bool) {
        let payload = input.clone().into_payload();
        let text = payload.lone_text().unwrap_or(payload.text());
        match self {
            Self::Lines(lines) if is_demo => lines.remark(&format!("> {}", crate::text::visible(text))),
            Self::Lines(_) => {}
            Self::Tui(tui) => tui.show_message(text),
        }
    }

    /// Shows a remark of this program.
    pub(crate) fn remark(&self, text: &str) {
        match self {
            Self::Lines(lines) => lines.remark(text),
            Self::Tui(tui) => tui.remark(text),
        }
    }

    /// Gives the user a text to edit and send again.
    pub(crate) fn offer_draft(&self, text: &str) {
        match self {
            Self::Lines(lines) => lines.remark(&format!("you wrote:\n{}", crate::text::visible(text))),
            Self::Tui(tui) => tui.offer_draft(text),
        }
    }

    /// Shows that a run or other work begins.
    pub(crate) fn show_busy(&self) {
        if let Self::Tui(tui) = self {
            tui.show_busy();
        }
    }

    /// Shows that a request was carried out and the next one can come.
    pub(crate) fn show_ready(&self) {
        if let Self::Tui(tui) = self {
            tui.show_ready();
        }
    }

    /// Gives back what the user sent last, because it was refused before anything was done with it.
    pub(crate) fn give_back(&self) {
        if let Self::Tui(tui) = self {
            tui.give_back();
        }
    }

    /// Shows which model answers from now on, if it is always on view.
    pub(crate) fn show_model(&self, model: Option<&str>) {
        if let Self::Tui(tui) = self {
            tui.show_model(model);
        }
    }

    /// Gives the terminal back.
    pub(crate) fn close(&self) -> io::Result<()> {
        match self {
            Self::Lines(_) => Ok(()),
            Self::Tui(tui) => tui.close(),
        }
    }
}
