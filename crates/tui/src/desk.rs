//! The UI as the program around it sees it: a thread that draws, and a desk at which it is reached.

use std::io;
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use futures::future::BoxFuture;
use llm_do_core::{Answer, ApprovalRequest, Approver, ApproverError, Event, ExtensionRequest};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::sync::oneshot;

use crate::app::{App, Step};
use crate::question::focus::Arrival;
use crate::question::{Matter, Question, QuestionReply};
use crate::terminal::Terminal;
use crate::wish::{Opening, Told, Wish};

/// The least time between two frames.
const FRAME: Duration = Duration::from_millis(33);
/// How often the spinner turns.
const SPIN: Duration = Duration::from_millis(100);
/// After this time without news the spinner is all that moves.
const SILENCE: Duration = Duration::from_millis(300);
/// How many keys are taken before a frame is due again.
const MOST_KEYS: usize = 4_096;
/// How long to wait for a key while nothing moves.
const IDLE: Duration = Duration::from_millis(250);
/// How long to wait for another key after one.
const AT_ONCE: Duration = Duration::from_millis(1);
/// How long the program waits for the UI to end: one that writes to a terminal which takes nothing never does.
const PARTING: Duration = Duration::from_secs(5);
/// How long a signal to stop may take to reach this process.
const STOPPING: Duration = Duration::from_millis(50);
/// How many pieces of news are taken before a frame is due again.
const MOST_NEWS: usize = 20_000;

/// What reaches the UI.
enum News {
    Event(Box<Event>),
    Question(Question),
    Told(Told),
}

/// Where the UI is reached. It answers approvals; everything that the person wants otherwise comes as a [`Wish`].
#[derive(Clone)]
pub struct Desk {
    news: Sender<News>,
    thread: Arc<Mutex<Option<JoinHandle<io::Result<()>>>>>,
}

impl Desk {
    /// Takes the terminal and begins to draw.
    pub fn open(opening: Opening) -> io::Result<(Self, UnboundedReceiver<Wish>)> {
        let terminal = Terminal::open()?;
        crate::markdown::read_grammars();
        let (news, arriving) = channel();
        let (wishes, wished) = unbounded_channel();
        let app = App::new(opening.clone(), wishes, Instant::now());
        let screen = Screen { terminal, app, news: arriving, edit: opening.edit, drawn: None, heard: None };
        let thread =
            std::thread::Builder::new().name("llm-do-tui".to_owned()).spawn(move || screen.work())?;
        Ok((Self { news, thread: Arc::new(Mutex::new(Some(thread))) }, wished))
    }

    /// Returns what reads events for it.
    pub fn reader(&self) -> impl Fn(&Event) + Send + Sync + 'static {
        let news = Mutex::new(self.news.clone());
        move |event| {
            let news = news.lock().unwrap_or_else(PoisonError::into_inner);
            // A UI that is gone reads nothing any more.
            let _ = news.send(News::Event(Box::new(event.clone())));
        }
    }

    /// Says something to it.
    pub fn tell(&self, told: Told) {
        let _ = self.news.send(News::Told(told));
    }

    /// Prints what is left, gives the terminal back and waits for that.
    pub fn close(&self) -> io::Result<()> {
        self.tell(Told::Leave);
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(thread) = thread else { return Ok(()) };
        let begun = Instant::now();
        while !thread.is_finished() {
            if begun.elapsed() > PARTING {
                return Err(io::Error::other("the terminal takes nothing any more"));
            }
            std::thread::sleep(AT_ONCE);
        }
        let broke_off = |_panic| Err(io::Error::other("the terminal UI broke off in a panic"));
        thread.join().unwrap_or_else(broke_off)
    }

    async fn ask<T>(
        &self,
        matter: Matter,
        reply: impl FnOnce(oneshot::Sender<T>) -> QuestionReply,
    ) -> Result<T, ApproverError> {
        let (sender, answer) = oneshot::channel();
        let gone = |_| ApproverError("the terminal UI is gone".to_owned());
        self.news.send(News::Question(Question { matter, reply: reply(sender) })).map_err(|_| gone(()))?;
        answer.await.map_err(|_| gone(()))
    }
}

impl Approver for Desk {
    fn decide<'a>(&'a self, request: &'a ApprovalRequest) -> BoxFuture<'a, Result<Answer, ApproverError>> {
        let matter = Matter::Approval(Box::new(request.clone()));
        Box::pin(self.ask(matter, QuestionReply::Approval))
    }

