//! `search_files`: the lines below a directory that match a regular expression, found by ripgrep's own crates.

use std::io::{self, Read};
use std::ops::ControlFlow;
use std::path::Path;

use globset::GlobMatcher;
use grep_matcher::Matcher;
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder, Sink, SinkContext, SinkMatch};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::error::FileError;
use super::list::{compile, here};
use super::place::{Kind, LastLink, Place, open_file};
use super::root::Root;
use super::walk::{LeftOut, Patience, walk};

/// What the model reads about the tool.
pub(crate) const DESCRIPTION: &str = "Searches text files for lines that match a regular expression (Rust syntax; \
    `(?i)` at its start ignores case). Returns the lines by file, as `12: text`; lines around them as `13- text`. \
    Files that are not text, and what `.gitignore` leaves out, are left out.";

/// How many bytes of one line are shown.
const MAX_LINE: usize = 400;
/// How many bytes are shown in all.
const MAX_SHOWN: usize = 200 * 1024;
/// How long a line may be at all.
const MAX_BUFFER: usize = 8 * 1024 * 1024;
/// How many lines around a match are shown.
const MAX_CONTEXT: usize = 20;
/// How large a compiled expression may be.
const MAX_EXPRESSION: usize = 4 * 1024 * 1024;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Arguments {
    /// The regular expression.
    pattern: String,
    /// The directory or file to look in, relative to the root.
    #[serde(default = "here")]
    path: String,
    /// Looks only in files that match this glob; without a slash, by their name alone.
    #[serde(default)]
    glob: Option<String>,
    /// How many matching lines to return at most.
    #[serde(default = "default_limit")]
    limit: usize,
    /// How many lines to show before and after each match.
    #[serde(default)]
    context: usize,
}

fn default_limit() -> usize {
    100
}

/// What was found.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Findings {
    matches: usize,
    files: Vec<FileFindings>,
    truncated: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<String>,
}

/// The lines of one file.
#[derive(Debug, Serialize)]
struct FileFindings {
    path: String,
    lines: Vec<String>,
}

/// Searches what is below a directory, or one file.
pub(crate) fn run(root: &Root, arguments: &Arguments, patience: &Patience) -> Result<Findings, FileError> {
    let glob = arguments.glob.as_deref().map(NameGlob::new).transpose()?;
    let place = root.find(&arguments.path, LastLink::Follow)?;
    let mut search = Search::new(root, arguments, patience)?;
    if place.kind() == Kind::File {
        root.check_suffix(&place)?;
        search.one_file(&place)?;
        return Ok(search.finish(LeftOut::default()));
    }
    let start = place.path();
    let left_out = walk(&place, usize::MAX, patience, &mut |entry| {
        let below = entry.path.strip_prefix(&start).unwrap_or(entry.path);
        let wanted = entry.kind == Kind::File
            && root.ground.settings.allows(&entry.name.to_string_lossy())
            && glob.as_ref().is_none_or(|glob| glob.matches(below));
        if wanted {
            match open_file(entry.directory, entry.name, "") {
                Ok((file, _)) => search.file(&entry.path.to_string_lossy(), file),
                Err(_) => search.unread += 1,
            }
        }
        if search.is_full { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    })?;
    Ok(search.finish(left_out))
}

/// A glob that is matched with the name alone where it has no slash.
struct NameGlob {
    matcher: GlobMatcher,
    by_name: bool,
}

impl NameGlob {
    fn new(glob: &str) -> Result<Self, FileError> {
        Ok(Self { matcher: compile(glob)?, by_name: !glob.contains('/') })
    }

    fn matches(&self, path: &Path) -> bool {
        if self.by_name {
            path.file_name().is_some_and(|name| self.matcher.is_match(name))
        } else {
            self.matcher.is_match(path)
        }
    }
}

/// A search with what it has found so far.
struct Search<'a> {
    matcher: RegexMatcher,
    searcher: Searcher,
    patience: &'a Patience,
    limit: usize,
    bytes_left: usize,
    findings: Findings,
    is_full: bool,
    is_late: bool,
    /// Files that could not be read, or have a line that is too long.
    unread: u64,
}

