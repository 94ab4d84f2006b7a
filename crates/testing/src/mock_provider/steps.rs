//! A body as a row of steps: bytes, waits, and an end.

use std::time::Duration;

use bytes::Bytes;

use super::response::{Generated, MockResponse};

/// The size of the parts in which a generated text is sent.
const GENERATED_PART: usize = 64 * 1024;

/// One step of sending a body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Step {
    Send(Bytes),
    Wait(Duration),
    /// The connection is closed before the body ended.
    Cut,
}

/// Returns the steps of a response's body.
pub(super) fn steps(response: &MockResponse) -> Vec<Step> {
    let mut pieces = response.pieces.clone();
    pieces.extend(response.append_generated.iter().flat_map(generated));
    let length: usize = pieces.iter().map(Bytes::len).sum();
    let end = response.cut_after_bytes.unwrap_or(length).min(length);
    let pieces = dripped(upto(pieces, end), response.drip.map(|drip| drip.bytes));
    let pause = response.drip.map(|drip| Duration::from_millis(drip.every_ms));
    let mut steps =
        with_waits(pieces, pause, response.stall_after_bytes, Duration::from_millis(response.stall_ms));
    let is_short = response.promised_length().is_some_and(|promised| promised > end);
    if response.cut_after_bytes.is_some() || is_short {
        steps.push(Step::Cut);
    }
    steps
}

/// Returns a generated text in parts that share their bytes.
fn generated(text: &Generated) -> Vec<Bytes> {
    let whole = (GENERATED_PART / text.repeat.len().max(1)).max(1);
    let part = Bytes::from(text.repeat.repeat(whole.min(text.count)));
    let mut parts = vec![Bytes::from(text.prefix.clone())];
    parts.extend(std::iter::repeat_n(part, text.count / whole));
    parts.push(Bytes::from(text.repeat.repeat(text.count % whole)));
    parts.push(Bytes::from(text.suffix.clone()));
    parts.retain(|part| !part.is_empty());
    parts
}

/// Returns the first bytes.
fn upto(pieces: Vec<Bytes>, end: usize) -> Vec<Bytes> {
    let mut left = end;
    let cut = pieces.into_iter().map(|piece| {
        let piece = piece.slice(..piece.len().min(left));
        left -= piece.len();
        piece
    });
    cut.filter(|piece| !piece.is_empty()).collect()
}

/// Returns the bytes in parts of one size, where there is one.
fn dripped(pieces: Vec<Bytes>, size: Option<usize>) -> Vec<Bytes> {
    let Some(size) = size else { return pieces };
    let whole = Bytes::from(pieces.concat());
    let starts = (0..whole.len()).step_by(size.max(1));
    starts.map(|start| whole.slice(start..whole.len().min(start + size.max(1)))).collect()
}

/// Puts a pause between pieces, and the stall at its place, which may lie within a piece.
fn with_waits(
    pieces: Vec<Bytes>,
    pause: Option<Duration>,
    stall_after: Option<usize>,
    stall: Duration,
) -> Vec<Step> {
    let mut steps = Vec::new();
    let (mut sent, mut stall_at) = (0, stall_after);
    for mut piece in pieces {
        if let Some(pause) = pause.filter(|_| sent > 0) {
            steps.push(Step::Wait(pause));
        }
        let length = piece.len();
        if let Some(at) = stall_at.filter(|at| *at < sent + length) {
            let before = piece.split_to(at - sent);
            steps.extend((!before.is_empty()).then_some(Step::Send(before)));
            steps.push(Step::Wait(stall));
            stall_at = None;
        }
        steps.push(Step::Send(piece));
        sent += length;
    }
    steps.extend(stall_at.map(|_| Step::Wait(stall)));
    steps
}
