//! The UI as the program around it sees it: a handle to the thread that draws.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use futures::future::BoxFuture;
use llm_do_core::{Answer, AnsweredVia, ApprovalRequest, Approver, ApproverError, Event, ExtensionRequest};
use parking_lot::Mutex;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::sync::oneshot;

use crate::app::App;
use crate::event_loop::{EventLoop, Incoming};
use crate::protocol::{UiCommand, UiOptions, UiUpdate};
use crate::question::{OpenQuestion, QuestionReply, QuestionSubject};
use crate::terminal::Terminal;

/// How long the program waits for the UI to end: one that writes to a blocked terminal never does.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(5);
/// How often the program looks whether the UI has ended.
const POLL_INTERVAL: Duration = Duration::from_millis(1);

/// A handle to the UI. It answers approvals; everything else that the person asks for arrives as a [`UiCommand`].
#[derive(Clone)]
pub struct TuiHandle {
    incoming: Sender<Incoming>,
    thread: Arc<Mutex<Option<JoinHandle<io::Result<()>>>>>,
}

impl TuiHandle {
    /// Takes the terminal and starts to draw.
    pub fn open(options: UiOptions) -> io::Result<(Self, UnboundedReceiver<UiCommand>)> {
        let terminal = Terminal::open()?;
        crate::markdown::read_grammars();
        let (sender, incoming) = channel();
        let (commands, sent) = unbounded_channel();
        let app = App::new(options.clone(), commands, Instant::now());
        let event_loop = EventLoop::new(terminal, app, incoming, options.edit);
        let thread =
            std::thread::Builder::new().name("llm-do-tui".to_owned()).spawn(move || event_loop.run())?;
        Ok((Self { incoming: sender, thread: Arc::new(Mutex::new(Some(thread))) }, sent))
    }

    /// Returns a function that passes the events of a run to the UI.
    pub fn event_handler(&self) -> impl Fn(&Event) + Send + Sync + 'static {
        let incoming = Mutex::new(self.incoming.clone());
        move |event| {
            let incoming = incoming.lock();
            // A UI that has ended reads nothing any more.
            let _ = incoming.send(Incoming::Event(Box::new(event.clone())));
        }
    }

    /// Sends an update to the UI. Does nothing if the UI has ended.
    pub fn send(&self, update: UiUpdate) {
        let _ = self.incoming.send(Incoming::Update(update));
    }

    /// Prints what is left, restores the terminal and waits until that is done.
    pub fn close(&self) -> io::Result<()> {
        self.send(UiUpdate::Close);
        let thread = self.thread.lock().take();
        let Some(thread) = thread else { return Ok(()) };
        let started = Instant::now();
        while !thread.is_finished() {
            if started.elapsed() > CLOSE_TIMEOUT {
                return Err(io::Error::other("the terminal does not accept output any more"));
            }
            std::thread::sleep(POLL_INTERVAL);
        }
        let panicked = |_panic| Err(io::Error::other("the terminal UI panicked"));
        thread.join().unwrap_or_else(panicked)
    }

    async fn ask<T>(
        &self,
        subject: QuestionSubject,
        reply: impl FnOnce(oneshot::Sender<T>) -> QuestionReply,
    ) -> Result<T, ApproverError> {
        let (sender, answer) = oneshot::channel();
        let closed = |_| ApproverError("the terminal UI is closed".to_owned());
        let question = OpenQuestion { subject, reply: reply(sender) };
        self.incoming.send(Incoming::OpenQuestion(question)).map_err(|_| closed(()))?;
        answer.await.map_err(|_| closed(()))
    }
}

impl Approver for TuiHandle {
    fn via(&self) -> AnsweredVia {
        AnsweredVia::Tui
    }

    fn decide<'a>(&'a self, request: &'a ApprovalRequest) -> BoxFuture<'a, Result<Answer, ApproverError>> {
        let subject = QuestionSubject::Approval(Box::new(request.clone()));
        Box::pin(self.ask(subject, QuestionReply::Approval))
    }

    fn extend<'a>(&'a self, request: &'a ExtensionRequest) -> BoxFuture<'a, Option<u64>> {
        let subject = QuestionSubject::Extension(request.clone());
        Box::pin(async move { self.ask(subject, QuestionReply::Extension).await.ok().flatten() })
    }
}
