//! A program at a real terminal.
//!
//! [`TerminalSession`] starts a program on a pseudo-terminal, as a job of a shell that stays behind it
//! (see `holder`), reads all that it writes into a `vt100` screen (see `state`), and answers its questions
//! as xterm would (see `answers`). Waiting is for what the screen shows and never for a time: a slow machine
//! makes a test slow, not red.
//!
//! This module does not know which program it runs, and draws nothing (see [`crate::screenshot`]).

mod answers;
mod hang_up;
mod holder;
mod key;
mod state;
mod streams;
#[cfg(test)]
mod tests;

use std::io::{PipeWriter, Write};
use std::process::{Child, Command};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use pty_process::Size;
use pty_process::blocking::Pty;
use rustix::process::{Pid, kill_process, kill_process_group};
use rustix::termios::{LocalModes, OutputModes, tcgetattr, tcgetpgrp};

pub use self::hang_up::hang_up;
pub use self::key::Key;
use self::state::{Program, Shared, State};
pub use rustix::process::Signal;

/// How long a session waits for what must come.
const LIMIT: Duration = Duration::from_secs(30);

/// A program at a terminal of its own.
///
/// Dropping the session kills the program and what runs in the foreground of its terminal.
pub struct TerminalSession {
    holder: Child,
    /// The holder waits for orders here, and ends when nobody can give one.
    orders: PipeWriter,
    pty: Arc<Pty>,
    input: mpsc::Sender<Vec<u8>>,
    shared: Arc<Shared>,
}

/// How the terminal treats keys and output, as `stty` shows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TerminalModes {
    /// Input comes in lines (`icanon`).
    pub canonical: bool,
    /// Keys are shown as they are typed (`echo`).
    pub echo: bool,
    /// Keys such as Ctrl-C send signals (`isig`).
    pub signals: bool,
    /// A line feed also returns the carriage (`opost`).
    pub output: bool,
}

impl TerminalModes {
    /// The modes that a shell expects to find.
    pub const NORMAL: Self = Self { canonical: true, echo: true, signals: true, output: true };
}

impl TerminalSession {
    /// Starts a program on a terminal of so many columns and rows.
    ///
    /// Of the command count the program, its arguments, its directory and the variables set and removed one
    /// by one: the standard streams are the terminal, and `env_clear` cannot be seen from outside.
    #[track_caller]
    pub fn spawn(command: Command, columns: u16, rows: u16) -> Self {
        let (pty, pts) = pty_process::blocking::open().expect("a terminal");
        pty.resize(Size::new(rows, columns)).expect("a terminal has a size");
        let (order_reader, orders) = std::io::pipe().expect("a pipe");
        let holder = holder::of(&command).stdin(order_reader).spawn(pts).expect("a shell");
        let pty = Arc::new(pty);
        let shared = Arc::new(Shared::new(columns, rows));
        let input = streams::write_in_background(Arc::clone(&pty));
        streams::read_in_background(Arc::clone(&pty), Arc::clone(&shared), input.clone());
        let session = Self { holder, orders, pty, input, shared };
        session.wait_program("the program to start", |program| program != Program::Starting);
        session
    }

    /// Types a text, byte by byte as it is.
    pub fn keys(&self, text: &str) {
        // The writing thread ends only with a terminal that nobody listens to.
        let _ = self.input.send(text.as_bytes().to_vec());
    }

    /// Presses one key.
    ///
    /// What follows [`Key::Esc`] at once is read as one key with Alt: wait for what Esc did first.
    pub fn key(&self, key: Key) {
        let application_cursor = self.shared.state().screen().application_cursor();
        self.keys(&key.sequence(application_cursor));
    }

    /// Pastes a text, in brackets where the program asked for them.
    pub fn paste(&self, text: &str) {
        let bracketed = self.shared.state().screen().bracketed_paste();
        let text = text.replace('\n', "\r"); // as xterm does
        self.keys(&if bracketed { format!("\u{1b}[200~{text}\u{1b}[201~") } else { text });
    }

    /// Gives the terminal another size, of which the program is told by `SIGWINCH`.
    #[track_caller]
    pub fn resize(&self, columns: u16, rows: u16) {
        // Under one lock: what the program draws for the new size must not meet the old screen.
        let mut state = self.shared.state();
        state.resize(columns, rows);
        self.pty.resize(Size::new(rows, columns)).expect("a terminal has a size");
    }

    /// Waits until a text is on the screen or in what was scrolled off it.
    ///
    /// A text is found within one row: what the terminal wrapped is two rows.
    #[track_caller]
    pub fn wait_for(&self, text: &str) {
        let mut seen = 0;
        self.wait(&format!("`{text}`"), |state| state.new_text(&mut seen).contains(text));
    }

    /// Waits until a text is on the screen.
    #[track_caller]
    pub fn wait_for_visible(&self, text: &str) {
        self.wait(&format!("`{text}` on the screen"), |state| state.visible_text().contains(text));
    }

