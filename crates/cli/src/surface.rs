//! How a run shows itself to a person: the terminal UI, lines, or plain lines for those who listen.

use std::io::{IsTerminal, stderr, stdin, stdout};

use crate::arguments::{Output, RunOptions};
use crate::problem::Problem;

/// How a run shows itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Surface {
    /// Lines on stderr, and a status line on a terminal.
    Lines,
    /// Lines that are never painted over, in words.
    Plain,
    /// The terminal UI.
    Tui,
}

impl Surface {
    /// The surface of a run or chat: the terminal UI where a person looks on and asked for nothing else.
    pub(crate) fn of(options: &RunOptions) -> Result<Self, Problem> {
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

    /// The surface of a chat: messages from a pipe are answered in lines.
    pub(crate) fn of_chat(options: &RunOptions) -> Result<Self, Problem> {
        let surface = Self::of(options)?;
        let is_piped = surface == Self::Tui && !options.tui && !stdin().is_terminal();
        Ok(if is_piped { Self::Lines } else { surface })
    }

    /// The surface of a single call: lines, unless something else was asked for.
    pub(crate) fn of_call(options: &RunOptions) -> Result<Self, Problem> {
        if options.plain || options.tui { Self::of(options) } else { Ok(Self::Lines) }
    }
}

fn asks_program(options: &RunOptions) -> bool {
    options.approvals_from.is_some() || options.approve_with.is_some()
}

fn forced(options: &RunOptions) -> Result<Surface, Problem> {
    if options.output != Output::Text {
        return Err(Problem::with_hint(
            "`--tui` draws for a person, and `--output` writes for a program",
            "leave one of them out",
        ));
    }
    if is_dumb() || !has_terminal() {
        return Err(Problem::with_hint(
            "`--tui` needs a terminal, and there is none",
            "run it at a terminal, or leave `--tui` out",
        ));
    }
    Ok(Surface::Tui)
}

fn is_dumb() -> bool {
    std::env::var_os("TERM").is_none_or(|term| term.is_empty() || term == "dumb")
}

fn has_terminal() -> bool {
    std::fs::File::options().read(true).write(true).open("/dev/tty").is_ok()
}
