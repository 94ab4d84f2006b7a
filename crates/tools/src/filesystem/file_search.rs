//! The lines of one file that match a regular expression, found by ripgrep's own crates.

use std::io::{self, Read};
use std::path::Path;

use cap_std::fs::File;
use grep_matcher::Matcher;
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder, Sink, SinkContext, SinkMatch};

use super::error::FileError;
use super::root::RootConfig;
use super::walk::Patience;
use crate::pattern;

/// How many bytes of one line are shown.
const MAX_LINE: usize = 400;
/// How long a line may be at all.
const MAX_BUFFER: usize = 8 * 1024 * 1024;
/// How large a compiled expression may be.
const MAX_EXPRESSION: usize = 4 * 1024 * 1024;
/// How much of a file is read at once; a smaller one is searched where it was read to.
const BUFFER: usize = 64 * 1024;

/// A line that is shown.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct MatchedLine {
    pub(crate) text: String,
    pub(crate) is_match: bool,
}

/// How the search of one file ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    Done,
    /// It could not be read, or has a line that is too long.
    Unread,
    /// The time was over.
    Late,
    /// It is a secret file and was not searched.
    Secret,
}

/// What one file, or several, may show: one match more than is wanted, to know that there are more.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Room {
    pub(crate) matches: usize,
    pub(crate) bytes: usize,
}

impl Room {
    /// Takes a line. The one that does not fit is taken too, so that whoever looks sees that something is left out.
    pub(crate) fn take(&mut self, line: &MatchedLine) -> bool {
        let fits = line.text.len() <= self.bytes && (!line.is_match || self.matches > 0);
        self.bytes = self.bytes.saturating_sub(line.text.len());
        self.matches = self.matches.saturating_sub(usize::from(line.is_match));
        fits
    }
}

/// Compiles a regular expression.
pub(crate) fn expression(text: &str) -> Result<RegexMatcher, FileError> {
    pattern::check_length(text).map_err(FileError::Argument)?;
    let mut builder = RegexMatcherBuilder::new();
    builder.line_terminator(Some(b'\n')).size_limit(MAX_EXPRESSION).dfa_size_limit(MAX_EXPRESSION);
    let problem = |error| FileError::Argument(format!("not a regular expression: {error}"));
    builder.build(text).map_err(problem)
}

/// Searches files, one after the other.
pub(crate) struct FileSearch<'a> {
    matcher: RegexMatcher,
    searcher: Searcher,
    buffer: Vec<u8>,
    patience: &'a Patience,
    root_config: &'a RootConfig,
}

impl<'a> FileSearch<'a> {
    pub(crate) fn new(
        matcher: RegexMatcher,
        context: usize,
        patience: &'a Patience,
        root_config: &'a RootConfig,
    ) -> Self {
        let searcher = SearcherBuilder::new()
            .before_context(context)
            .after_context(context)
            .binary_detection(BinaryDetection::quit(0))
            .heap_limit(Some(MAX_BUFFER))
            .build();
        Self { matcher, searcher, buffer: vec![0; BUFFER], patience, root_config }
    }

    /// Returns the lines of a file as far as there is room. A file that turns out not to be text has none, nor has a
    /// secret one.
    pub(crate) fn file(&mut self, path: &Path, file: File, size: u64, room: Room) -> (Vec<MatchedLine>, End) {
        let mut reader = Timed { inner: file, patience: self.patience };
        let mut lines = LineCollector::new(&self.matcher, room);
        let count = match reader.read(&mut self.buffer) {
            Ok(count) => count,
            Err(error) => return lines.ended(Err(error)),
        };
        let (start, is_all) = (&self.buffer[..count], count as u64 == size && count < BUFFER);
        if self.root_config.judge_secret(path, start).is_some() {
            return (Vec::new(), End::Secret);
        }
        let result = match is_all {
            true => self.searcher.search_slice(&self.matcher, start, &mut lines),
            false => self.searcher.search_reader(&self.matcher, start.chain(reader), &mut lines),
        };
        lines.ended(result)
    }

    /// Returns the lines of a content as far as there is room.
    pub(crate) fn slice(&mut self, content: &[u8], room: Room) -> (Vec<MatchedLine>, End) {
        let mut lines = LineCollector::new(&self.matcher, room);
        let result = self.searcher.search_slice(&self.matcher, content, &mut lines);
        lines.ended(result)
    }
}

