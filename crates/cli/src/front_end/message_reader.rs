//! Reads the messages of a chat from a line editor, a plain terminal or a pipe.

use std::io::{BufRead, IsTerminal, stdin};

use rustyline::error::ReadlineError;

use crate::environment::state_directory;
use crate::history::History;
use crate::output;

/// How many messages can be recalled.
const MAX_RECALLED: usize = 1_000;

/// Where messages come from.
pub(super) enum MessageReader {
    Terminal(Box<LineEditor>),
    /// A terminal with a screen reader: the line is read as the terminal itself edits it.
    Plain,
    Pipe,
}

/// A line editor that remembers what was sent, in earlier chats too.
pub(super) struct LineEditor {
    editor: rustyline::DefaultEditor,
    history: Option<History>,
}

/// One message, or why there is none.
pub(super) enum UserLine {
    Text(String),
    Interrupted,
    /// Bytes that are not text.
    NotUtf8,
    End,
}

impl MessageReader {
    /// Opens stdin: a line editor at a terminal, unless plain lines are wanted.
    pub(super) fn open(is_plain: bool) -> Self {
        if is_plain {
            return Self::Plain;
        }
        if !stdin().is_terminal() {
            return Self::Pipe;
        }
        LineEditor::open().map_or(Self::Pipe, |editor| Self::Terminal(Box::new(editor)))
    }

    /// Reads the next message, on a thread that may block.
    pub(super) async fn next(self) -> (Self, UserLine) {
        let read = tokio::task::spawn_blocking(move || match self {
            Self::Terminal(mut editor) => {
                let line = editor.read();
                (Self::Terminal(editor), line)
            }
            Self::Plain => {
                output::to_stderr("Your message, then Enter:");
                (Self::Plain, read_pipe())
            }
            Self::Pipe => (Self::Pipe, read_pipe()),
        });
        read.await.unwrap_or((Self::Pipe, UserLine::End))
    }
}

impl LineEditor {
    fn open() -> rustyline::Result<Self> {
        let config = rustyline::Config::builder().max_history_size(MAX_RECALLED)?.build();
        let mut editor = rustyline::DefaultEditor::with_config(config)?;
        let history = state_directory().map(|directory| History::new(directory.join("history")));
        for entry in history.iter().flat_map(History::entries) {
            editor.add_history_entry(entry)?;
        }
        Ok(Self { editor, history })
    }

    /// Reads a message: a line, and further ones while they end in a backslash.
    fn read(&mut self) -> UserLine {
        let read = message(|is_first| match self.editor.readline(if is_first { "> " } else { ". " }) {
            Ok(line) => UserLine::Text(line),
            Err(ReadlineError::Interrupted) => UserLine::Interrupted,
            Err(_) => UserLine::End,
        });
        if let UserLine::Text(text) = &read {
            self.remember(text);
        }
        read
    }

    /// Keeps a message, unless the one before was the same. A history that cannot be written is not worth an error.
    fn remember(&mut self, text: &str) {
        if let (Ok(true), Some(history)) = (self.editor.add_history_entry(text), &self.history) {
            let _ = history.add(text);
        }
    }
}

fn read_pipe() -> UserLine {
    message(|_| {
        let mut bytes = Vec::new();
        match stdin().lock().read_until(b'\n', &mut bytes) {
            Ok(0) | Err(_) => UserLine::End,
            Ok(_) => match String::from_utf8(bytes) {
                Ok(text) => UserLine::Text(text.trim_end_matches(['\n', '\r']).to_owned()),
                Err(_) => UserLine::NotUtf8,
            },
        }
    })
}

/// Joins a line with those after it while it ends in a backslash.
fn message(mut next: impl FnMut(bool) -> UserLine) -> UserLine {
    let mut text = String::new();
    loop {
        match next(text.is_empty()) {
            UserLine::Text(line) => match line.strip_suffix('\\') {
                Some(part) => {
                    text.push_str(part);
                    text.push('\n');
                }
                None => return UserLine::Text(text + &line),
            },
            UserLine::End if !text.is_empty() => return UserLine::Text(text),
            other => return other,
        }
    }
}
