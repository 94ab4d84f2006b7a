//! Reads a secret from the terminal without showing it.
//!
//! The keys are read one by one, so that an interrupt reaches this code and the terminal is put back in order.

use std::fs::File;
use std::io::{Read, Write};

use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};

use crate::command_error::CommandError;

const INTERRUPT: u8 = 0x03;
const END: u8 = 0x04;
const ERASE_LINE: u8 = 0x15;

/// Asks for a secret at the terminal of this process.
pub(crate) fn read_secret(question: &str) -> Result<String, CommandError> {
    let none = |_| {
        CommandError::with_hint("the key cannot be typed without a terminal", "pipe it in with `--stdin`")
    };
    let mut terminal = File::options().read(true).write(true).open("/dev/tty").map_err(none)?;
    let failed = |error: std::io::Error| CommandError::usage(format!("the terminal cannot be read: {error}"));
    let silent = Silent::new(&terminal).map_err(failed)?;
    terminal.write_all(question.as_bytes()).map_err(failed)?;
    let read = read_line(&mut terminal).map_err(failed)?;
    drop(silent);
    let _ = terminal.write_all(b"\n");
    read.ok_or_else(|| CommandError::usage("interrupted, so nothing was stored"))
}

/// Reads until the end of the line; nothing after an interrupt.
fn read_line(terminal: &mut impl Read) -> std::io::Result<Option<String>> {
    let mut line = Vec::new();
    let mut byte = [0];
    loop {
        if terminal.read(&mut byte)? == 0 {
            break;
        }
        match byte[0] {
            b'\r' | b'\n' => break,
            INTERRUPT => return Ok(None),
            END if line.is_empty() => return Ok(None),
            ERASE_LINE => line.clear(),
            0x08 | 0x7f => drop(line.pop()),
            byte => line.push(byte),
        }
    }
    Ok(Some(String::from_utf8_lossy(&line).into_owned()))
}

/// A terminal that shows nothing of what is typed, until this is dropped.
struct Silent {
    terminal: File,
    before: Termios,
}

impl Silent {
    fn new(terminal: &File) -> std::io::Result<Self> {
        let before = tcgetattr(terminal)?;
        let mut silent = before.clone();
        silent.local_modes.remove(LocalModes::ECHO | LocalModes::ICANON | LocalModes::ISIG);
        // What was typed before the question is thrown away.
        tcsetattr(terminal, OptionalActions::Flush, &silent)?;
        Ok(Self { terminal: terminal.try_clone()?, before })
    }
}

impl Drop for Silent {
    fn drop(&mut self) {
        let _ = tcsetattr(&self.terminal, OptionalActions::Flush, &self.before);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn typed(keys: &[u8]) -> Option<String> {
        read_line(&mut &*keys).unwrap()
    }

    #[test]
    fn a_line_can_be_corrected_and_given_up() {
        assert_eq!(typed(b"secret\rmore").as_deref(), Some("secret"));
        assert_eq!(typed(b"wrong\x15secrex\x7ft\n").as_deref(), Some("secret"));
        assert_eq!(typed(b"secret\x03\n"), None);
        assert_eq!(typed(b"\x04"), None);
    }
}
