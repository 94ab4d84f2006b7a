//! One question at the terminal, answered with a line, before anything runs.

use std::fs::File;
use std::io::{IsTerminal, Read, Write, stderr, stdin, stdout};

use rustix::termios::{QueueSelector, tcflush};

/// Shows a question at the terminal and reads one line; nothing if there is no terminal.
pub(crate) fn ask(question: &str) -> Option<String> {
    let mut terminal = open_terminal()?;
    // What was typed before the question could be read is not an answer to it.
    let _ = tcflush(&terminal, QueueSelector::IFlush);
    terminal.write_all(question.as_bytes()).ok()?;
    Some(read_line(&mut terminal).trim().to_owned())
}

/// Opens the terminal of the process; nothing if nobody looks at it.
pub(crate) fn open_terminal() -> Option<File> {
    if !stderr().is_terminal() && !stdin().is_terminal() && !stdout().is_terminal() {
        return None;
    }
    File::options().read(true).write(true).open("/dev/tty").ok()
}

/// A longer line is not typed by a person.
const MAX_LINE_BYTES: usize = 4_096;

/// Reads a line of a usual length.
pub(crate) fn read_line(terminal: &mut File) -> String {
    let mut line = Vec::new();
    let mut byte = [0];
    while line.len() < MAX_LINE_BYTES && matches!(terminal.read(&mut byte), Ok(1)) && byte[0] != b'\n' {
        line.push(byte[0]);
    }
    String::from_utf8_lossy(&line).into_owned()
}
