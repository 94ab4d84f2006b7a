//! Sources: the text of a file, and where in it a value comes from.

use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

/// A file of a project with its text, and with what the command line set in it.
#[derive(Debug, Clone)]
pub(crate) struct SourceFile {
    /// The path as people would write it.
    pub(crate) path: PathBuf,
    pub(crate) text: Arc<str>,
    /// The `--set` arguments, which [`Span::Override`] counts.
    overrides: Vec<String>,
}

impl SourceFile {
    /// Makes a source of a path and its text.
    pub(crate) fn new(path: impl Into<PathBuf>, text: impl Into<Arc<str>>) -> Self {
        Self { path: path.into(), text: text.into(), overrides: Vec::new() }
    }

    /// Adds a `--set` argument, and returns the span of what it sets.
    pub(crate) fn add_override(&mut self, argument: &str) -> Span {
        self.overrides.push(argument.to_owned());
        Span::Override(self.overrides.len() - 1)
    }

    /// Returns a `--set` argument by its number.
    pub(crate) fn override_text(&self, index: usize) -> &str {
        self.overrides.get(index).map(String::as_str).unwrap_or_default()
    }
}

/// Where a value of a document comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Span {
    /// A range of bytes of the file.
    Bytes(Range<usize>),
    /// A `--set` argument of the command line, by its number in the [`SourceFile`].
    Override(usize),
}

impl Span {
    /// The beginning of the file, for what is not written in it.
    pub(crate) const START: Self = Self::Bytes(0..0);

    /// Returns whether the command line set the value.
    pub(crate) fn is_override(&self) -> bool {
        matches!(self, Self::Override(_))
    }

    /// Returns the range of bytes, if the file has the value.
    pub(crate) fn bytes(&self) -> Option<&Range<usize>> {
        match self {
            Self::Bytes(range) => Some(range),
            Self::Override(_) => None,
        }
    }
}

impl From<Range<usize>> for Span {
    fn from(range: Range<usize>) -> Self {
        Self::Bytes(range)
    }
}