    /// Waits until a text is not on the screen any more.
    #[track_caller]
    pub fn wait_gone(&self, text: &str) {
        self.wait(&format!("`{text}` to go"), |state| !state.visible_text().contains(text));
    }

    /// Waits until the screen is as a condition says.
    #[track_caller]
    pub fn wait_until(&self, mut condition: impl FnMut(&vt100::Screen) -> bool) {
        self.wait("a condition", |state| condition(state.screen()));
    }

    /// Waits until the program stopped itself, as on Ctrl-Z.
    #[track_caller]
    pub fn wait_stopped(&self) {
        self.wait_program("the program to stop", |program| matches!(program, Program::Stopped(_)));
    }

    /// Brings a stopped program back to the foreground, as `fg` does.
    #[track_caller]
    pub fn resume(&mut self) {
        self.wait_stopped();
        self.shared.state().resumed();
        self.orders.write_all(b"fg\n").expect("the shell listens");
    }

    /// Waits until the program ended and all that it wrote was read; returns its exit code.
    ///
    /// A program that a signal ended has the code that a shell gives it: 128 and the signal's number.
    #[track_caller]
    pub fn wait_exit(&self) -> i32 {
        self.wait_program("the program to end", |program| matches!(program, Program::Exited(_)));
        match self.shared.state().program() {
            Program::Exited(code) => code,
            other => unreachable!("an ended program is {other:?}"),
        }
    }

    /// Returns the rows of the screen, without the blanks at their ends.
    pub fn screen_text(&self) -> String {
        self.shared.state().visible_text()
    }

    /// Returns all rows: those scrolled off, then those of the screen. On the alternate screen nothing
    /// is scrolled off.
    pub fn scrollback_text(&self) -> String {
        self.shared.state().whole_text()
    }

    /// Returns the screen as it is now, to look at its cells or to draw it.
    pub fn screen(&self) -> vt100::Screen {
        self.shared.state().screen().clone()
    }

    /// Returns where the cursor is: column and row, from zero.
    pub fn cursor(&self) -> (u16, u16) {
        let (row, column) = self.shared.state().screen().cursor_position();
        (column, row)
    }

    /// Returns whether the alternate screen is shown.
    pub fn is_alternate(&self) -> bool {
        self.shared.state().screen().alternate_screen()
    }

    /// Returns every byte that came from the terminal so far.
    pub fn raw_output(&self) -> Vec<u8> {
        self.shared.state().raw_output().to_vec()
    }

    /// Returns how the terminal treats keys and output now; also after the program ended.
    #[track_caller]
    pub fn terminal_modes(&self) -> TerminalModes {
        let modes = tcgetattr(&*self.pty).expect("a terminal has modes");
        TerminalModes {
            canonical: modes.local_modes.contains(LocalModes::ICANON),
            echo: modes.local_modes.contains(LocalModes::ECHO),
            signals: modes.local_modes.contains(LocalModes::ISIG),
            output: modes.output_modes.contains(OutputModes::OPOST),
        }
    }

    /// Sends a signal to the program.
    #[track_caller]
    pub fn signal(&self, signal: Signal) {
        let program = self.pid().expect("a program that ended takes no signal");
        kill_process(program, signal).expect("the program takes signals");
    }

    /// Returns the process of the program while it has not ended.
    pub fn pid(&self) -> Option<Pid> {
        match self.shared.state().program() {
            Program::Running(pid) | Program::Stopped(pid) => Some(pid),
            Program::Starting | Program::Exited(_) | Program::Lost => None,
        }
    }

    #[track_caller]
    fn wait_program(&self, what: &str, mut condition: impl FnMut(Program) -> bool) {
        self.wait(what, |state| condition(state.program()));
    }

    /// Waits for a condition, and shows the whole terminal where it cannot come any more.
    #[track_caller]
    fn wait(&self, what: &str, mut condition: impl FnMut(&mut State) -> bool) {
        let end = Instant::now() + LIMIT;
        let mut state = self.shared.state();
        loop {
            if !state.in_the_middle_of_a_frame() && condition(&mut state) {
                return;
            }
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() || state.is_over() {
                let (program, shown) = (state.program(), state.shown());
                drop(state);
                panic!("waited for {what}; the program is {program:?}, the terminal shows\n{shown}");
            }
            state = self.shared.wait_for_news(state, left);
        }
    }
}

impl Drop for TerminalSession {
    fn drop(&mut self) {
        // What is gone already is what was wanted.
        if let Some(program) = self.pid() {
            let _ = kill_process_group(program, Signal::KILL);
        }
        if let Ok(foreground) = tcgetpgrp(&*self.pty) {
            let _ = kill_process_group(foreground, Signal::KILL);
        }
        let _ = self.holder.kill();
        let _ = self.holder.wait();
    }
}
