//! Diagnostics: what is wrong with a project, where, and what to do about it.

use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};

use llm_do_core::{visible, visible_line};
use schemars::JsonSchema;
use serde::{Serialize, Serializer};

use crate::source::{SourceFile, Span};

/// How severe a diagnostic is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Severity {
    /// The project cannot be used.
    Error,
    /// The project works; something should be known.
    Notice,
}

/// One thing that a project's author should know.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Diagnostic {
    /// How bad it is.
    pub severity: Severity,
    /// What is wrong and what is expected.
    pub message: String,
    /// The file.
    #[serde(serialize_with = "readable_path")]
    #[schemars(with = "String")]
    pub file: PathBuf,
    /// The line, from 1, where there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<usize>,
    /// The column in characters, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub column: Option<usize>,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    #[serde(skip)]
    excerpt: Option<Excerpt>,
    /// Whether it is shown as one line: the file still works, and the line says everything.
    #[serde(skip)]
    is_brief: bool,
}

/// The line in question, and which part of it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Excerpt {
    line: String,
    before: usize,
    length: usize,
}

/// The longest part of a line that is shown.
const SHOWN: usize = 120;

/// The longest message or hint, in characters: a value that it names could have any length.
const MAX_LEN: usize = 2_000;

impl Diagnostic {
    /// Makes an error about a file as a whole.
    pub(crate) fn error(file: impl Into<PathBuf>, message: impl Into<String>) -> Self {
        Self {
            severity: Severity::Error,
            message: shortened(message.into()),
            file: file.into(),
            line: None,
            column: None,
            hint: None,
            excerpt: None,
            is_brief: false,
        }
    }

    /// Makes an error about a part of a file, or about what the command line set in it.
    pub(crate) fn error_at(source: &SourceFile, span: &Span, message: impl Into<String>) -> Self {
        match span {
            Span::Override(index) => Self::error(format!("--set {}", source.override_text(*index)), message),
            Span::Bytes(range) => Self::error(&source.path, message).with_excerpt(&source.text, range),
        }
    }

    /// Makes a notice about a file as a whole.
    pub(crate) fn notice(file: impl Into<PathBuf>, message: impl Into<String>) -> Self {
        Self { severity: Severity::Notice, ..Self::error(file, message) }
    }

    /// Makes a notice about a part of a file, or about what the command line set in it.
    pub(crate) fn notice_at(source: &SourceFile, span: &Span, message: impl Into<String>) -> Self {
        Self { severity: Severity::Notice, ..Self::error_at(source, span, message) }
    }

    /// A notice that a key is read and checked, and does nothing yet.
    pub(crate) fn without_effect(source: &SourceFile, span: &Span, key: &str) -> Self {
        let message = format!("`{key}` is checked, but has no effect in this version");
        Self::notice_at(source, span, message)
    }

    /// A notice that something is read as what replaces it.
    pub(crate) fn read_as(source: &SourceFile, span: &Span, old: &str, new: &str) -> Self {
        let message = format!("{old} is read as {new}");
        Self { is_brief: true, ..Self::notice_at(source, span, message) }
    }

    /// Sets how bad it is, for problems that whoever found them has judged.
    pub(crate) fn with_severity(mut self, severity: Severity) -> Self {
        self.severity = severity;
        self
    }

    /// Adds what to do about it.
    pub(crate) fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(shortened(hint.into()));
        self
    }

    fn with_excerpt(mut self, text: &str, range: &Range<usize>) -> Self {
        let start = floor(text, range.start);
        let line_start = text[..start].rfind('\n').map_or(0, |end| end + 1);
        let line = text[line_start..].lines().next().unwrap_or_default();
        let before = text[line_start..start].chars().count();
        let end = floor(text, range.end).clamp(start, line_start + line.len().max(start - line_start));
        self.line = Some(text[..line_start].matches('\n').count() + 1);
        self.column = Some(before + 1);
        let length = text[start..end].chars().count().max(1);
        self.excerpt = (!line.trim().is_empty()).then(|| Excerpt { line: shown(line), before, length });
        self
    }
}

fn floor(text: &str, at: usize) -> usize {
    (0..=at.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0)
}

