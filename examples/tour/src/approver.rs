//! Asks a person at the terminal.

use std::io::{BufRead, IsTerminal, Write};

use llm_do::approval::{Approver, ApproverError, Scope};
use llm_do::prelude::*;
use tokio::sync::Mutex;

/// The value of the flag `--approve`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Approve {
    Ask,
    All,
    None,
}

impl Approve {
    pub(crate) fn from_arguments(mut arguments: impl Iterator<Item = String>) -> Result<Self, String> {
        let approve = match (arguments.next().as_deref(), arguments.next().as_deref()) {
            (None, _) => Self::Ask,
            (Some("--approve"), Some("ask")) => Self::Ask,
            (Some("--approve"), Some("all")) => Self::All,
            (Some("--approve"), Some("none")) => Self::None,
            (Some(other), _) => return Err(format!("`{other}` is not understood here")),
        };
        match arguments.next() {
            Some(other) => Err(format!("`{other}` is too much")),
            None => Ok(approve),
        }
    }

    pub(crate) fn mode(self) -> ApprovalMode {
        match self {
            Self::Ask => ApprovalMode::Prompt,
            Self::All => ApprovalMode::ApproveAll,
            Self::None => ApprovalMode::RejectAll,
        }
    }
}

/// The terminal, one question at a time.
pub(crate) struct TerminalApprover(Mutex<()>);

impl TerminalApprover {
    /// Returns an approver if there is a terminal to ask at.
    pub(crate) fn open() -> Option<Self> {
        (std::io::stdin().is_terminal() && std::io::stderr().is_terminal()).then(|| Self(Mutex::new(())))
    }
}

impl Approver for TerminalApprover {
    fn decide<'a>(
        &'a self,
        request: &'a ApprovalRequest,
    ) -> futures::future::BoxFuture<'a, Result<Answer, ApproverError>> {
        Box::pin(async move {
            let _one_at_a_time = self.0.lock().await;
            let question =
                format!("\n{request}\n[y] once  [a] every call of this tool  [n] deny  [q] stop > ");
            let answer = tokio::task::spawn_blocking(move || ask(&question)).await;
            answer.map_err(|error| ApproverError(error.to_string()))?
        })
    }
}

fn ask(question: &str) -> Result<Answer, ApproverError> {
    let failed = |error: std::io::Error| ApproverError(error.to_string());
    eprint!("{question}");
    std::io::stderr().flush().map_err(failed)?;
    let mut line = String::new();
    if std::io::stdin().lock().read_line(&mut line).map_err(failed)? == 0 {
        return Err(ApproverError("the terminal was closed".to_owned()));
    }
    Ok(match line.trim() {
        "y" => Answer::Once,
        "a" => Answer::Session(Scope::Tool),
        "q" => Answer::Stop,
        message => Answer::Deny(message.trim_start_matches('n').trim().to_owned()),
    })
}
