//! `grep_fd`: the lines of a text that match a regular expression.
//!
//! The text is searched window by window, so that neither its length nor that of its lines matters. A line that is too
//! long to be shown is shown around each match in it, with the characters at which to read on.

use std::ops::Range;
use std::time::{Duration, Instant};

use grep_matcher::Matcher;
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use llm_do_core::{Cancellation, Failure, FailureKind, Output};
use llm_do_runtime::{Descriptors, StoredContent};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Situation, arguments};
use crate::pattern::check_length;

/// What the model reads about the tool.
pub(super) const DESCRIPTION: &str = "Searches the text of a file descriptor for lines that match a regular expression \
    (Rust syntax). Returns them with their numbers from 1, as `12: text`, and lines around them as `13- text`. Of a line \
    that is too long to be shown, each match is shown by itself with the characters around it; read_fd reads on there \
    in the modes `line` and `char`.";

/// How many matches are returned at most.
const MAX_MATCHES: usize = 1000;
/// How many lines around a match are shown at most.
const MAX_CONTEXT: u64 = 20;
/// What the answer holds besides the lines.
const AROUND_LINES: u64 = 300;
/// How many bytes of one line are shown.
const LINE: usize = 400;
/// How many of them lie before the match in a line that is cut.
const BEFORE: usize = 100;
/// How much is searched at once.
const WINDOW: u64 = 1024 * 1024;
/// What a window shows again of the one before it, so that the beginning of a line is seen.
const OVERLAP: u64 = 1024;
/// How long a match may be to be found wherever it lies. The matches of a window begin before this much of its end.
const MAX_MATCH_LEN: u64 = 64 * 1024;
/// How long one search may take.
const TIME: Duration = Duration::from_secs(10);
/// How large a compiled expression may be.
const MAX_PATTERN_BYTES: usize = 4 * 1024 * 1024;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    /// The file descriptor, such as `fd:3.1`.
    fd: String,
    /// The regular expression.
    pattern: String,
    /// Whether upper and lower case are the same.
    #[serde(default)]
    ignore_case: bool,
    /// How many lines to show before and after each match, at most 20.
    #[serde(default)]
    context: u64,
    /// How many matches to return, at most 1000. With 0 they are only counted.
    #[serde(default = "default_matches")]
    max_matches: usize,
}

fn default_matches() -> usize {
    50
}

/// Searches the text.
pub(super) fn run(table: &Descriptors, input: &Value, situation: &Situation) -> Result<Output, Failure> {
    let arguments: Arguments = arguments(input)?;
    let fd = table.get(&arguments.fd)?;
    let matcher = arguments.expression()?;
    let room = table.settings().limit.saturating_sub(AROUND_LINES);
    let findings = Findings::new(&fd.content, &arguments, room as usize);
    let search =
        TextSearch { content: &fd.content, matcher, patience: Patience::new(&situation.cancellation) };
    let (findings, is_late) = search.run(findings)?;
    Ok(findings.answer(&arguments.fd, is_late))
}

impl Arguments {
    fn expression(&self) -> Result<RegexMatcher, Failure> {
        check_length(&self.pattern).map_err(|message| Failure::new(FailureKind::Arguments, message))?;
        let mut builder = RegexMatcherBuilder::new();
        builder.case_insensitive(self.ignore_case).multi_line(true).crlf(true);
        builder.size_limit(MAX_PATTERN_BYTES).dfa_size_limit(MAX_PATTERN_BYTES);
        let problem = |error| {
            Failure::new(FailureKind::Arguments, format!("`pattern` is not a regular expression: {error}"))
        };
        builder.build(&self.pattern).map_err(problem)
    }
}

/// How long to go on.
struct Patience<'a> {
    until: Instant,
    cancellation: &'a Cancellation,
}

impl<'a> Patience<'a> {
    fn new(cancellation: &'a Cancellation) -> Self {
        Self { until: Instant::now() + TIME, cancellation }
    }

    fn is_over(&self) -> bool {
        self.cancellation.is_cancelled() || Instant::now() >= self.until
    }
}

/// One search of one text.
struct TextSearch<'a> {
    content: &'a StoredContent,
    matcher: RegexMatcher,
    patience: Patience<'a>,
}

impl<'a> TextSearch<'a> {
    /// Searches to the end, or until the time is over, which is said.
    fn run(&self, mut findings: Findings<'a>) -> Result<(Findings<'a>, bool), Failure> {
        let (end, mut next) = (self.content.bytes(), 0);
        loop {
            let window = Window::open(self.content, next)?;
            next = self.look_through(&window, next, &mut findings)?;
            if window.is_last || next >= end {
                findings.finish()?;
                return Ok((findings, false));
            }
            if self.patience.is_over() {
                findings.finish()?;
                return Ok((findings, true));
            }
        }
    }

