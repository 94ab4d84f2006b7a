//! Reads stdin: as the whole input, or as what follows a prompt.
//!
//! A person at a terminal is never waited for. A prompt is complete without stdin, so it waits only a short time for
//! the first byte: programs often inherit a stdin that stays open and gives nothing.

use std::io::{IsTerminal, Read, stdin};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;

use crate::command_error::CommandError;
use crate::output;

/// The most bytes that are read from stdin or from a file.
pub(crate) const MAX_BYTES: u64 = 32 * 1024 * 1024;
/// How long a prompt waits for the first byte.
const FIRST_BYTE: Duration = Duration::from_secs(3);
/// How long a project that takes no input looks for some.
const LOOK: Duration = Duration::from_millis(100);

/// Reads all of stdin, without its last line end. Returns nothing at a terminal or if stdin is empty.
pub(crate) fn read() -> Result<Option<String>, CommandError> {
    if stdin().is_terminal() {
        return Ok(None);
    }
    let mut text = read_text(stdin().lock(), "stdin")?;
    let line = text.strip_suffix('\n').map(|line| line.strip_suffix('\r').unwrap_or(line));
    text.truncate(line.map_or(text.len(), str::len));
    Ok((!text.is_empty()).then_some(text))
}

/// Reads what follows a prompt. Returns nothing if stdin is blank, or silent for too long.
pub(crate) fn read_after_prompt() -> Result<Option<String>, CommandError> {
    if stdin().is_terminal() {
        return Ok(None);
    }
    if !is_ready_within(FIRST_BYTE) {
        output::early_notice(&format!(
            "nothing came from stdin within {} s, so only the prompt is used\n\
             hint: `</dev/null` keeps stdin out; for a slow program send the prompt through the pipe too: \
             `{{ echo PROMPT; PROGRAM; }} | llm-do run PATH`",
            FIRST_BYTE.as_secs()
        ));
        return Ok(None);
    }
    let is_shared = is_read_by_others();
    let text = read()?.filter(|text| !text.trim().is_empty());
    if is_shared && text.is_some() {
        output::early_notice(
            "the rest of stdin was added to the prompt, and another program had read the beginning\n\
             hint: in a shell loop, `</dev/null` leaves the lines to the loop",
        );
    }
    Ok(text)
}

/// Returns whether stdin gives at least one byte.
pub(crate) fn has_bytes() -> bool {
    !stdin().is_terminal()
        && is_ready_within(LOOK)
        && stdin().lock().read(&mut [0]).is_ok_and(|read| read > 0)
}

/// Returns whether stdin is a file that somebody has begun to read, as a shell loop does.
fn is_read_by_others() -> bool {
    rustix::fs::tell(stdin()).is_ok_and(|position| position > 0)
}

/// Waits until stdin has bytes or has ended.
fn is_ready_within(limit: Duration) -> bool {
    let deadline = Instant::now() + limit;
    loop {
        let stream = stdin();
        let mut waiting = [PollFd::new(&stream, PollFlags::IN)];
        let left = deadline.saturating_duration_since(Instant::now());
        let left = rustix::time::Timespec::try_from(left).ok();
        match poll(&mut waiting, left.as_ref()) {
            Ok(ready) => return ready > 0,
            Err(Errno::INTR) => {}
            // Reading shows what is wrong.
            Err(_) => return true,
        }
    }
}

/// Reads a text of limited size.
pub(crate) fn read_text(stream: impl Read, name: &str) -> Result<String, CommandError> {
    let mut bytes = Vec::new();
    let read = stream.take(MAX_BYTES + 1).read_to_end(&mut bytes);
    read.map_err(|error| CommandError::usage(format!("{name} cannot be read: {error}")))?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(CommandError::usage(format!("{name} gives more than {} MiB", MAX_BYTES / 1024 / 1024)));
    }
    String::from_utf8(bytes).map_err(|_| {
        CommandError::with_hint(format!("{name} is not UTF-8 text"), "attach the file with `--attach`")
    })
}
