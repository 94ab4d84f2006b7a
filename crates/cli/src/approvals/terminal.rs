//! Asks a person at the terminal, also where stdin is a pipe.
//!
//! The question is shown literally and completely; what was typed before it appeared is thrown away, so that
//! nothing is approved unseen. One question is asked at a time.

use std::fs::File;
use std::io::{IsTerminal, Read, Write, stderr, stdin, stdout};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures::future::BoxFuture;
use llm_do::approval::{
    Answer, AnsweredVia, ApprovalRequest, Approver, ApproverError, ExtensionRequest, Scope,
};
use llm_do_core::visible_json;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::termios::{QueueSelector, tcflush};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::editor;
use crate::console::{Console, Paint};
use crate::event_barrier::EventBarrier;
use crate::text::{visible, visible_line};

/// How often a waiting question looks whether it is still needed.
const LOOK: rustix::time::Timespec = rustix::time::Timespec { tv_sec: 0, tv_nsec: 100_000_000 };

/// A person at the terminal.
pub(crate) struct TerminalApprover {
    console: Arc<Console>,
    /// How far those are who show what led to a question.
    readers: Arc<EventBarrier>,
    terminal: Arc<File>,
    turn: tokio::sync::Mutex<()>,
    waiting: AtomicUsize,
}

impl TerminalApprover {
    /// The person, where there is a terminal and somebody looks at it.
    pub(crate) fn open(console: Arc<Console>, readers: Arc<EventBarrier>) -> Option<Self> {
        if !stderr().is_terminal() && !stdin().is_terminal() && !stdout().is_terminal() {
            return None;
        }
        let terminal = File::options().read(true).write(true).open("/dev/tty").ok()?;
        Some(Self {
            console,
            readers,
            terminal: Arc::new(terminal),
            turn: tokio::sync::Mutex::new(()),
            waiting: AtomicUsize::new(0),
        })
    }

    /// Asks when it is this question's turn and what led to it is shown. Giving the future up takes the question back.
    async fn ask<T: Send + 'static>(
        &self,
        shown: impl Future<Output = ()>,
        question: impl FnOnce(&TerminalQuestion) -> Result<T, ApproverError> + Send + 'static,
    ) -> Result<T, ApproverError> {
        let _counted = Counted::new(&self.waiting);
        let _turn = self.turn.lock().await;
        shown.await;
        let _suspended = self.console.suspend();
        let withdrawn = CancellationToken::new();
        let _guard = withdrawn.clone().drop_guard();
        let conversation = TerminalQuestion {
            terminal: self.terminal.clone(),
            paint: self.console.paint,
            plain: self.console.plain,
            others: self.waiting.load(Ordering::Relaxed).saturating_sub(1),
            withdrawn,
        };
        let asked = tokio::task::spawn_blocking(move || question(&conversation)).await;
        asked.map_err(|error| ApproverError(error.to_string()))?
    }
}

struct Counted<'a>(&'a AtomicUsize);

impl<'a> Counted<'a> {
    fn new(count: &'a AtomicUsize) -> Self {
        count.fetch_add(1, Ordering::Relaxed);
        Self(count)
    }
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Approver for TerminalApprover {
    fn via(&self) -> AnsweredVia {
        AnsweredVia::Terminal
    }

    fn decide<'a>(&'a self, request: &'a ApprovalRequest) -> BoxFuture<'a, Result<Answer, ApproverError>> {
        Box::pin(async move {
            let shown = self.readers.with_question(&request.id);
            let asked = request.clone();
            self.ask(shown, move |conversation| conversation.decide(&asked)).await
        })
    }

    fn extend<'a>(&'a self, request: &'a ExtensionRequest) -> BoxFuture<'a, Option<u64>> {
        let request = request.clone();
        Box::pin(async move {
            let shown = self.readers.until_quiet();
            self.ask(shown, move |conversation| conversation.extend(&request)).await.ok().flatten()
        })
    }
}

/// One question and its answer.
struct TerminalQuestion {
    terminal: Arc<File>,
    paint: Paint,
    plain: bool,
    others: usize,
    withdrawn: CancellationToken,
}

impl TerminalQuestion {
    fn decide(&self, request: &ApprovalRequest) -> Result<Answer, ApproverError> {
        self.say(&question(request, self.paint, self.others))?;
        // What was typed before the question could be read is not an answer to it.
        let _ = tcflush(&*self.terminal, QueueSelector::IFlush);
        loop {
            self.say(&self.choices(request))?;
            let line = self.read_line()?;
            let (key, message) = line.trim().split_once(' ').unwrap_or((line.trim(), ""));
            match key {
                "y" => return Ok(Answer::Once),
                "n" => return self.deny(message),
                "q" => return Ok(Answer::Stop),
                "a" => {
                    if let Some(scope) = self.scope(request)? {
                        return Ok(Answer::Session(scope));
                    }
                }
                "e" => {
                    if let Some(edited) = self.edit(request.arguments.value())? {
                        return Ok(Answer::Revise(edited));
                    }
                }
                _ => self.say("y, a, e, n or q, then Enter\n")?,
            }
        }
    }

