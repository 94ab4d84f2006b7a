//! What is known of a session: its screen, its output, how its program is.

use std::num::NonZeroU16;
use std::sync::{Condvar, Mutex, MutexGuard};
use std::time::Duration;

use rustix::process::Pid;

use super::answers::Answers;
use super::holder::Note;

/// Rows above the screen that are kept.
const SCROLLBACK: usize = 20_000;

/// How the program is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Program {
    Starting,
    Running(Pid),
    Stopped(Pid),
    Exited(i32),
    /// The terminal was closed from the other side.
    Lost,
}

/// The state of a session, and the news of it.
pub(super) struct Shared {
    state: Mutex<State>,
    news: Condvar,
}

impl Shared {
    pub(super) fn new(columns: u16, rows: u16) -> Self {
        Self { state: Mutex::new(State::new(columns, rows)), news: Condvar::new() }
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("the screen is whole")
    }

    /// Takes what the terminal wrote; returns what it must be answered.
    pub(super) fn written(&self, bytes: &[u8]) -> Vec<u8> {
        let replies = self.state().written(bytes);
        self.news.notify_all();
        replies
    }

    /// Notes that the terminal was closed.
    pub(super) fn closed(&self) {
        self.state().closed();
        self.news.notify_all();
    }

    pub(super) fn wait_for_news<'a>(
        &self,
        state: MutexGuard<'a, State>,
        limit: Duration,
    ) -> MutexGuard<'a, State> {
        self.news.wait_timeout(state, limit).expect("the screen is whole").0
    }
}

/// The screen of a terminal and what happened on it.
pub(super) struct State {
    parser: vt100::Parser<Answers>,
    raw: Vec<u8>,
    program: Program,
}

impl State {
    fn new(columns: u16, rows: u16) -> Self {
        let (columns, rows) = (at_least_one(columns), at_least_one(rows));
        let parser = vt100::Parser::new_with_callbacks(rows, columns, SCROLLBACK, Answers::default());
        Self { parser, raw: Vec::new(), program: Program::Starting }
    }

    fn written(&mut self, bytes: &[u8]) -> Vec<u8> {
        self.raw.extend_from_slice(bytes);
        self.parser.process(bytes);
        for note in std::mem::take(&mut self.parser.callbacks_mut().notes) {
            self.noted(note);
        }
        std::mem::take(&mut self.parser.callbacks_mut().replies)
    }

    fn noted(&mut self, note: Note) {
        Note::remove_last(&mut self.raw);
        self.program = match (note, self.program) {
            (Note::Started(pid), _) => Program::Running(pid),
            (Note::Stopped, Program::Running(pid)) => Program::Stopped(pid),
            (Note::Stopped, other) => other,
            (Note::Exited(code), _) => Program::Exited(code),
        };
    }

    fn closed(&mut self) {
        if !matches!(self.program, Program::Exited(_)) {
            self.program = Program::Lost;
        }
    }

    /// Notes that a stopped program goes on.
    pub(super) fn resumed(&mut self) {
        if let Program::Stopped(pid) = self.program {
            self.program = Program::Running(pid);
        }
    }

    pub(super) fn resize(&mut self, columns: u16, rows: u16) {
        self.parser.set_size(at_least_one(rows), at_least_one(columns));
    }

    pub(super) fn program(&self) -> Program {
        self.program
    }

    /// Says that nothing will come any more.
    pub(super) fn is_over(&self) -> bool {
        matches!(self.program, Program::Exited(_) | Program::Lost)
    }

    /// Says that the program asked not to be looked at until its frame is whole.
    pub(super) fn in_the_middle_of_a_frame(&self) -> bool {
        self.parser.callbacks().in_frame && !self.is_over()
    }

    pub(super) fn screen(&self) -> &vt100::Screen {
        self.parser.screen()
    }

    pub(super) fn raw_output(&self) -> &[u8] {
        &self.raw
    }

    pub(super) fn visible_text(&self) -> String {
        let screen = self.screen();
        let rows: Vec<String> = screen.rows(0, screen.size().1.get()).map(trimmed).collect();
        rows.join("\n")
    }

    pub(super) fn whole_text(&mut self) -> String {
        let scrolled = self.screen().scrollback_len();
        self.text_from(scrolled)
    }

    /// The screen and the rows scrolled off it since `seen` of them were looked at.
    pub(super) fn new_text(&mut self, seen: &mut usize) -> String {
        let scrolled = self.screen().scrollback_len();
        // With all rows taken, or some taken back by a resize, the number says nothing about what is new.
        let new = if scrolled >= SCROLLBACK || scrolled < *seen { scrolled } else { scrolled - *seen };
        *seen = scrolled;
        self.text_from(new)
    }

    /// The last rows scrolled off the screen, and the screen.
    fn text_from(&mut self, mut above: usize) -> String {
        let (rows, columns) = self.screen().size();
        let mut lines = Vec::new();
        while above > 0 {
            self.parser.screen_mut().set_scrollback(above);
            let window = usize::from(rows.get()).min(above);
            lines.extend(self.screen().rows(0, columns.get()).take(window).map(trimmed));
            above -= window;
        }
        self.parser.screen_mut().set_scrollback(0);
        lines.push(self.visible_text());
        lines.join("\n")
    }

    /// Everything, with a frame that shows where the screen begins, for the message of a failed test.
    pub(super) fn shown(&mut self) -> String {
        let screen = self.visible_text();
        let whole = self.whole_text();
        let above = whole.strip_suffix(&screen).unwrap_or_default();
        let ((row, column), (rows, columns)) = (self.screen().cursor_position(), self.screen().size());
        format!("{above}--- {columns}x{rows}, cursor at column {column} of row {row} ---\n{screen}\n---")
    }
}

fn trimmed(row: String) -> String {
    row.trim_end().to_owned()
}

fn at_least_one(number: u16) -> NonZeroU16 {
    NonZeroU16::new(number).expect("a terminal has columns and rows")
}
