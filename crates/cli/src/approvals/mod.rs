//! Who answers approval requests: a person at the terminal, or a program.

mod command;
mod editor;
mod program;
mod terminal;

use std::sync::Arc;

pub(crate) use command::{end as end_approver, start as start_approver};
pub(crate) use editor::{abandon as abandon_editor, edit_at_terminal, edit_file};
pub(crate) use program::ProgramApprover;
pub(crate) use terminal::TerminalApprover;

use llm_do::{Answer, ApprovalRequest, Approver, ApproverError, ExtensionRequest};

/// Whoever can be asked in this process.
#[derive(Clone)]
pub(crate) enum Desk {
    /// A person.
    Terminal(Arc<TerminalApprover>),
    /// A person, in the terminal UI.
    Tui(llm_do_tui::Desk),
    /// A program.
    Program(Arc<ProgramApprover>),
}

impl Approver for Desk {
    fn decide<'a>(
        &'a self,
        request: &'a ApprovalRequest,
    ) -> futures::future::BoxFuture<'a, Result<Answer, ApproverError>> {
        match self {
            Self::Terminal(approver) => approver.decide(request),
            Self::Tui(desk) => desk.decide(request),
            Self::Program(approver) => approver.decide(request),
        }
    }

    fn extend<'a>(&'a self, request: &'a ExtensionRequest) -> futures::future::BoxFuture<'a, Option<u64>> {
        match self {
            Self::Terminal(approver) => approver.extend(request),
            Self::Tui(desk) => desk.extend(request),
            Self::Program(approver) => approver.extend(request),
        }
    }
}