    /// Finds the matches that begin in a window from a place on, and returns where the next window goes on.
    fn look_through(&self, window: &Window, from: u64, findings: &mut Findings<'a>) -> Result<u64, Failure> {
        let mut at = (from - window.start) as usize;
        while let Some(start) = self.next_match(window, at)? {
            let shown = window.around(start);
            findings.add(window.start, start, &window.text[shown.part.clone()], &shown)?;
            at = shown.goes_on;
            if at > window.text.len() {
                break;
            }
        }
        Ok((window.start + at as u64).max(window.accepts))
    }

    fn next_match(&self, window: &Window, at: usize) -> Result<Option<usize>, Failure> {
        let bytes = window.text.as_bytes();
        let found = self.matcher.find_at(bytes, at);
        let found = found.map_err(|error| Failure::new(FailureKind::Tool, error.to_string()))?;
        // An expression about bytes may match within a character.
        let start = found.map(|found| window.text.floor_char_boundary(found.start()));
        let start = start.filter(|start| window.accepts(*start));
        // No line begins after the last line end.
        Ok(start.filter(|start| *start < bytes.len() || !bytes.ends_with(b"\n")))
    }
}

/// A part of the text that is searched at once.
struct Window {
    text: String,
    /// Where it begins in the text.
    start: u64,
    /// Where the matches that belong to it end, in the text.
    accepts: u64,
    is_last: bool,
}

impl Window {
    fn open(content: &StoredContent, next: u64) -> Result<Self, Failure> {
        let start = content.position_at(next.saturating_sub(OVERLAP))?.byte;
        let end = content.position_at(start + WINDOW)?.byte;
        let is_last = end == content.bytes();
        let accepts = if is_last { end } else { content.position_at(end - MAX_MATCH_LEN)?.byte };
        Ok(Self { text: content.text(start, end)?.into_owned(), start, accepts, is_last })
    }

    fn accepts(&self, start: usize) -> bool {
        self.is_last || self.start + (start as u64) < self.accepts
    }

    /// Decides what is shown of a match: its line, or what lies around it in a long one.
    fn around(&self, at: usize) -> MatchExcerpt {
        let text = &self.text;
        // Nothing further away than a line may be long is looked at, however long the line is.
        let low = text.floor_char_boundary(at.saturating_sub(LINE + 1));
        let high = text.ceil_char_boundary(at + LINE + 1);
        let line_start = text[low..at].rfind('\n').map(|newline| low + newline + 1);
        let line_start = line_start.or((self.start == 0 && low == 0).then_some(0));
        let line_end = text[at..high].find('\n').map(|newline| at + newline);
        let line_end = line_end.or((self.is_last && high == text.len()).then_some(high));
        match (line_start, line_end) {
            (Some(start), Some(end)) if end - start <= LINE => {
                MatchExcerpt { part: start..end, is_cut: false, goes_on: end + 1 }
            }
            _ => self.cut(at, line_start.unwrap_or(0), line_end.unwrap_or(text.len())),
        }
    }

    /// Cuts what lies around a match out of its line.
    fn cut(&self, at: usize, line_start: usize, line_end: usize) -> MatchExcerpt {
        let text = &self.text;
        let start = text.floor_char_boundary(at.saturating_sub(BEFORE)).max(line_start);
        let end = text.ceil_char_boundary(at + LINE - BEFORE).min(line_end);
        // An empty match at the end of a line shows nothing after it, and the search goes on all the same.
        let next = at + text[at..].chars().next().map_or(1, char::len_utf8);
        MatchExcerpt { part: start..end, is_cut: true, goes_on: end.max(next) }
    }
}

/// What is shown of a match, by the bytes of its window.
struct MatchExcerpt {
    part: Range<usize>,
    is_cut: bool,
    /// Where the next match may begin.
    goes_on: usize,
}

/// What was found so far.
struct Findings<'a> {
    content: &'a StoredContent,
    context: u64,
    most: usize,
    matches: u64,
    shown: u64,
    lines: Vec<String>,
    size: usize,
    /// How many characters may be shown: what is longer would be a result in pages.
    room: usize,
    /// Whether lines around a match were left out for want of room.
    is_short: bool,
    /// The last line that is at least partly in the list.
    last: Option<u64>,
    /// The last line with a match.
    last_match: Option<u64>,
}