impl<'a> Search<'a> {
    fn new(root: &Root, arguments: &Arguments, patience: &'a Patience) -> Result<Self, FileError> {
        let matcher = RegexMatcherBuilder::new()
            .line_terminator(Some(b'\n'))
            .size_limit(MAX_EXPRESSION)
            .dfa_size_limit(MAX_EXPRESSION)
            .build(&arguments.pattern)
            .map_err(|error| FileError::Argument(format!("not a regular expression: {error}")))?;
        let context = arguments.context.min(MAX_CONTEXT);
        let searcher = SearcherBuilder::new()
            .before_context(context)
            .after_context(context)
            .binary_detection(BinaryDetection::quit(0))
            .heap_limit(Some(MAX_BUFFER))
            .build();
        let limit = arguments.limit.min(root.ground.settings.max_list);
        Ok(Self {
            matcher,
            searcher,
            patience,
            limit,
            bytes_left: MAX_SHOWN,
            findings: Findings::default(),
            is_full: false,
            is_late: false,
            unread: 0,
        })
    }

    fn one_file(&mut self, place: &Place) -> Result<(), FileError> {
        let (file, _) = place.open()?;
        self.file(&place.shown(), file);
        Ok(())
    }

    /// Searches one file. One that cannot be read, or turns out not to be text, gives nothing more.
    fn file(&mut self, path: &str, file: impl Read) {
        let mut searcher = self.searcher.clone();
        let reader = Timed { inner: file, patience: self.patience };
        let matcher = self.matcher.clone();
        let mut lines =
            Lines { search: self, matcher: &matcher, found: Vec::new(), matches: 0, is_binary: false };
        let result = searcher.search_reader(&matcher, reader, &mut lines);
        let Lines { found, matches, is_binary, .. } = lines;
        match result {
            Err(error) if error.kind() == io::ErrorKind::TimedOut => self.is_late = true,
            Err(_) => self.unread += 1,
            Ok(()) => {}
        }
        if matches > 0 && !is_binary {
            self.findings.matches += matches;
            self.findings.files.push(FileFindings { path: path.to_owned(), lines: found });
        }
    }

    /// Says what is missing, the gravest first.
    fn finish(mut self, left_out: LeftOut) -> Findings {
        let late = LeftOut { late: left_out.late || self.is_late, ..left_out };
        self.findings.note = match self.unread {
            _ if self.is_full => {
                Some("not all matches are shown; narrow `pattern`, `path` or `glob`".to_owned())
            }
            0 => late.note(),
            count => late.note().or_else(|| Some(format!("{count} files could not be read to their end"))),
        };
        self.findings.truncated = self.is_full || late.late;
        self.findings
    }

    /// Takes a line into the findings as long as there is room for it.
    fn take(&mut self, line: &str) -> bool {
        match self.bytes_left.checked_sub(line.len()) {
            Some(left) => {
                self.bytes_left = left;
                true
            }
            None => {
                self.is_full = true;
                false
            }
        }
    }
}

/// Collects the lines of one file.
struct Lines<'s, 'a> {
    search: &'s mut Search<'a>,
    matcher: &'s RegexMatcher,
    found: Vec<String>,
    matches: usize,
    is_binary: bool,
}

impl Lines<'_, '_> {
    fn push(&mut self, line: String) -> bool {
        let fits = self.search.take(&line);
        if fits {
            self.found.push(line);
        }
        fits
    }
}

impl Sink for &mut Lines<'_, '_> {
    type Error = io::Error;

    fn matched(&mut self, _searcher: &Searcher, found: &SinkMatch<'_>) -> Result<bool, io::Error> {
        if self.search.findings.matches + self.matches == self.search.limit {
            self.search.is_full = true;
            return Ok(false);
        }
        let at = self.matcher.find(found.bytes()).ok().flatten().map_or(0, |place| place.start());
        let line = format!("{}: {}", found.line_number().unwrap_or(0), clip(found.bytes(), at));
        let fits = self.push(line);
        self.matches += usize::from(fits);
        Ok(fits)
    }

    fn context(&mut self, _searcher: &Searcher, around: &SinkContext<'_>) -> Result<bool, io::Error> {
        Ok(self.push(format!("{}- {}", around.line_number().unwrap_or(0), clip(around.bytes(), 0))))
    }

    fn context_break(&mut self, _searcher: &Searcher) -> Result<bool, io::Error> {
        Ok(self.push("--".to_owned()))
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

    #[test]
    fn a_glob_without_a_slash_is_matched_with_the_name() {
        let by_name = NameGlob::new("*.rs").unwrap();
        assert!(by_name.matches(Path::new("src/deep/a.rs")));
        let by_path = NameGlob::new("src/*.rs").unwrap();
        assert!(by_path.matches(Path::new("src/a.rs")) && !by_path.matches(Path::new("src/deep/a.rs")));
    }
}
