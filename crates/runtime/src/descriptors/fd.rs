//! One descriptor: what is known of it, and parts of its text.

use std::fmt;
use std::sync::Arc;

use llm_do_core::{Failure, FailureKind};
use serde::{Deserialize, Serialize};

use super::content::StoredContent;
use super::id::FdId;
use super::pages::Position;

/// Where the text of a descriptor came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum FdSource {
    /// A call answered with it.
    ToolResult,
    /// A user wrote it.
    UserInput,
    /// A model wrote it and gave it a name.
    Reference,
    /// It is a part of another descriptor.
    Extraction,
    /// A parent passed it.
    Passed,
}

impl FdSource {
    /// Returns what a word stands for; a word of a newer version is taken as a result.
    pub(crate) fn from_word(word: &str) -> Self {
        let all = [Self::ToolResult, Self::UserInput, Self::Reference, Self::Extraction, Self::Passed];
        all.into_iter().find(|source| source.as_str() == word).unwrap_or(Self::ToolResult)
    }

    /// Returns the word that a model reads.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::ToolResult => "tool_result",
            Self::UserInput => "user_input",
            Self::Reference => "reference",
            Self::Extraction => "extraction",
            Self::Passed => "passed",
        }
    }
}

/// What is known of a descriptor without reading its text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct FdInfo {
    /// Its name.
    #[serde(rename = "fd")]
    pub id: FdId,
    /// Where its text came from.
    pub source: FdSource,
    /// How many pages it has.
    pub pages: u64,
    /// How many lines its text has.
    pub lines: u64,
    /// How many characters its text has.
    pub chars: u64,
}

/// How a part of a text is counted. All counting is from 1.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Selection {
    /// By pages.
    #[default]
    Page,
    /// By lines.
    Line,
    /// By characters.
    Char,
    /// The whole text, whatever start and count are.
    All,
}

impl Selection {
    /// Returns the word that a model reads and writes.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Page => "page",
            Self::Line => "line",
            Self::Char => "char",
            Self::All => "all",
        }
    }
}

impl fmt::Display for Selection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A descriptor of one table: a text, and how it is divided into pages.
#[derive(Debug, Clone)]
pub struct Fd {
    /// What is known of it.
    pub info: FdInfo,
    /// Its text.
    pub content: StoredContent,
    /// How many characters a page has at most.
    pub page_size: u64,
    /// The name of the tool that reads it.
    pub(super) reader: Arc<str>,
}

/// A part of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Excerpt {
    /// How it was counted.
    pub selection: Selection,
    /// The number of the first page, line or character.
    pub start: u64,
    /// How many there are of them.
    pub count: u64,
    /// Where it begins.
    pub from: Position,
    /// Where it ends.
    pub to: Position,
    /// The number of the last line that it touches.
    pub last_line: u64,
    /// Whether it begins within a line.
    pub continued: bool,
    /// Whether it ends within a line.
    pub truncated: bool,
    /// The text itself.
    pub text: String,
}

impl Excerpt {
    /// Returns how many characters it has.
    pub fn characters(&self) -> u64 {
        self.to.character - self.from.character
    }
}

impl Fd {
    /// Reads a part, at most as much as there is. A start that does not exist is a failure that says which ones do.
    pub fn read(&self, selection: Selection, start: u64, count: u64) -> Result<Excerpt, Failure> {
        let found = self.find(selection, start, count)?;
        self.excerpt(selection, found)
    }

    /// Finds out how many characters a part has, without reading it.
    pub fn measure(&self, selection: Selection, start: u64, count: u64) -> Result<u64, Failure> {
        let found = self.find(selection, start, count)?;
        Ok(found.to.character - found.from.character)
    }

    fn find(&self, selection: Selection, start: u64, count: u64) -> Result<Range, Failure> {
        let content = &self.content;
        let total = match selection {
            Selection::Page => self.info.pages,
            Selection::Line => self.info.lines,
            Selection::Char => self.info.chars,
            Selection::All => {
                let (from, to) = (Position::START, content.end());
                return Ok(Range { start: 1, count: self.info.chars, from, to });
            }
        };
        // An empty text has nothing to count, and may be read all the same.
        self.check(selection, start, count, total.max(1))?;
        let count = count.min((total + 1).saturating_sub(start));
        let position = |number: u64| match selection {
            Selection::Page => content.page_start(number, self.page_size),
            Selection::Line => content.line_start(number),
            Selection::Char | Selection::All => content.character_start(number - 1),
        };
        Ok(Range { start, count, from: position(start)?, to: position(start + count)? })
    }

    fn check(&self, selection: Selection, start: u64, count: u64, last: u64) -> Result<(), Failure> {
        let problem = if count == 0 {
            "`count` is 0, and at least 1 is needed".to_owned()
        } else if !(1..=last).contains(&start) {
            format!("there is no {} {start} in `{}`", unit_name(selection), self.info.id)
        } else {
            return Ok(());
        };
        let hint = format!("`start` is from 1 to {last} in mode `{selection}`");
        Err(Failure::new(FailureKind::Arguments, problem).with_hint(hint))
    }

    fn excerpt(&self, selection: Selection, found: Range) -> Result<Excerpt, Failure> {
        let Range { start, count, from, to } = found;
        let content = &self.content;
        let continued = from.byte != content.line_start(from.line)?.byte;
        let text = content.text(from.byte, to.byte)?.into_owned();
        let ends_line = text.ends_with('\n');
        let truncated = !text.is_empty() && !ends_line && to != content.end();
        let last_line = to.line - u64::from(ends_line);
        Ok(Excerpt { selection, start, count, from, to, last_line, continued, truncated, text })
    }
}

/// A part that was found and not yet read.
struct Range {
    start: u64,
    count: u64,
    from: Position,
    to: Position,
}

fn unit_name(selection: Selection) -> &'static str {
    match selection {
        Selection::Char => "character",
        other => other.as_str(),
    }
}
