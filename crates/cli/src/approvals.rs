//! Who answers approval requests: a person at the terminal, or a program.

mod command;
mod editor;
mod program;
mod terminal;

pub(crate) use command::{end as end_approver, start as start_approver};
pub(crate) use editor::{abandon as abandon_editor, edit_at_terminal, edit_file};
pub(crate) use program::ProgramApprover;
pub(crate) use terminal::{TerminalApprover, question as shown_question};
