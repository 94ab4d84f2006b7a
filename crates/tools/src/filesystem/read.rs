//! `read_file`: a part of a text file, counted in characters or in lines.

use std::path::Path;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::error::FileError;
use super::openat2::{OpenFile, SmallFile};
use super::root::{Root, read_up_to};
use super::secret::ApprovedSecrets;

/// What the model reads about the tool.
pub(crate) const DESCRIPTION: &str = "Reads a UTF-8 text file, or a part of it. \
    By default the part is counted in characters; with `start_line` or `line_count`, in lines. \
    Says how much there is in all, and whether the part was cut. \
    For a file that is not text, says what it is and how large.";

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Arguments {
    /// The file, relative to the root.
    path: String,
    /// How many characters to leave out at the beginning.
    #[serde(default)]
    offset: u64,
    /// How many characters to return at most.
    #[serde(default = "default_characters")]
    max_chars: u64,
    /// The first line to return, counted from 1. Not together with `offset`.
    #[serde(default)]
    start_line: Option<u64>,
    /// How many lines to return.
    #[serde(default)]
    line_count: Option<u64>,
}

fn default_characters() -> u64 {
    20_000
}

/// What was read.
#[derive(Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub(crate) enum ReadOutput {
    Text(TextPart),
    Other(OtherFile),
}

/// A part of a text file.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(crate) struct TextPart {
    content: String,
    /// The characters of the whole file; none where it is too large to be counted.
    total_chars: Option<u64>,
    total_lines: Option<u64>,
    offset: u64,
    truncated: bool,
    /// Where to read on.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_offset: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<String>,
}

/// A file that is not text.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(crate) struct OtherFile {
    media_type: String,
    size_bytes: u64,
    note: String,
}

/// Reads the part that is asked for.
pub(crate) fn run(
    root: &Root,
    arguments: &Arguments,
    approved: &ApprovedSecrets,
) -> Result<ReadOutput, FileError> {
    let OpenFile { file, size, path } = root.open_to_read(&arguments.path)?;
    let limit = root.root_config.settings.max_read_bytes;
    let bytes =
        read_up_to(file, limit, size).map_err(|error| FileError::system(&path.to_string_lossy(), error))?;
    approved.check(root, &path, &bytes)?;
    arguments.reading(&path, &bytes, size.max(bytes.len() as u64), limit)
}

/// Reads what is asked for where nothing has to be waited for; nothing where it must be.
pub(crate) fn at_once(
    root: &Root,
    arguments: &Arguments,
    approved: &ApprovedSecrets,
) -> Option<Result<ReadOutput, FileError>> {
    let SmallFile { bytes, path } = root.read_at_once(&arguments.path)?;
    let size = bytes.len() as u64;
    let read =
        approved.check(root, &path, &bytes).and_then(|()| arguments.reading(&path, &bytes, size, size));
    Some(read)
}

/// Returns the bytes as text. Where they were cut, so may be the last character.
fn as_text(bytes: &[u8], is_cut: bool) -> Option<&str> {
    if bytes.contains(&0) {
        return None;
    }
    match std::str::from_utf8(bytes) {
        Ok(text) => Some(text),
        Err(error) if is_cut && error.error_len().is_none() => {
            std::str::from_utf8(&bytes[..error.valid_up_to()]).ok()
        }
        Err(_) => None,
    }
}

impl Arguments {
    /// Returns the path as it was asked for.
    pub(crate) fn path(&self) -> &str {
        &self.path
    }

    /// Describes the content of a file of which so many bytes were read.
    fn reading(&self, path: &Path, bytes: &[u8], size: u64, limit: u64) -> Result<ReadOutput, FileError> {
        let is_cut = size > bytes.len() as u64;
        let Some(text) = as_text(bytes, is_cut) else {
            return Ok(ReadOutput::Other(OtherFile::new(&path.to_string_lossy(), bytes, size)));
        };
        let mut part = self.part_of(text)?;
        if is_cut {
            part.leave_open(size, limit);
        }
        Ok(ReadOutput::Text(part))
    }

