//! Writes to stdout and stderr. A reader that went away is not reported.

use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering};

use llm_do::event::Event;
use llm_do::usage::Usage;
use llm_do_core::counted;
use parking_lot::Mutex;

use crate::console::Paint;

/// Notices from before the run.
static EARLY: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Set when stdout could not be written, though somebody reads it.
static FAILED: AtomicBool = AtomicBool::new(false);

/// Writes a line to stdout; returns whether anybody reads it.
pub(crate) fn to_stdout(text: &str) -> bool {
    is_read(write_line(&mut io::stdout().lock(), text))
}

/// Writes a part of a line to stdout; returns whether anybody reads it.
pub(crate) fn write_stdout(text: &str) -> bool {
    let mut stdout = io::stdout().lock();
    is_read(stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()))
}

/// Returns whether something was written. A reader that went away is not an error; everything else is reported.
pub(crate) fn is_read(written: io::Result<()>) -> bool {
    match written {
        Ok(()) => true,
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => false,
        Err(error) => {
            if !FAILED.swap(true, Ordering::Relaxed) {
                to_stderr(&format!("error: stdout cannot be written: {error}"));
            }
            false
        }
    }
}

/// Returns whether stdout could not be written.
pub(crate) fn has_failed() -> bool {
    FAILED.load(Ordering::Relaxed)
}

/// Writes a line to stderr. If that fails, there is no other place to report it.
pub(crate) fn to_stderr(text: &str) {
    let _ = write_line(&mut io::stderr().lock(), text);
}

/// Prints a notice from before the run on stderr, and keeps it for the object of `--output json`.
pub(crate) fn early_notice(text: &str) {
    to_stderr(&Paint::for_stderr().message(&format!("notice: {text}")));
    EARLY.lock().push(text.to_owned());
}

/// Returns the notices from before the run.
pub(crate) fn early_notices() -> Vec<String> {
    EARLY.lock().clone()
}

/// One write per line, so that lines of several threads never mix.
fn write_line(stream: &mut impl Write, text: &str) -> io::Result<()> {
    let mut line = text.to_owned();
    if !line.ends_with('\n') {
        line.push('\n');
    }
    stream.write_all(line.as_bytes())?;
    stream.flush()
}

/// Writes an event as one line of JSON.
pub(crate) fn event_line(event: &Event) -> String {
    serde_json::to_string(event).unwrap_or_default()
}

/// Writes what was used as one line for a person.
pub(crate) fn usage_line(usage: &Usage) -> String {
    let (requests, tokens) = (counted(usage.requests, "request"), counted(usage.tokens(), "token"));
    let free = || (usage.cost.unpriced == 0).then(|| usage.cost.known.to_string());
    let cost = usage.cost.describe().or_else(free).map(|message| format!(", {message}")).unwrap_or_default();
    format!("{requests}, {tokens}{cost}")
}
