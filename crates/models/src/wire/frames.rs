//! Cuts a body into JSON texts: server-sent events, lines, or the body as a whole.
//!
//! Events are read here and not by a library because one provider reports failures in a field of its own
//! (`error: {...}`), which a reader that follows the standard drops. Line ends are LF, CRLF and CR; a byte
//! order mark is skipped; an event or line that the end of the body leaves open is given out as well, since
//! some servers forget the last blank line. Whether it is complete, its JSON tells.

use llm_do_core::{ModelError, ModelErrorKind};

use super::{MAX_EVENT_BYTES, json};

/// A buffer that grew beyond this is given back after its event.
const KEPT_BUFFER_BYTES: usize = 64 * 1024;

/// One piece of a body.
pub(super) enum ResponseFrame<'a> {
    /// A JSON text.
    Data(&'a [u8]),
    /// What a provider sent as a failure.
    Error(&'a [u8]),
    /// The mark `[DONE]`.
    Done,
}

/// Takes frames as they are completed.
pub(super) type Each<'a> = dyn FnMut(ResponseFrame<'_>) -> Result<(), ModelError> + 'a;

/// Cuts one body.
pub(super) struct Frames {
    style: Style,
    /// A line whose end has not come yet, or the whole body.
    line: Vec<u8>,
    follows_return: bool,
    event: Event,
}

/// How a body is divided.
#[derive(Clone, Copy, PartialEq)]
enum Style {
    /// Not known before the first letter.
    Undecided,
    Events,
    Lines,
    Whole,
}

/// An event whose end has not come yet.
#[derive(Default)]
struct Event {
    data: Vec<u8>,
    has_data: bool,
    is_error: bool,
}

impl Frames {
    /// Frames of a body that is either a stream of events or one JSON document.
    pub(super) fn detected() -> Self {
        Self::with_style(Style::Undecided)
    }

    /// Frames of a body with one JSON text per line.
    pub(super) fn lines() -> Self {
        Self::with_style(Style::Lines)
    }

    fn with_style(style: Style) -> Self {
        Self { style, line: Vec::new(), follows_return: false, event: Event::default() }
    }

    /// Takes more bytes.
    pub(super) fn push(&mut self, mut bytes: &[u8], each: &mut Each<'_>) -> Result<(), ModelError> {
        if self.style == Style::Undecided {
            bytes = self.decide(bytes);
        }
        match self.style {
            Style::Undecided => Ok(()),
            Style::Whole => append(&mut self.line, bytes),
            Style::Events | Style::Lines => self.push_lines(bytes, each),
        }
    }

    /// Says that no more bytes follow.
    pub(super) fn finish(&mut self, each: &mut Each<'_>) -> Result<(), ModelError> {
        let rest = std::mem::take(&mut self.line);
        if self.style == Style::Whole {
            return finish_whole(&rest, each);
        }
        self.end_line(&rest, each).or_else(unless_cut)?;
        self.event.dispatch(each).or_else(unless_cut)
    }

    /// Skips blanks and a byte order mark, and learns from the first letter what the body is.
    fn decide<'a>(&mut self, bytes: &'a [u8]) -> &'a [u8] {
        let is_skipped = |byte: &u8| byte.is_ascii_whitespace() || [0xEF, 0xBB, 0xBF].contains(byte);
        let Some(start) = bytes.iter().position(|byte| !is_skipped(byte)) else { return &[] };
        let is_field = bytes[start] == b':' || bytes[start].is_ascii_alphabetic();
        self.style = if is_field { Style::Events } else { Style::Whole };
        &bytes[start..]
    }

    fn push_lines(&mut self, mut bytes: &[u8], each: &mut Each<'_>) -> Result<(), ModelError> {
        while let Some(end) = memchr::memchr2(b'\n', b'\r', bytes) {
            let is_second_half = end == 0 && bytes[0] == b'\n' && self.follows_return;
            if !is_second_half {
                self.complete_line(&bytes[..end], each)?;
            }
            self.follows_return = bytes[end] == b'\r';
            bytes = &bytes[end + 1..];
        }
        if !bytes.is_empty() {
            self.follows_return = false;
        }
        append(&mut self.line, bytes)
    }

    fn complete_line(&mut self, end: &[u8], each: &mut Each<'_>) -> Result<(), ModelError> {
        if self.line.is_empty() {
            return self.end_line(end, each);
        }
        append(&mut self.line, end)?;
        let line = std::mem::take(&mut self.line);
        let result = self.end_line(&line, each);
        self.line = emptied(line);
        result
    }

    fn end_line(&mut self, line: &[u8], each: &mut Each<'_>) -> Result<(), ModelError> {
        match self.style {
            Style::Lines if line.trim_ascii().is_empty() => Ok(()),
            Style::Lines => each(ResponseFrame::Data(line)),
            _ if line.is_empty() => self.event.dispatch(each),
            _ => self.event.add(line),
        }
    }
}

impl Event {
    fn add(&mut self, line: &[u8]) -> Result<(), ModelError> {
        let colon = memchr::memchr(b':', line).unwrap_or(line.len());
        let (field, value) = line.split_at(colon);
        let value = value.strip_prefix(b":").unwrap_or(value);
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match field {
            b"data" => return self.add_data(value),
            b"event" => self.is_error = value == b"error",
            b"error" => {
                self.is_error = true;
                return self.add_data(value);
            }
            _ => {}
        }
        Ok(())
    }

    fn add_data(&mut self, value: &[u8]) -> Result<(), ModelError> {
        if self.has_data {
            append(&mut self.data, b"\n")?;
        }
        self.has_data = true;
        append(&mut self.data, value)
    }

    fn dispatch(&mut self, each: &mut Each<'_>) -> Result<(), ModelError> {
        let event = std::mem::take(self);
        let data = event.data.trim_ascii();
        let result = match data {
            [] => Ok(()),
            b"[DONE]" => each(ResponseFrame::Done),
            _ if event.is_error => each(ResponseFrame::Error(data)),
            _ => each(ResponseFrame::Data(data)),
        };
        self.data = emptied(event.data);
        result
    }
}

fn finish_whole(body: &[u8], each: &mut Each<'_>) -> Result<(), ModelError> {
    if body.trim_ascii().is_empty() {
        return Ok(());
    }
    each(ResponseFrame::Data(body))
}

/// What the end of the body cut is not an error of its own: the answer is then incomplete.
fn unless_cut(error: ModelError) -> Result<(), ModelError> {
    if error.kind == ModelErrorKind::Truncated { Ok(()) } else { Err(error) }
}

fn append(buffer: &mut Vec<u8>, bytes: &[u8]) -> Result<(), ModelError> {
    if buffer.len() + bytes.len() > MAX_EVENT_BYTES {
        return Err(json::too_large(format!(
            "an event is larger than the limit of {} MiB",
            MAX_EVENT_BYTES >> 20
        )));
    }
    buffer.extend_from_slice(bytes);
    Ok(())
}

fn emptied(mut buffer: Vec<u8>) -> Vec<u8> {
    if buffer.capacity() > KEPT_BUFFER_BYTES {
        return Vec::new();
    }
    buffer.clear();
    buffer
}
