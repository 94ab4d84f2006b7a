//! Chooses the front end: the terminal UI, lines, or plain lines for a screen reader.

use std::io::{IsTerminal, stderr, stdin, stdout};

use crate::arguments::{Output, RunOptions};
use crate::command_error::CommandError;

/// Which front end a run has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FrontEndKind {
    /// Lines on stderr, and a status line on a terminal.
    Lines,
    /// Lines that are never redrawn, in sentences.
    Plain,
    /// The terminal UI.
    Tui,
}

impl FrontEndKind {
    /// Returns that of a run or chat: the terminal UI if stdout and stderr are a terminal and no flag asks for lines.
    pub(crate) fn for_run(options: &RunOptions) -> Result<Self, CommandError> {
        if options.plain {
            return Ok(Self::Plain);
        }
        if options.tui {
            return forced(options);
        }
        let wants_lines = options.headless || options.verbose > 0 || asks_program(options);
        let is_watched = stdout().is_terminal() && stderr().is_terminal() && !is_dumb() && has_terminal();
        let is_tui = is_watched && !wants_lines && options.output == Output::Text;
        Ok(if is_tui { Self::Tui } else { Self::Lines })
    }

    /// Returns that of a chat: messages from a pipe are answered in lines.
    pub(crate) fn for_chat(options: &RunOptions) -> Result<Self, CommandError> {
        let kind = Self::for_run(options)?;
        let is_piped = kind == Self::Tui && !options.tui && !stdin().is_terminal();
        Ok(if is_piped { Self::Lines } else { kind })
    }

    /// Returns that of a single call: lines, unless a flag asks for something else.
    pub(crate) fn for_call(options: &RunOptions) -> Result<Self, CommandError> {
        if options.plain || options.tui { Self::for_run(options) } else { Ok(Self::Lines) }
    }
}

fn asks_program(options: &RunOptions) -> bool {
    options.approvals_from.is_some() || options.approve_with.is_some()
}

fn forced(options: &RunOptions) -> Result<FrontEndKind, CommandError> {
    if options.output != Output::Text {
        return Err(CommandError::with_hint(
            "`--tui` cannot be combined with `--output json` or `--output jsonl`",
            "leave one of the two flags out",
        ));
    }
    if is_dumb() || !has_terminal() {
        return Err(CommandError::with_hint(
            "`--tui` needs a terminal",
            "run it at a terminal, or leave `--tui` out",
        ));
    }
    Ok(FrontEndKind::Tui)
}

fn is_dumb() -> bool {
    std::env::var_os("TERM").is_none_or(|term| term.is_empty() || term == "dumb")
}

fn has_terminal() -> bool {
    std::fs::File::options().read(true).write(true).open("/dev/tty").is_ok()
}
