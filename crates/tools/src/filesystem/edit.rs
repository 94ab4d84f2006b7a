//! `edit_file`: replaces exact pieces of a text file, all or none.

use schemars::JsonSchema;
use serde::Deserialize;

use super::change::{Creates, FileChange, check_size};
use super::error::FileError;

/// What the model reads about the tool.
pub(crate) const DESCRIPTION: &str = "Replaces exact pieces of text in a file. \
    The edits are made in order, each on the result of the one before; if one cannot be made, none is. \
    Each `old` must occur exactly once, unless `all` is set.";

/// How many edits one call may make.
const MAX_EDITS: usize = 200;
/// How many bytes the edits of one call may search in all, so that judging them takes no longer than a person waits.
const MAX_SEARCHED: u64 = 128 * 1024 * 1024;

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

impl FileChange for Arguments {
    fn path(&self) -> &str {
        &self.path
    }

    fn creates(&self) -> Creates {
        Creates::Nothing
    }

    fn depends_on_old(&self) -> bool {
        true
    }

    fn after(&self, shown: &str, before: Option<&[u8]>, limit: u64) -> Result<Vec<u8>, FileError> {
        check_count(self.edits.len())?;
        let not_text = |_| FileError::NotText { path: shown.to_owned() };
        let mut text = std::str::from_utf8(before.unwrap_or_default()).map_err(not_text)?.to_owned();
        // A file that is too long already may be made shorter step by step.
        let limit = limit.max(text.len() as u64);
        let mut searched = 0;
        for (index, edit) in self.edits.iter().enumerate() {
            searched += text.len() as u64;
            if searched > MAX_SEARCHED {
                return Err(FileError::Argument(format!(
                    "these edits would search {searched} bytes in all, more than {MAX_SEARCHED}: make several calls"
                )));
            }
            text = edit.apply(shown, index + 1, &text, limit)?;
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

fn check_count(count: usize) -> Result<(), FileError> {
    if count <= MAX_EDITS {
        return Ok(());
    }
    let message =
        format!("{count} edits are more than the {MAX_EDITS} that one call may make: make several calls");
    Err(FileError::Argument(message))
}

impl Edit {
    /// Makes the edit, unless the text would become longer than `limit`.
    fn apply(&self, shown: &str, number: usize, text: &str, limit: u64) -> Result<String, FileError> {
        if self.old.is_empty() {
            return Err(FileError::Argument(format!("edit {number}: `old` is empty")));
        }
        let path = || shown.to_owned();
        match text.matches(&self.old).count() {
            0 => {
                let other_line_ends = unix_line_ends(text).contains(&unix_line_ends(&self.old));
                Err(FileError::NoOccurrence { path: path(), number, other_line_ends })
            }
            // Overlapping occurrences (`aa` in `aaa`) are counted once by `matches`, yet leave open which is meant.
            1 if text.find(&self.old) == text.rfind(&self.old) => self.replace(text, 1, limit),
            count if self.all => self.replace(text, count, limit),
            count => Err(FileError::SeveralOccurrences { path: path(), number, count: count.max(2) }),
        }
    }
}

impl Edit {
    /// Replaces every occurrence, of which there are so many. The size of the result is known before it is built.
    fn replace(&self, text: &str, count: usize, limit: u64) -> Result<String, FileError> {
        let [count, old, new] = [count, self.old.len(), self.new.len()].map(|number| number as u64);
        let kept = text.len() as u64 - count * old;
        let size = count.checked_mul(new).and_then(|added| added.checked_add(kept)).unwrap_or(u64::MAX);
        check_size(size, limit)?;
        Ok(text.replace(&self.old, &self.new))
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
        let after = edits(list).after("a", Some(text.as_bytes()), 1000);
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
    fn edits_that_multiply_the_text_are_refused_before_they_are_made() {
        let long = "x".repeat(50);
        let list: [(&str, &str, bool); 10] = std::array::from_fn(|_| ("x", long.as_str(), true));
        let error = edited("x", list).unwrap_err();
        assert!(error.contains("the file would have 2500 bytes, more than the 1000"), "{error}");
    }

    #[test]
    fn a_file_that_is_too_long_may_be_made_shorter() {
        let text = "x".repeat(3000);
        assert_eq!(edited(&text, [("x", "y", true), ("y", "", true)]).unwrap(), "");
        assert!(edited(&text, [("x", "yy", true), ("y", "", true)]).is_err());
    }

    #[test]
    fn there_is_a_limit_to_the_edits_of_one_call() {
        let edit = |_| Edit { old: "x".into(), new: "x".into(), all: false };
        let arguments = |count: usize| Arguments { path: "a".into(), edits: (0..count).map(edit).collect() };
        assert!(arguments(MAX_EDITS).after("a", Some(b"x"), 10).is_ok());
        let error = arguments(MAX_EDITS + 1).after("a", Some(b"x"), 10).unwrap_err().to_string();
        assert_eq!(error, "201 edits are more than the 200 that one call may make: make several calls");
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