fn shortened(text: String) -> String {
    match text.char_indices().nth(MAX_LEN) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

/// A path as JSON can hold it: names that are not UTF-8 lose what is not.
fn readable_path<S: Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&path.display())
}

/// One line, short and harmless: characters that a terminal would obey, or that hide, become one that shows.
fn shown(line: &str) -> String {
    let one_char = |c: char| match c {
        '\t' => ' ',
        c if visible(c.encode_utf8(&mut [0; 4])).chars().count() > 1 => '\u{fffd}',
        c => c,
    };
    line.chars().take(SHOWN).map(one_char).collect()
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let severity = match self.severity {
            Severity::Error => "error",
            Severity::Notice => "notice",
        };
        // The path of the project itself is empty if it is the working directory.
        let file = if self.file.as_os_str().is_empty() { ".".into() } else { self.file.to_string_lossy() };
        if self.is_brief {
            let line = self.line.map(|line| format!(":{line}")).unwrap_or_default();
            return write!(f, "{severity}: {}{line}: {}", visible_line(&file), visible_line(&self.message));
        }
        write!(f, "{severity}: {}\n  at {}", visible_line(&self.message), visible_line(&file))?;
        if let (Some(line), Some(column)) = (self.line, self.column) {
            write!(f, ", line {line}, column {column}")?;
            if let Some(excerpt) = &self.excerpt {
                let margin = line.to_string();
                let bar = " ".repeat(margin.len());
                let length = excerpt.length.min(SHOWN.saturating_sub(excerpt.before).max(1));
                write!(f, "\n {bar} |\n {margin} | {}\n", excerpt.line)?;
                write!(f, " {bar} | {}{}", " ".repeat(excerpt.before.min(SHOWN)), "^".repeat(length))?;
            }
        }
        match &self.hint {
            Some(hint) => write!(f, "\nhint: {}", visible_line(hint)),
            None => Ok(()),
        }
    }
}

/// Everything that was found, in the order of files and lines.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Diagnostics(pub Vec<Diagnostic>);

/// More problems than these help nobody; a hostile file could have any number of them.
const MAX_ITEMS: usize = 200;

impl Diagnostics {
    pub(crate) fn push(&mut self, diagnostic: Diagnostic) {
        // Each severity has its own room: any number of notices leaves room for an error.
        if self.count(diagnostic.severity) < MAX_ITEMS && !self.0.contains(&diagnostic) {
            self.0.push(diagnostic);
        }
    }

    /// Returns whether further errors would not be kept. Whoever goes through many things may stop then.
    pub(crate) fn is_full(&self) -> bool {
        self.count(Severity::Error) >= MAX_ITEMS
    }

    fn count(&self, severity: Severity) -> usize {
        self.0.iter().filter(|diagnostic| diagnostic.severity == severity).count()
    }

    /// Returns whether the project cannot be used.
    pub fn has_errors(&self) -> bool {
        self.0.iter().any(|diagnostic| diagnostic.severity == Severity::Error)
    }

    /// Returns the notices alone.
    pub fn notices(&self) -> impl Iterator<Item = &Diagnostic> {
        self.0.iter().filter(|diagnostic| diagnostic.severity == Severity::Notice)
    }
}

impl Diagnostics {
    /// Returns whether an earlier line has the same message.
    fn says_before(&self, index: usize) -> bool {
        let one = &self.0[index];
        one.is_brief && self.0[..index].iter().any(|other| other.is_brief && other.message == one.message)
    }

    /// Describes how many later lines have the same message.
    fn more_occurrences(&self, index: usize) -> String {
        let one = &self.0[index];
        let is_same = |other: &&Diagnostic| other.is_brief && other.message == one.message;
        match self.0[index + 1..].iter().filter(is_same).count() {
            0 => String::new(),
            _ if !one.is_brief => String::new(),
            1 => " (and in 1 more place)".to_owned(),
            count => format!(" (and in {count} more places)"),
        }
    }
}

