//! The thread of the UI: events, questions and keys in, frames out.

use std::io;
use std::sync::mpsc::{Receiver, TryRecvError};
use std::time::{Duration, Instant};

use crossterm::event::{Event as TerminalEvent, KeyEvent, KeyEventKind};
use llm_do_core::Event;

use crate::app::{App, AppAction};
use crate::protocol::{ExternalEditor, UiUpdate};
use crate::question::OpenQuestion;
use crate::question::focus::Arrival;
use crate::terminal::Terminal;

/// The least time between two frames.
const FRAME_INTERVAL: Duration = Duration::from_millis(33);
/// How often the spinner turns.
const SPINNER_INTERVAL: Duration = Duration::from_millis(100);
/// After this time without events only the spinner moves.
const QUIET_AFTER: Duration = Duration::from_millis(300);
/// How long to wait for a key while nothing moves.
const IDLE_WAIT: Duration = Duration::from_millis(250);
/// How long to wait for another key after one.
const NEXT_KEY_WAIT: Duration = Duration::from_millis(1);
/// How long a stop signal may take to reach this process.
const STOP_WAIT: Duration = Duration::from_millis(50);
/// How many keys are taken between two frames.
const MAX_KEYS: usize = 4_096;
/// How many events and updates are taken between two frames.
const MAX_INCOMING: usize = 20_000;

/// What the program sends to the UI.
pub(crate) enum Incoming {
    Event(Box<Event>),
    OpenQuestion(OpenQuestion),
    Update(UiUpdate),
}

/// The state of the UI's thread.
pub(crate) struct EventLoop {
    terminal: Terminal,
    app: App,
    incoming: Receiver<Incoming>,
    edit: ExternalEditor,
    last_frame: Option<Instant>,
    /// When something came from the program last.
    last_incoming: Option<Instant>,
}

impl EventLoop {
    pub(crate) fn new(
        terminal: Terminal,
        app: App,
        incoming: Receiver<Incoming>,
        edit: ExternalEditor,
    ) -> Self {
        Self { terminal, app, incoming, edit, last_frame: None, last_incoming: None }
    }

    /// Draws and reads keys until the UI is closed.
    pub(crate) fn run(mut self) -> io::Result<()> {
        while !self.app.should_exit() {
            self.draw()?;
            self.read_keys()?;
            self.take_incoming();
        }
        let lines = self.app.last_lines();
        self.terminal.close(&lines)
    }

    /// Draws a frame, not sooner than one is due.
    fn draw(&mut self) -> io::Result<()> {
        let now = Instant::now();
        if self.last_frame.is_some_and(|last| now.saturating_duration_since(last) < FRAME_INTERVAL) {
            return Ok(());
        }
        self.last_frame = Some(now);
        let action = self.app.tick(now);
        self.perform(action)?;
        self.terminal.look_at_size()?;
        self.terminal.take_screen(self.app.is_in_tree())?;
        if self.app.is_in_tree() {
            let app = &mut self.app;
            return self.terminal.draw(|frame| app.draw_tree(frame.area(), frame.buffer_mut(), now));
        }
        let (finished, live, cursor) = self.app.draw(self.terminal.size(), now);
        self.terminal.paint(&finished, &live, cursor)
    }

    /// Waits for keys until the next frame is due.
    fn read_keys(&mut self) -> io::Result<()> {
        let mut wait = self.key_wait();
        let mut events = Vec::new();
        while events.len() < MAX_KEYS
            && let Some(event) = self.terminal.event(wait)?
        {
            events.push(event);
            wait = NEXT_KEY_WAIT;
        }
        let pressed: Vec<_> = events.iter().filter_map(pressed_key).collect();
        let arrival = Arrival::from(pressed.as_slice());
        events.into_iter().try_for_each(|event| self.handle_event(event, arrival))
    }

    /// One frame while events come, one turn of the spinner while something runs silently, longer while nothing moves.
    fn key_wait(&self) -> Duration {
        let is_receiving = self.last_incoming.is_some_and(|last| last.elapsed() < QUIET_AFTER);
        match (self.app.is_active(), is_receiving) {
            (true, true) => FRAME_INTERVAL,
            (true, false) => SPINNER_INTERVAL,
            (false, _) => IDLE_WAIT,
        }
    }

    fn handle_event(&mut self, event: TerminalEvent, arrival: Arrival) -> io::Result<()> {
        let now = Instant::now();
        // What the person did is shown at once.
        self.last_frame = None;
        match event {
            TerminalEvent::Key(key) => {
                let action = self.app.key(key, arrival, now);
                self.perform(action)
            }
            TerminalEvent::Paste(text) => {
                self.app.paste(&text, now);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn perform(&mut self, action: AppAction) -> io::Result<()> {
        match action {
            AppAction::Continue => Ok(()),
            AppAction::Refresh => self.terminal.refresh(),
            AppAction::Clear => self.terminal.clear(),
            AppAction::Suspend => self.terminal.lend(stop_process_group),
            AppAction::Edit(arguments) => {
                let edit = self.edit.clone();
                let edited = self.terminal.lend(|| edit(&arguments))?;
                self.app.edited(edited);
                Ok(())
            }
        }
    }

    fn take_incoming(&mut self) {
        let now = Instant::now();
        for _ in 0..MAX_INCOMING {
            let incoming = self.incoming.try_recv();
            if incoming.is_ok() {
                self.last_incoming = Some(now);
            }
            match incoming {
                Ok(Incoming::Event(event)) => self.app.event(&event, now),
                Ok(Incoming::OpenQuestion(question)) => self.app.question(question),
                Ok(Incoming::Update(update)) => self.app.update(update, now),
                Err(TryRecvError::Empty) => return,
                Err(TryRecvError::Disconnected) => return self.app.update(UiUpdate::Close, now),
            }
        }
    }
}

/// Stops this process and those that were started with it, as Ctrl-Z does, until they are continued.
fn stop_process_group() {
    // If nobody could continue them, they are not stopped.
    let _ = rustix::process::kill_current_process_group(rustix::process::Signal::TSTP);
    std::thread::sleep(STOP_WAIT);
}

fn pressed_key(event: &TerminalEvent) -> Option<KeyEvent> {
    event.as_key_event().filter(|key| key.kind != KeyEventKind::Release)
}