    /// Lets the person edit the arguments. What would be done with them is shown with the next question; nothing
    /// changed is not an answer.
    fn edit(&self, arguments: &Value) -> Result<Option<Value>, ApproverError> {
        match editor::edit(arguments, &self.terminal) {
            Ok(edited) if edited == *arguments => {
                self.say("nothing was changed\n")?;
                Ok(None)
            }
            Ok(edited) => Ok(Some(edited)),
            Err(problem) => {
                self.say(&format!("{}\n", visible(&problem)))?;
                Ok(None)
            }
        }
    }

    fn choices(&self, request: &ApprovalRequest) -> String {
        if self.plain {
            let always = if request.scopes.is_empty() { "" } else { " a to allow more," };
            return format!("Type y to allow it once,{always} e to edit, n to deny, q to stop, then Enter: ");
        }
        let always = if request.scopes.is_empty() { "" } else { "  [a] always..." };
        self.paint.bold(&format!("[y] once{always}  [e] edit  [n] deny  [q] stop > "))
    }

    fn deny(&self, message: &str) -> Result<Answer, ApproverError> {
        if !message.is_empty() {
            return Ok(Answer::Deny(message.to_owned()));
        }
        self.say("why? the model reads it (Enter: no reason) > ")?;
        Ok(Answer::Deny(self.read_line()?.trim().to_owned()))
    }

    /// Lets the person choose how far the answer reaches.
    fn scope(&self, request: &ApprovalRequest) -> Result<Option<Scope>, ApproverError> {
        if request.scopes.is_empty() {
            self.say("this call must ask every time\n")?;
            return Ok(None);
        }
        let scopes: Vec<Scope> = [Scope::Exact].into_iter().chain(request.scopes.clone()).collect();
        let lines = scopes
            .iter()
            .enumerate()
            .map(|(index, scope)| format!("  {}  {}\n", index + 1, visible(&scope.to_string())));
        self.say(&format!(
            "until this session ends, allow {}\n{}number (Enter: back) > ",
            visible(&request.agent),
            lines.collect::<String>()
        ))?;
        let line = self.read_line()?;
        let chosen = line.trim().parse::<usize>().ok().and_then(|number| number.checked_sub(1));
        Ok(chosen.and_then(|index| scopes.get(index).cloned()))
    }

    fn extend(&self, request: &ExtensionRequest) -> Result<Option<u64>, ApproverError> {
        let exhausted = &request.exhausted;
        let unit = exhausted.what.unit();
        let text = format!(
            "\n{}\n{}\nextend by how many {unit}? (Enter: not at all) > ",
            self.paint.bold(&visible(&request.path)),
            visible(&exhausted.to_string())
        );
        self.say(&text)?;
        let _ = tcflush(&*self.terminal, QueueSelector::IFlush);
        loop {
            let line = self.read_line()?;
            match (line.trim(), exhausted.what.read(&line)) {
                ("", _) => return Ok(None),
                (_, Some(amount)) => return Ok(Some(amount)),
                _ => self.say("a number, or Enter for none > ")?,
            }
        }
    }

    fn say(&self, text: &str) -> Result<(), ApproverError> {
        (&*self.terminal).write_all(text.as_bytes()).map_err(|error| ApproverError(error.to_string()))
    }

    /// Reads a line, until the question is taken back.
    fn read_line(&self) -> Result<String, ApproverError> {
        let failed = |error: std::io::Error| ApproverError(error.to_string());
        let mut line = Vec::new();
        loop {
            if self.withdrawn.is_cancelled() {
                return Err(ApproverError("the question was taken back".to_owned()));
            }
            let mut waiting = [PollFd::new(&*self.terminal, PollFlags::IN)];
            if poll(&mut waiting, Some(&LOOK)).map_err(|error| failed(error.into()))? == 0 {
                continue;
            }
            let mut byte = [0];
            if (&*self.terminal).read(&mut byte).map_err(failed)? == 0 {
                return Err(ApproverError("the terminal was closed".to_owned()));
            }
            if byte[0] == b'\n' {
                return Ok(String::from_utf8_lossy(&line).into_owned());
            }
            line.push(byte[0]);
        }
    }
}

/// The whole arguments, a little to the right.
fn shown_arguments(arguments: &Value) -> String {
    visible_json(arguments).lines().map(|line| format!("  {line}\n")).collect()
}

/// The question: who wants to do what, with which arguments, and what it would change.
/// Shows all of a request: what the call would do and why it asks, its arguments, its preview.
pub(crate) fn question(request: &ApprovalRequest, paint: Paint, others: usize) -> String {
    let more = if others > 0 { format!("  ({others} more waiting)") } else { String::new() };
    let mut text = format!(
        "\n{}{more}\n{}\n",
        paint.bold(&visible_line(&request.path)),
        visible_line(&request.description)
    );
    text.push_str(&paint.dim(&format!("{}\n", visible_line(&request.reason))));
    text.push_str(&shown_arguments(request.arguments.value()));
    for line in request.preview.iter().flat_map(|preview| preview.lines()) {
        text.push_str(&format!("  {}\n", paint.diff_line(&visible(line))));
    }
    if let Some(problem) = &request.edit_problem {
        text.push_str(&format!("the edited arguments do not fit: {}\n", visible_line(problem)));
    }
    text
}
