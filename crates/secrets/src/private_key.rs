//! Blocks of private keys, as files hold them and as other texts quote them.

use std::ops::Range;

use memchr::memmem::{find, rfind};

/// How such a block begins. The words before `PRIVATE KEY` differ, so the beginning of the line is looked at afterwards.
pub(crate) const MARKERS: &[&str] = &["PRIVATE KEY-----", "PRIVATE KEY BLOCK-----", "Private-Lines: "];

const DASHES: &[u8] = b"-----";
const BEGIN: &[u8] = b"-----BEGIN ";
const END: &[u8] = b"-----END ";
/// How long the words between `BEGIN` and `PRIVATE KEY` are at most.
const MAX_LABEL: usize = 32;
/// How long a block is at most: an RSA key of 16,384 bits has 13 KiB.
const MAX_BLOCK: usize = 64 * 1024;
/// How many characters of base64 a key has at least. Ed25519 keys have 64.
const MIN_KEY: usize = 60;
/// How many characters of base64 a line of a key has at least, but for the last.
const MIN_LINE: usize = 40;

/// Returns where a private key is that has a marker at some position.
pub(crate) fn span(text: &[u8], marker: Range<usize>) -> Option<Range<usize>> {
    let start = start(text, &marker)?;
    let rest = text.get(marker.end..)?;
    let rest = &rest[..rest.len().min(MAX_BLOCK)];
    let body = match find(rest, END) {
        Some(end) => &rest[..end],
        // The end was cut off, or there is none.
        None => &rest[..body_len(rest)],
    };
    if !is_key(body) {
        return None;
    }
    Some(start..marker.end + body.len() + trailer_len(&rest[body.len()..]))
}

/// Returns where the block begins: at `-----BEGIN`, on the same line.
fn start(text: &[u8], marker: &Range<usize>) -> Option<usize> {
    if text.get(marker.clone())?.starts_with(b"Private-Lines") {
        return Some(marker.start);
    }
    let from = marker.start.saturating_sub(MAX_LABEL + BEGIN.len());
    let before = &text[from..marker.start];
    let begin = rfind(before, BEGIN)?;
    let label = &before[begin + BEGIN.len()..];
    let is_label = |byte: &u8| byte.is_ascii_uppercase() || byte.is_ascii_digit() || *byte == b' ';
    label.iter().all(is_label).then_some(from + begin)
}

/// Returns the length of `-----END ... PRIVATE KEY-----`.
fn trailer_len(rest: &[u8]) -> usize {
    let Some(label) = rest.strip_prefix(END) else { return 0 };
    let end = find(label, DASHES).filter(|end| *end <= MAX_LABEL + 16);
    end.map_or(END.len(), |end| END.len() + end + DASHES.len())
}

/// Returns the length of the lines at the beginning that belong to a key, whatever precedes them on each line.
fn body_len(rest: &[u8]) -> usize {
    const HEADERS: [&[u8]; 4] = [b"Proc-Type:", b"DEK-Info:", b"Version:", b"Comment:"];
    let is_part = |line: &&[u8]| {
        let longest = line.split(|byte| !is_base64(*byte)).map(<[u8]>::len).max().unwrap_or(0);
        let is_blank = line.trim_ascii().len() <= 3;
        longest >= MIN_LINE || is_blank || HEADERS.iter().any(|header| find(line, header).is_some())
    };
    let mut lines = rest.split_inclusive(|byte| *byte == b'\n').peekable();
    let mut len = 0;
    while let Some(line) = lines.next_if(is_part) {
        len += line.len();
    }
    let is_last = |line: &&[u8]| line.trim_ascii().iter().all(|byte| is_base64(*byte));
    len + lines.next_if(is_last).map_or(0, <[u8]>::len)
}

/// Returns whether a body holds a key: enough base64 of enough variety, and nearly nothing else.
fn is_key(body: &[u8]) -> bool {
    let runs = body.split(|byte| !is_base64(*byte)).filter(|run| run.len() >= 12);
    let encoded: usize = runs.clone().map(<[u8]>::len).sum();
    let mut seen = [false; 256];
    runs.flatten().for_each(|byte| seen[usize::from(*byte)] = true);
    let distinct = seen.iter().filter(|seen| **seen).count();
    encoded >= MIN_KEY && distinct >= 20 && encoded * 2 >= body.len()
}

fn is_base64(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=')
}
