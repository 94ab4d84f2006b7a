//! `edit_file`: replaces exact pieces of a text file, all or none.

use schemars::JsonSchema;
use serde::Deserialize;

use super::change::{Change, Creates};
use super::error::FileError;

/// What the model reads about the tool.
pub(crate) const DESCRIPTION: &str = "Replaces exact pieces of text in a file. \
    The edits are made in order, each on the result of the one before; if one cannot be made, none is. \
    Each `old` must occur exactly once, unless `all` is set.";

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Arguments {
    /// The file, relative to the root.
    path: String,
    /// What to replace, in order.
    #[schemars(length(min = 1))]
    edits: Vec<Edit>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Edit {
    /// The exact text that is there now, with its white space and line ends.
    #[schemars(length(min = 1))]
    old: String,
    /// The text that takes its place.
    new: String,
    /// Replaces every occurrence.
    #[serde(default)]
    all: bool,
}

impl Change for Arguments {
    fn path(&self) -> &str {
        &self.path
    }

    fn creates(&self) -> Creates {
        Creates::Nothing
    }

    fn after(&self, shown: &str, before: Option<&[u8]>) -> Result<Vec<u8>, FileError> {
        let not_text = |_| FileError::NotText { path: shown.to_owned() };
        let mut text = std::str::from_utf8(before.unwrap_or_default()).map_err(not_text)?.to_owned();
        for (index, edit) in self.edits.iter().enumerate() {
            text = edit.apply(shown, index + 1, &text)?;
        }
        Ok(text.into_bytes())
    }

    fn describe(&self, shown: &str, _before: Option<&[u8]>, _after: &[u8]) -> String {
        match self.edits.len() {
            1 => format!("edit `{shown}` in one place"),
            several => format!("edit `{shown}` in {several} places"),
        }
    }
}

impl Edit {
    fn apply(&self, shown: &str, number: usize, text: &str) -> Result<String, FileError> {
        let path = || shown.to_owned();
        match text.matches(&self.old).count() {
            _ if self.old.is_empty() => Err(FileError::Argument(format!("edit {number}: `old` is empty"))),
            0 => {
                let other_line_ends = unix_line_ends(text).contains(&unix_line_ends(&self.old));
                Err(FileError::NoOccurrence { path: path(), number, other_line_ends })
            }
            // Overlapping occurrences (`aa` in `aaa`) are counted once by `matches`, yet leave open which is meant.
            1 if self.all || text.find(&self.old) == text.rfind(&self.old) => {
                Ok(text.replace(&self.old, &self.new))
            }
            _ if self.all => Ok(text.replace(&self.old, &self.new)),
            count => Err(FileError::SeveralOccurrences { path: path(), number, count: count.max(2) }),
        }
    }
}

fn unix_line_ends(text: &str) -> String {
    text.replace("\r\n", "\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edits<const N: usize>(edits: [(&str, &str, bool); N]) -> Arguments {
        let edit = |(old, new, all): (&str, &str, bool)| Edit { old: old.into(), new: new.into(), all };
        Arguments { path: "a".into(), edits: edits.map(edit).into() }
    }

    fn edited<const N: usize>(text: &str, list: [(&str, &str, bool); N]) -> Result<String, String> {
        let after = edits(list).after("a", Some(text.as_bytes()));
        after.map(|bytes| String::from_utf8(bytes).unwrap()).map_err(|error| error.into_failure().to_string())
    }

    #[test]
    fn edits_are_made_in_order_each_on_the_result_of_the_one_before() {
        assert_eq!(edited("one two", [("one", "two", false), ("two two", "x", false)]).unwrap(), "x");
    }

    #[test]
    fn old_text_must_occur_exactly_once() {
        let twice = edited("x x", [("x", "y", false)]).unwrap_err();
        assert!(twice.contains("edit 1: the text `old` occurs 2 times in `a`"), "{twice}");
        let overlapping = edited("aaa", [("aa", "b", false)]).unwrap_err();
        assert!(overlapping.contains("occurs 2 times"), "{overlapping}");
        let none = edited("x", [("x", "y", false), ("x", "y", false)]).unwrap_err();
        assert!(none.contains("edit 2: the text `old` does not occur"), "{none}");
    }

    #[test]
    fn every_occurrence_is_replaced_where_that_is_asked_for() {
        assert_eq!(edited("x x x", [("x", "y", true)]).unwrap(), "y y y");
    }

    #[test]
    fn other_line_ends_are_named_as_the_cause() {
        let error = edited("a\r\nb\r\n", [("a\nb", "c", false)]).unwrap_err();
        assert!(error.contains("line ends"), "{error}");
    }

    #[test]
    fn replacement_text_is_taken_literally() {
        assert_eq!(edited("a", [("a", "$0 \\1 a", false)]).unwrap(), "$0 \\1 a");
    }
}
