//! The binary at a terminal, away from the environment of whoever runs the tests.

use std::ffi::OsString;

use llm_do_testing::terminal::TerminalSession;

use crate::sandbox::Sandbox;

/// The columns of a usual terminal.
pub const COLUMNS: u16 = 80;
/// The rows of a usual terminal.
pub const ROWS: u16 = 24;

/// Starts the binary in a sandbox, on a terminal of the usual size.
#[track_caller]
pub fn start(sandbox: &Sandbox, arguments: &[&str]) -> TerminalSession {
    AtTerminal::new(sandbox, arguments).start()
}

/// The binary with its arguments, its environment and the size of its terminal.
pub struct AtTerminal<'a> {
    sandbox: &'a Sandbox,
    arguments: Vec<String>,
    variables: Vec<(OsString, OsString)>,
    size: (u16, u16),
}

impl<'a> AtTerminal<'a> {
    pub fn new(sandbox: &'a Sandbox, arguments: &[&str]) -> Self {
        let arguments = arguments.iter().map(ToString::to_string).collect();
        Self { sandbox, arguments, variables: Vec::new(), size: (COLUMNS, ROWS) }
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

    #[track_caller]
    pub fn start(self) -> TerminalSession {
        let arguments: Vec<&str> = self.arguments.iter().map(String::as_str).collect();
        let mut command = self.sandbox.command(&arguments);
        for (name, _) in std::env::vars_os().filter(|(name, _)| !is_kept(name)) {
            command.env_remove(name);
        }
        command.env("TERM", "xterm-256color").env("LANG", "C.UTF-8").env("EDITOR", "true");
        command.env("HOME", self.sandbox.root()).env("XDG_STATE_HOME", self.sandbox.path("state"));
        command.envs(self.variables);
        TerminalSession::spawn(command, self.size.0, self.size.1)
    }
}

/// Says which variables the binary needs to find other programs and its temporary files.
fn is_kept(name: &std::ffi::OsStr) -> bool {
    ["PATH", "TMPDIR"].iter().any(|kept| name == *kept)
}