    fn extend<'a>(&'a self, request: &'a ExtensionRequest) -> BoxFuture<'a, Option<u64>> {
        let matter = Matter::Extension(request.clone());
        Box::pin(async move { self.ask(matter, QuestionReply::Extension).await.ok().flatten() })
    }
}

/// Stops this process and those that were started with it, as Ctrl-Z does, until they are continued.
fn stop_here() {
    // Where nobody could continue them, they are not stopped.
    let _ = rustix::process::kill_current_process_group(rustix::process::Signal::TSTP);
    std::thread::sleep(STOPPING);
}

fn pressed(event: &crossterm::event::Event) -> Option<crossterm::event::KeyEvent> {
    event.as_key_event().filter(|key| key.kind != crossterm::event::KeyEventKind::Release)
}

/// The thread: news and keys in, frames out.
struct Screen {
    terminal: Terminal,
    app: App,
    news: Receiver<News>,
    edit: crate::wish::EditOutside,
    drawn: Option<Instant>,
    /// When news came last.
    heard: Option<Instant>,
}

impl Screen {
    fn work(mut self) -> io::Result<()> {
        while !self.app.leaves() {
            self.draw()?;
            self.wait()?;
            self.take_news();
        }
        let lines = self.app.last_lines();
        self.terminal.close(&lines)
    }

    /// Draws a frame, not sooner than one is due.
    fn draw(&mut self) -> io::Result<()> {
        let now = Instant::now();
        if self.drawn.is_some_and(|drawn| now.saturating_duration_since(drawn) < FRAME) {
            return Ok(());
        }
        self.drawn = Some(now);
        let step = self.app.tick(now);
        self.take_step(step)?;
        self.terminal.look_at_size()?;
        self.terminal.take_screen(self.app.is_in_tree())?;
        if self.app.is_in_tree() {
            let app = &mut self.app;
            return self.terminal.draw(|frame| app.draw_tree(frame.area(), frame.buffer_mut(), now));
        }
        let (finished, live, cursor) = self.app.draw(self.terminal.size(), now);
        self.terminal.paint(&finished, &live, cursor)
    }

    /// Waits for keys until the next frame is due, longer where nothing moves.
    fn wait(&mut self) -> io::Result<()> {
        let mut patience = self.patience();
        let mut happened = Vec::new();
        while happened.len() < MOST_KEYS
            && let Some(event) = self.terminal.event(patience)?
        {
            happened.push(event);
            patience = AT_ONCE;
        }
        let pressed: Vec<_> = happened.iter().filter_map(pressed).collect();
        let arrival = Arrival::from(pressed.as_slice());
        happened.into_iter().try_for_each(|event| self.take_key(event, arrival))
    }

    /// A frame while news come, a turn of the spinner while something runs in silence, longer where nothing moves.
    fn patience(&self) -> Duration {
        let has_news = self.heard.is_some_and(|heard| heard.elapsed() < SILENCE);
        match (self.app.is_lively(), has_news) {
            (true, true) => FRAME,
            (true, false) => SPIN,
            (false, _) => IDLE,
        }
    }

    fn take_key(&mut self, happened: crossterm::event::Event, arrival: Arrival) -> io::Result<()> {
        use crossterm::event::Event as Happened;
        let now = Instant::now();
        // What the person did is shown at once.
        self.drawn = None;
        match happened {
            Happened::Key(key) => {
                let step = self.app.key(key, arrival, now);
                self.take_step(step)
            }
            Happened::Paste(text) => {
                self.app.paste(&text, now);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn take_step(&mut self, step: Step) -> io::Result<()> {
        match step {
            Step::Go => Ok(()),
            Step::Refresh => self.terminal.refresh(),
            Step::Clear => self.terminal.clear(),
            Step::Suspend => self.terminal.lend(stop_here),
            Step::Edit(arguments) => {
                let edit = self.edit.clone();
                let edited = self.terminal.lend(|| edit(&arguments))?;
                self.app.edited(edited);
                Ok(())
            }
        }
    }

    fn take_news(&mut self) {
        let now = Instant::now();
        for _ in 0..MOST_NEWS {
            let news = self.news.try_recv();
            if news.is_ok() {
                self.heard = Some(now);
            }
            match news {
                Ok(News::Event(event)) => self.app.event(&event, now),
                Ok(News::Question(question)) => self.app.question(question),
                Ok(News::Told(told)) => self.app.told(told, now),
                Err(TryRecvError::Empty) => return,
                Err(TryRecvError::Disconnected) => return self.app.told(Told::Leave, now),
            }
        }
    }
}
