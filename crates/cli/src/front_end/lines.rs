//! The line front end: messages and commands from a line editor or a pipe, everything else as lines on stderr.

use std::sync::Arc;

use llm_do::value::Schema;

use super::UserRequest;
use super::line_commands::{LineInput, parse};
use super::message_reader::{MessageReader, UserLine};
use crate::console::Console;

/// Reads and writes lines.
pub(crate) struct LineFrontEnd {
    console: Arc<Console>,
    /// The schema of a typed input, which may be written as JSON.
    schema: Option<Schema>,
    /// Opened when the first message is read: a single run reads none.
    reader: Option<MessageReader>,
}

impl LineFrontEnd {
    /// A front end that reads messages for an entry with this input schema.
    pub(crate) fn new(console: Arc<Console>, schema: Option<Schema>) -> Self {
        Self { console, schema, reader: None }
    }

    pub(super) async fn next(&mut self) -> Option<UserRequest> {
        loop {
            match self.read_line().await {
                UserLine::Text(text) => match parse(text.trim(), self.schema.as_ref()) {
                    LineInput::Request(request) => return Some(request),
                    LineInput::Reply(reply) => self.remark(&reply),
                    LineInput::Empty => {}
                },
                UserLine::Interrupted => self.remark("/quit or Ctrl-D leaves"),
                UserLine::NotUtf8 => {
                    let message = "error: a line is not UTF-8 text, so it was not sent";
                    return Some(UserRequest::Invalid(message.to_owned()));
                }
                UserLine::End => return None,
            }
        }
    }

    async fn read_line(&mut self) -> UserLine {
        let reader = self.reader.take().unwrap_or_else(|| MessageReader::open(self.console.plain));
        let (reader, line) = reader.next().await;
        self.reader = Some(reader);
        line
    }

    pub(super) fn remark(&self, text: &str) {
        self.console.line(text);
    }
}
