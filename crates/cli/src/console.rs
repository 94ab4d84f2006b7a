//! The terminal behind stderr: lines, a status line that is redrawn, and colors where they are wanted.

use std::io::{IsTerminal, Write, stderr};
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};

/// stderr as everything of this process writes to it.
///
/// The status line is below everything else and is redrawn after each line. It exists only on a terminal.
pub(crate) struct Console {
    pub(crate) paint: Paint,
    terminal: bool,
    /// Whether a screen reader reads it.
    pub(crate) plain: bool,
    /// The terminal UI, if it has the terminal.
    tui: Option<llm_do_tui::TuiHandle>,
    state: Mutex<ConsoleState>,
}

#[derive(Default)]
struct ConsoleState {
    status: String,
    drawn: bool,
    suspended: usize,
    /// Lines that wait until nobody is being asked any more.
    held: Vec<String>,
    /// Whether the answer is being written, behind which no status line is drawn.
    is_hidden: bool,
}

impl Console {
    /// The console of this process.
    pub(crate) fn stderr() -> Self {
        let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        let terminal = stderr().is_terminal() && !dumb;
        Self { paint: Paint::for_stderr(), terminal, plain: false, tui: None, state: Mutex::default() }
    }

    /// A console on which nothing is ever redrawn.
    pub(crate) fn plain() -> Self {
        Self { paint: Paint::none(), terminal: false, plain: true, ..Self::stderr() }
    }

    /// The console while the terminal UI has the terminal: lines go into its transcript.
    pub(crate) fn in_tui(tui: llm_do_tui::TuiHandle) -> Self {
        Self { tui: Some(tui), ..Self::plain() }
    }

    /// Returns whether a status line can be drawn.
    pub(crate) fn is_terminal(&self) -> bool {
        self.terminal
    }

    /// Writes a line above the status line. While a question is open it waits, so that the question stays last.
    pub(crate) fn line(&self, text: &str) {
        if let Some(tui) = &self.tui {
            return tui.send(llm_do_tui::UiUpdate::Info(text.to_owned()));
        }
        let mut state = self.state();
        if state.suspended > 0 {
            return state.held.push(text.to_owned());
        }
        state.line(text);
    }

    /// Replaces the status line; an empty one erases it.
    pub(crate) fn status(&self, text: String) {
        if !self.terminal {
            return;
        }
        let mut state = self.state();
        state.erase();
        state.status = text;
        state.draw();
    }

    /// Erases the status line and draws none until [`show_status`](Self::show_status).
    pub(crate) fn hide_status(&self) {
        let mut state = self.state();
        if !state.is_hidden {
            state.erase();
            state.is_hidden = true;
        }
    }

    /// Draws the status line again.
    pub(crate) fn show_status(&self) {
        self.state().is_hidden = false;
    }

    /// Keeps the status line and other lines away while something else has the terminal.
    pub(crate) fn suspend(self: &Arc<Self>) -> Suspended {
        let mut state = self.state();
        state.erase();
        state.suspended += 1;
        Suspended(self.clone())
    }

    fn state(&self) -> MutexGuard<'_, ConsoleState> {
        self.state.lock()
    }
}

impl ConsoleState {
    fn line(&mut self, text: &str) {
        self.erase();
        write(&format!("{text}\n"));
        self.draw();
    }

    fn erase(&mut self) {
        if std::mem::take(&mut self.drawn) {
            write("\r\u{1b}[2K");
        }
    }

    fn draw(&mut self) {
        if self.suspended == 0 && !self.is_hidden && !self.status.is_empty() {
            write(&self.status);
            self.drawn = true;
        }
    }
}

fn write(text: &str) {
    let mut stream = stderr().lock();
    let _ = stream.write_all(text.as_bytes()).and_then(|()| stream.flush());
}

/// The time in which the status line stays away.
pub(crate) struct Suspended(Arc<Console>);

impl Drop for Suspended {
    fn drop(&mut self) {
        let mut state = self.0.state();
        state.suspended = state.suspended.saturating_sub(1);
        if state.suspended == 0 {
            std::mem::take(&mut state.held).iter().for_each(|line| state.line(line));
        }
        state.draw();
    }
}

/// Colors, or none.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Paint {
    colors: bool,
}

impl Paint {
    /// Colors on a terminal, unless `NO_COLOR` is set.
    pub(crate) fn for_stderr() -> Self {
        let refused = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        Self { colors: stderr().is_terminal() && !refused && !dumb }
    }

    /// No colors.
    pub(crate) fn none() -> Self {
        Self { colors: false }
    }

    /// Returns whether there are colors.
    pub(crate) fn has_colors(self) -> bool {
        self.colors
    }

    pub(crate) fn bold(self, text: &str) -> String {
        self.with("1", text)
    }

    pub(crate) fn dim(self, text: &str) -> String {
        self.with("2", text)
    }

    pub(crate) fn red(self, text: &str) -> String {
        self.with("31;1", text)
    }

    pub(crate) fn green(self, text: &str) -> String {
        self.with("32", text)
    }

    pub(crate) fn yellow(self, text: &str) -> String {
        self.with("33;1", text)
    }

    pub(crate) fn cyan(self, text: &str) -> String {
        self.with("36;1", text)
    }

    /// Colors the words with which messages begin.
    pub(crate) fn message(self, text: &str) -> String {
        let lines = text.lines().map(|line| match line.split_once(": ") {
            Some(("error", rest)) => format!("{}: {rest}", self.red("error")),
            Some(("notice", rest)) => format!("{}: {rest}", self.yellow("notice")),
            Some(("hint", rest)) => format!("{}: {rest}", self.cyan("hint")),
            _ => line.to_owned(),
        });
        lines.collect::<Vec<_>>().join("\n")
    }

    /// Colors a diff, line by line.
    pub(crate) fn diff_line(self, line: &str) -> String {
        match line.as_bytes().first() {
            Some(b'+') => self.green(line),
            Some(b'-') => self.with("31", line),
            Some(b'@') => self.with("36", line),
            _ => line.to_owned(),
        }
    }

    fn with(self, code: &str, text: &str) -> String {
        if self.colors { format!("\u{1b}[{code}m{text}\u{1b}[0m") } else { text.to_owned() }
    }
}