/// As people read it: a program whose `main` returns the error prints this.
impl fmt::Debug for Diagnostics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for Diagnostics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut before: Option<&Diagnostic> = None;
        for (index, diagnostic) in self.0.iter().enumerate() {
            if self.says_before(index) {
                continue;
            }
            match before {
                Some(other) if other.is_brief && diagnostic.is_brief => f.write_str("\n")?,
                Some(_) => f.write_str("\n\n")?,
                None => {}
            }
            write!(f, "{diagnostic}{}", self.more_occurrences(index))?;
            before = Some(diagnostic);
        }
        if self.is_full() {
            write!(f, "\n\nnotice: there may be more; only the first {MAX_ITEMS} errors are shown")?;
        }
        Ok(())
    }
}

impl std::error::Error for Diagnostics {}

/// Writes a path as people would: without the `./` of the working directory.
pub(crate) fn shown_path(path: &Path) -> PathBuf {
    path.strip_prefix(".").unwrap_or(path).to_path_buf()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_diagnostic_shows_the_line_and_underlines_the_part() {
        let source = SourceFile::new("agents/main.agent", "---\nname: main\ntoolset: [x]\n---\n");
        let start = source.text.find("toolset").unwrap();
        let diagnostic = Diagnostic::error_at(&source, &(start..start + 7).into(), "unknown key `toolset`")
            .with_hint("did you mean `toolsets`?");
        let expected = "error: unknown key `toolset`\n  at agents/main.agent, line 3, column 1\n   |\n 3 | toolset: [x]\n   | ^^^^^^^\nhint: did you mean `toolsets`?";
        assert_eq!(diagnostic.to_string(), expected);
    }

    #[test]
    fn a_problem_of_the_working_directory_names_it() {
        let diagnostic = Diagnostic::error(PathBuf::new(), "no Python");
        assert_eq!(diagnostic.to_string(), "error: no Python\n  at .");
    }

    #[test]
    fn signs_that_a_terminal_obeys_are_never_shown() {
        let c = "\u{1b}[2J\u{202e}\u{61c}\nerror: \r";
        let source = SourceFile::new(format!("{c}.agent"), format!("name: {c}"));
        let diagnostic = Diagnostic::error_at(&source, &(0..4).into(), format!("unknown `{c}`")).with_hint(c);
        let shown = diagnostic.to_string();
        assert!(!shown.contains(['\u{1b}', '\u{202e}', '\u{61c}', '\r']), "{shown}");
        assert_eq!(shown.matches("\nerror").count(), 0, "{shown}");
    }

    #[test]
    fn notices_never_take_the_room_of_errors() {
        let mut out = Diagnostics::default();
        for number in 0..1_000 {
            out.push(Diagnostic::notice("x", format!("known {number}")));
        }
        assert!(!out.has_errors() && !out.is_full());
        out.push(Diagnostic::error("x", "broken"));
        assert!(out.has_errors() && out.0.len() <= 2 * MAX_ITEMS);
    }

    #[test]
    fn what_is_left_out_is_mentioned() {
        let mut out = Diagnostics::default();
        let many = |out: &mut Diagnostics, count: usize| {
            (0..count).for_each(|number| out.push(Diagnostic::error("x", format!("wrong {number}"))));
        };
        many(&mut out, MAX_ITEMS - 1);
        assert!(!out.to_string().contains("there may be more"));
        many(&mut out, 2 * MAX_ITEMS);
        assert!(out.to_string().ends_with("only the first 200 errors are shown"), "{out}");
    }

    #[test]
    fn a_long_value_is_cut_in_messages_and_hints() {
        let diagnostic = Diagnostic::error("x", "ä".repeat(1_000_000)).with_hint("ö".repeat(1_000_000));
        assert!(diagnostic.to_string().len() < 10_000);
    }

    #[cfg(unix)]
    #[test]
    fn a_file_whose_name_is_no_utf8_can_be_written_as_json() {
        use std::os::unix::ffi::OsStringExt;
        let name = std::ffi::OsString::from_vec(b"\xff.agent".to_vec());
        let json = serde_json::to_value(Diagnostic::error(name, "broken")).unwrap();
        assert_eq!(json["file"], "\u{fffd}.agent");
    }

    #[test]
    fn a_place_beyond_the_text_or_inside_a_sign_does_no_harm() {
        let source = SourceFile::new("x", "ä\u{1b}b");
        for span in [0..1, 1..1, 1..99, 99..100].map(Span::Bytes) {
            assert!(!Diagnostic::error_at(&source, &span, "m").to_string().contains('\u{1b}'));
        }
    }
}
