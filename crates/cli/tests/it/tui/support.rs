//! The binary at a terminal, away from the environment of whoever runs the tests.

use std::ffi::OsString;
use std::process::Command;
use std::time::{Duration, Instant};

use llm_do_testing::terminal::{Key, TerminalModes, TerminalSession};

use crate::support::Sandbox;

/// The columns of a usual terminal.
pub const COLUMNS: u16 = 80;
/// The rows of a usual terminal.
pub const ROWS: u16 = 24;
/// Stands in an input that is empty.
pub const EMPTY_INPUT: &str = "a message for main";
/// Stands below a question that takes keys.
pub const CHOICES: &str = "[y] once";

/// Starts the binary in a sandbox, on a terminal of the usual size.
#[track_caller]
pub fn start(sandbox: &Sandbox, arguments: &[&str]) -> TerminalSession {
    AtTerminal::new(sandbox, arguments).start()
}

/// Starts a chat and waits until it can be typed into.
#[track_caller]
pub fn chat(sandbox: &Sandbox) -> TerminalSession {
    let session = start(sandbox, &["chat", "."]);
    session.wait_for_visible(EMPTY_INPUT);
    session
}

/// Sends a message, and waits until the answer stands there and the turn is over.
#[track_caller]
pub fn say(session: &TerminalSession, message: &str, answer: &str) {
    session.keys(message);
    session.wait_for_visible(message);
    session.key(Key::Enter);
    session.wait_for(answer);
    at_rest(session);
}

/// Waits until nothing runs and the input is empty.
#[track_caller]
pub fn at_rest(session: &TerminalSession) {
    session.wait_until(|screen| {
        let text = screen.contents();
        text.contains(EMPTY_INPUT) && !text.contains("Esc stops")
    });
}

/// Waits for a question, then presses the key of an answer.
#[track_caller]
pub fn answer(session: &TerminalSession, key: char) {
    session.wait_for_visible(CHOICES);
    session.key(Key::Char(key));
}

/// Gives the terminal another width, and waits until the program has cleared what it had painted for the old one.
///
/// A screen that became narrower may look right before that, as its rows were cut.
#[track_caller]
pub fn resize(session: &TerminalSession, columns: u16) {
    let before = session.raw_output().len();
    session.resize(columns, ROWS);
    let begun = Instant::now();
    let is_cleared = |text: &str| text.contains("\u{1b}[J") || text.contains("\u{1b}[2J");
    while !is_cleared(&String::from_utf8_lossy(&session.raw_output()[before..])) {
        assert!(begun.elapsed() < Duration::from_secs(30), "nothing was painted\n{}", session.screen_text());
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Leaves a chat, which must then have ended well and left the terminal as it was.
#[track_caller]
pub fn leave(session: &TerminalSession) {
    session.key(Key::Ctrl('d'));
    ended(session, 0);
}

/// Says that the program ended with a code and left the terminal as it was.
#[track_caller]
pub fn ended(session: &TerminalSession, code: i32) {
    assert_eq!(session.wait_exit(), code, "{}", session.scrollback_text());
    is_as_before(session);
}

/// Says that a terminal is as a shell expects it.
#[track_caller]
pub fn is_as_before(session: &TerminalSession) {
    let screen = session.screen();
    assert_eq!(session.terminal_modes(), TerminalModes::NORMAL);
    assert!(!screen.hide_cursor(), "the cursor is hidden");
    assert!(!screen.bracketed_paste(), "pasting is still in brackets");
    assert!(!screen.alternate_screen(), "the alternate screen is still shown");
    assert_eq!(session.cursor().0, 0, "the prompt of a shell would not begin a row");
}

/// The binary with its arguments, its environment and the size of its terminal.
pub struct AtTerminal<'a> {
    sandbox: &'a Sandbox,
    arguments: Vec<String>,
    variables: Vec<(OsString, OsString)>,
    size: (u16, u16),
    redirected: bool,
}

impl<'a> AtTerminal<'a> {
    pub fn new(sandbox: &'a Sandbox, arguments: &[&str]) -> Self {
        let arguments = arguments.iter().map(ToString::to_string).collect();
        Self { sandbox, arguments, variables: Vec::new(), size: (COLUMNS, ROWS), redirected: false }
    }

    /// Sets a variable, such as `EDITOR` or `NO_COLOR`.
    pub fn env(mut self, name: &str, value: &str) -> Self {
        self.variables.push((name.into(), value.into()));
        self
    }

    /// Gives the terminal another size.
    pub fn size(mut self, columns: u16, rows: u16) -> Self {
        self.size = (columns, rows);
        self
    }

    /// Sends what is written to stdout to the file `stdout` of the sandbox.
    pub fn redirected(mut self) -> Self {
        self.redirected = true;
        self
    }

    #[track_caller]
    pub fn start(self) -> TerminalSession {
        let (columns, rows) = self.size;
        TerminalSession::spawn(self.command(), columns, rows)
    }

    /// Makes the command that a session runs.
    pub fn command(self) -> Command {
        let arguments: Vec<&str> = self.arguments.iter().map(String::as_str).collect();
        let mut command = self.sandbox.command(&arguments);
        if self.redirected {
            command = into_file(&command);
        }
        for (name, _) in std::env::vars_os().filter(|(name, _)| !is_kept(name)) {
            command.env_remove(name);
        }
        command.env("TERM", "xterm-256color").env("LANG", "C.UTF-8").env("EDITOR", "true");
        command.env("HOME", self.sandbox.home()).env("XDG_STATE_HOME", self.sandbox.state());
        command.envs(self.variables);
        command
    }
}

fn into_file(command: &Command) -> Command {
    let mut shell = Command::new("sh");
    shell.args(["-c", "exec \"$@\" > stdout", "sh"]).arg(command.get_program()).args(command.get_args());
    if let Some(directory) = command.get_current_dir() {
        shell.current_dir(directory);
    }
    shell
}

/// Says which variables the binary needs to find other programs and its temporary files.
fn is_kept(name: &std::ffi::OsStr) -> bool {
    ["PATH", "TMPDIR"].iter().any(|kept| name == *kept)
}