    fn part_of(&self, text: &str) -> Result<TextPart, FileError> {
        let (start, end) = match (self.start_line, self.line_count) {
            (None, None) => (byte_of_character(text, self.offset), text.len()),
            _ if self.offset != 0 => {
                let problem = "give either `offset` or `start_line` and `line_count`, not both";
                return Err(FileError::Argument(problem.to_owned()));
            }
            (start, count) => byte_range_of_lines(text, start.unwrap_or(1), count),
        };
        let wanted = &text[start..end];
        let content = &wanted[..byte_of_character(wanted, self.max_chars)];
        let offset = characters(&text[..start]);
        let truncated = start + content.len() < text.len();
        Ok(TextPart {
            content: content.to_owned(),
            total_chars: Some(characters(text)),
            total_lines: Some(text.lines().count() as u64),
            offset,
            truncated,
            next_offset: truncated.then(|| offset + characters(content)),
            note: None,
        })
    }
}

impl TextPart {
    /// Takes back what is not known of a file that was not looked at to its end.
    fn leave_open(&mut self, size: u64, limit: u64) {
        self.total_chars = None;
        self.total_lines = None;
        self.truncated = true;
        self.note = Some(format!("the file has {size} bytes, of which only the first {limit} can be read"));
    }
}

fn characters(text: &str) -> u64 {
    text.chars().count() as u64
}

/// Where a character begins, or the end of the text.
fn byte_of_character(text: &str, number: u64) -> usize {
    let number = usize::try_from(number).unwrap_or(usize::MAX);
    text.char_indices().nth(number).map_or(text.len(), |(byte, _)| byte)
}

/// Where lines begin and end, with the line end of the last one.
fn byte_range_of_lines(text: &str, first: u64, count: Option<u64>) -> (usize, usize) {
    let start = byte_of_line(text, first.saturating_sub(1));
    let end = count.map_or(text.len(), |count| start + byte_of_line(&text[start..], count));
    (start, end)
}

/// Where a line begins that has this many before it, or the end of the text.
fn byte_of_line(text: &str, before: u64) -> usize {
    let before = usize::try_from(before).unwrap_or(usize::MAX);
    text.split_inclusive('\n').take(before).map(str::len).sum()
}

const NOT_TEXT: &str = "this file is not UTF-8 text; to show it to an agent, call the agent with the file's path \
    from the directory of the project under `attachments`";

impl OtherFile {
    fn new(path: &str, bytes: &[u8], size_bytes: u64) -> Self {
        let found = infer::get(bytes).map(|kind| kind.mime_type());
        let media_type = found.or_else(|| mime_guess::from_path(path).first_raw());
        let media_type = media_type.unwrap_or("application/octet-stream").to_owned();
        Self { media_type, size_bytes, note: NOT_TEXT.to_owned() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arguments() -> Arguments {
        Arguments { path: String::new(), offset: 0, max_chars: 20_000, start_line: None, line_count: None }
    }

    #[test]
    fn characters_are_counted_not_bytes() {
        let part = Arguments { offset: 1, max_chars: 2, ..arguments() }.part_of("äöüß\nx").unwrap();
        assert_eq!((part.content.as_str(), part.offset, part.next_offset), ("öü", 1, Some(3)));
        assert_eq!((part.total_chars, part.total_lines, part.truncated), (Some(6), Some(2), true));
    }

    #[test]
    fn lines_are_counted_from_one_and_keep_their_ends() {
        let text = "a\r\nb\nc";
        let part = |start_line, line_count| {
            Arguments { start_line, line_count, ..arguments() }.part_of(text).unwrap()
        };
        assert_eq!(part(Some(2), Some(1)).content, "b\n");
        assert_eq!(part(None, Some(1)).content, "a\r\n");
        let rest = part(Some(2), None);
        assert_eq!((rest.content.as_str(), rest.truncated), ("b\nc", false));
        assert_eq!(part(Some(9), Some(1)).content, "");
    }

    #[test]
    fn an_offset_beyond_the_end_gives_nothing_and_is_not_cut() {
        let part = Arguments { offset: u64::MAX, ..arguments() }.part_of("abc").unwrap();
        assert_eq!((part.content.as_str(), part.offset, part.truncated), ("", 3, false));
    }

    #[test]
    fn a_character_that_was_cut_is_left_out_but_a_broken_one_is_not_text() {
        assert_eq!(as_text(b"a\xc3", true), Some("a"));
        assert_eq!(as_text(b"a\xc3", false), None);
        assert_eq!(as_text(b"a\xffb", true), None);
        assert_eq!(as_text(b"a\0b", false), None);
    }
}