/// Collects the lines of one file.
struct LineCollector<'a> {
    matcher: &'a RegexMatcher,
    found: Vec<MatchedLine>,
    room: Room,
    is_binary: bool,
}

impl<'a> LineCollector<'a> {
    fn new(matcher: &'a RegexMatcher, room: Room) -> Self {
        Self { matcher, found: Vec::new(), room, is_binary: false }
    }

    /// Returns what was found, and how the search ended.
    fn ended(self, result: io::Result<()>) -> (Vec<MatchedLine>, End) {
        let end = match result {
            Ok(()) => End::Done,
            Err(error) if error.kind() == io::ErrorKind::TimedOut => End::Late,
            Err(_) => End::Unread,
        };
        (if self.is_binary { Vec::new() } else { self.found }, end)
    }

    fn push(&mut self, text: String, is_match: bool) -> bool {
        let line = MatchedLine { text, is_match };
        let fits = self.room.take(&line);
        self.found.push(line);
        fits
    }
}

impl Sink for &mut LineCollector<'_> {
    type Error = io::Error;

    fn matched(&mut self, _searcher: &Searcher, found: &SinkMatch<'_>) -> Result<bool, io::Error> {
        let at = self.matcher.find(found.bytes()).ok().flatten().map_or(0, |found| found.start());
        let text = format!("{}: {}", found.line_number().unwrap_or(0), clip(found.bytes(), at));
        Ok(self.push(text, true))
    }

    fn context(&mut self, _searcher: &Searcher, around: &SinkContext<'_>) -> Result<bool, io::Error> {
        let text = format!("{}- {}", around.line_number().unwrap_or(0), clip(around.bytes(), 0));
        Ok(self.push(text, false))
    }

    fn context_break(&mut self, _searcher: &Searcher) -> Result<bool, io::Error> {
        Ok(self.push("--".to_owned(), false))
    }

    fn binary_data(&mut self, _searcher: &Searcher, _offset: u64) -> Result<bool, io::Error> {
        self.is_binary = true;
        Ok(false)
    }
}

/// Shows a line, or the part of a long one around a place in it.
fn clip(line: &[u8], around: usize) -> String {
    let text = line.strip_suffix(b"\n").unwrap_or(line);
    let text = text.strip_suffix(b"\r").unwrap_or(text);
    if text.len() <= MAX_LINE {
        return String::from_utf8_lossy(text).into_owned();
    }
    let start = around.saturating_sub(MAX_LINE / 4).min(text.len() - MAX_LINE);
    let part = String::from_utf8_lossy(&text[start..start + MAX_LINE]);
    let part = part.trim_matches(char::REPLACEMENT_CHARACTER);
    format!("[from byte {start} of {}] {part}", text.len())
}

/// A reader that fails when the time is over.
struct Timed<'a, R> {
    inner: R,
    patience: &'a Patience,
}

impl<R: Read> Read for Timed<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.patience.is_over() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        self.inner.read(buffer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_line_is_shown_around_its_match() {
        let line = format!("{}needle{}\n", "x".repeat(10_000), "y".repeat(10_000));
        let shown = clip(line.as_bytes(), 10_000);
        assert!(shown.contains("needle") && shown.len() < MAX_LINE + 50, "{shown}");
        assert!(shown.starts_with("[from byte 9900 of 20006] "), "{shown}");
    }

    #[test]
    fn a_file_is_read_no_further_when_the_time_is_over() {
        let token = tokio_util::sync::CancellationToken::new();
        let patience = Patience::new(llm_do_core::Cancellation::new(token.clone()));
        let mut reader = Timed { inner: io::repeat(b'x'), patience: &patience };
        assert_eq!(reader.read(&mut [0; 8]).unwrap(), 8);
        token.cancel();
        assert_eq!(reader.read(&mut [0; 8]).unwrap_err().kind(), io::ErrorKind::TimedOut);
    }

    #[test]
    fn a_short_line_is_shown_without_its_end() {
        assert_eq!(clip(b"abc\r\n", 0), "abc");
    }
}