impl<'a> Findings<'a> {
    fn new(content: &'a StoredContent, arguments: &Arguments, room: usize) -> Self {
        Self {
            content,
            context: arguments.context.min(MAX_CONTEXT),
            most: arguments.max_matches.min(MAX_MATCHES),
            matches: 0,
            shown: 0,
            lines: Vec::new(),
            size: 0,
            room,
            is_short: false,
            last: None,
            last_match: None,
        }
    }

    /// Returns whether another match may be shown; one always is.
    fn has_room(&self) -> bool {
        self.shown < self.most as u64 && (self.shown == 0 || self.size < self.room)
    }

    /// Counts a match, and shows it where there is room.
    fn add(&mut self, window: u64, start: usize, text: &str, shown: &MatchExcerpt) -> Result<(), Failure> {
        self.matches += 1;
        if !self.has_room() {
            return Ok(());
        }
        let line = self.content.position_at(window + start as u64)?.line;
        let found = match shown.is_cut {
            false => format!("{line}: {}", without_return(text)),
            true => {
                let first = self.content.position_at(window + shown.part.start as u64)?.character + 1;
                let last = first + text.chars().count().max(1) as u64 - 1;
                format!("{line}: [cut: characters {first}-{last} of the text] {text}")
            }
        };
        let size = shown_size(&found);
        // What lies around matches must leave room for them.
        self.size += size;
        self.show_between(line)?;
        self.size -= size;
        if self.shown > 0 && self.size + size > self.room {
            self.size = self.room;
            return Ok(());
        }
        self.push(found);
        self.shown += 1;
        (self.last, self.last_match) = (Some(line), Some(line));
        Ok(())
    }

    /// Shows what lies after the last match and before the next one.
    fn show_between(&mut self, line: u64) -> Result<(), Failure> {
        self.show_after(line)?;
        let first = line.saturating_sub(self.context).max(1);
        let first = self.last.map_or(first, |last| first.max(last + 1));
        if self.context > 0 && self.last.is_some_and(|last| last + 1 < first) {
            self.push("--".to_owned());
        }
        for number in first..line {
            self.show_line(number)?;
        }
        Ok(())
    }

    /// Shows the lines after the last match, up to another line.
    fn show_after(&mut self, line: u64) -> Result<(), Failure> {
        let Some(last) = self.last_match else { return Ok(()) };
        for number in last + 1..line.min(last + self.context + 1) {
            self.show_line(number)?;
        }
        Ok(())
    }

    fn show_line(&mut self, number: u64) -> Result<(), Failure> {
        let start = self.content.line_start(number)?.byte;
        let end = self.content.line_start(number + 1)?.byte;
        // With room for the line end, which is not shown.
        let end = self.content.position_at(end.min(start + LINE as u64 + 2))?.byte;
        let text = self.content.text(start, end)?;
        let text = without_return(text.strip_suffix('\n').unwrap_or(&text));
        let line = match text.len() <= LINE {
            true => format!("{number}- {text}"),
            false => format!("{number}- {} [cut]", &text[..text.floor_char_boundary(LINE)]),
        };
        if self.size + shown_size(&line) > self.room {
            self.is_short = true;
            return Ok(());
        }
        self.push(line);
        self.last = Some(number);
        Ok(())
    }

    fn push(&mut self, line: String) {
        self.size += shown_size(&line);
        self.lines.push(line);
    }

    /// Shows what lies after the last match.
    fn finish(&mut self) -> Result<(), Failure> {
        self.show_after(self.content.lines() + 1)
    }

    fn answer(self, fd: &str, is_late: bool) -> Output {
        let mut answer = json!({"fd": fd, "matches": self.matches, "lines": self.lines});
        let more = match self.matches - self.shown {
            0 => None,
            more if self.most == 0 => Some(format!("{more} matches were counted")),
            more => Some(format!(
                "{more} more matches are not shown: look for something rarer, or allow more with `max_matches`"
            )),
        };
        let late = is_late.then(|| "the time was over before the end of the text".to_owned());
        let short = self.is_short.then(|| "some lines around them are left out for want of room".to_owned());
        let notes: Vec<String> = more.into_iter().chain(short).chain(late).collect();
        if !notes.is_empty() {
            answer["note"] = notes.join("; ").into();
        }
        Output::json(answer)
    }
}

/// How many characters a line takes in the answer.
fn shown_size(line: &str) -> usize {
    serde_json::to_string(line).map_or(line.len(), |shown| shown.chars().count()) + 1
}

fn without_return(line: &str) -> &str {
    line.strip_suffix('\r').unwrap_or(line)
}
