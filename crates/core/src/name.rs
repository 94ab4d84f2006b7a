//! Names and keys: cheap, shared strings with one meaning each.

use std::borrow::Borrow;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

macro_rules! shared_string {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(Arc<str>);

        impl $name {
            /// Returns the text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl Deref for $name {
            type Target = str;
            fn deref(&self) -> &str {
                &self.0
            }
        }

        impl Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }

        impl AsRef<str> for $name {
            fn as_ref(&self) -> &str {
                &self.0
            }
        }

        impl From<&str> for $name {
            fn from(text: &str) -> Self {
                Self(text.into())
            }
        }

        impl From<String> for $name {
            fn from(text: String) -> Self {
                Self(text.into())
            }
        }

        impl From<&$name> for $name {
            fn from(other: &$name) -> Self {
                other.clone()
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(&self.0, f)
            }
        }

        impl PartialEq<str> for $name {
            fn eq(&self, other: &str) -> bool {
                &*self.0 == other
            }
        }

        impl PartialEq<&str> for $name {
            fn eq(&self, other: &&str) -> bool {
                &*self.0 == *other
            }
        }
    };
}

shared_string! {
    /// The name of an agent, tool, toolset or entry.
    Name
}

shared_string! {
    /// The place of a step in its run: the path in the model's own order, such as `1/t3/tool/0`.
    ///
    /// A key is stable over a resume, never reused within a run, and given to tools as an
    /// idempotency key.
    Key
}

impl Name {
    /// The rule for names as a regular expression, for schemas.
    pub const PATTERN: &'static str = "^[A-Za-z0-9_-]{1,64}$";

    /// The rule for names as people read it.
    pub const RULE: &'static str = "1 to 64 letters, digits, `_` and `-`";

    /// Returns whether the text may name an agent or a tool: `[A-Za-z0-9_-]{1,64}`.
    pub fn is_valid(text: &str) -> bool {
        (1..=64).contains(&text.len())
            && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-')
    }
}

impl Key {
    /// Returns whether it is the key of a call or of something below it.
    pub fn is_within(&self, call: &Self) -> bool {
        let rest = self.as_str().strip_prefix(call.as_str());
        rest.is_some_and(|rest| call.as_str().is_empty() || rest.is_empty() || rest.starts_with('/'))
    }

    /// The key of the code outside every call of a run.
    pub fn root() -> Self {
        Self::from("")
    }

    /// Returns the key one level below this one.
    pub fn child(&self, part: impl fmt::Display) -> Self {
        if self.0.is_empty() {
            Self::from(part.to_string())
        } else {
            Self::from(format!("{}/{part}", self.0))
        }
    }
}

/// Names beyond this many bytes are compared with nothing: time and memory grow with the product of lengths.
const MAX_COMPARED_LEN: usize = 256;

/// Returns the candidate nearest to what was written, if one is near enough to be meant.
pub fn nearest<'a>(written: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let is_name = |text: &str| text.len() <= MAX_COMPARED_LEN;
    candidates
        .into_iter()
        .filter(|candidate| is_name(written) && is_name(candidate))
        .map(|candidate| (similarity(written, candidate), candidate))
        .filter(|(score, _)| *score >= 0.5)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, candidate)| candidate)
}

/// Returns the candidate that was misspelled or cut short, for names that people type: at most one wrong character in
/// three, or the beginning of a name.
///
/// [`nearest`] also finds names that mean something similar, which would be a wild guess for a short command.
pub fn misspelled<'a>(written: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let written = written.to_lowercase();
    let edits = |candidate: &str| {
        let longest = written.chars().count().max(candidate.chars().count());
        let is_beginning = written.len() >= 3 && candidate.starts_with(&written);
        let edits = if is_beginning { 1 } else { strsim::damerau_levenshtein(&written, candidate) };
        (is_beginning || edits <= longest / 3).then_some(edits)
    };
    candidates
        .into_iter()
        .filter(|candidate| written.len().max(candidate.len()) <= MAX_COMPARED_LEN)
        .filter_map(|candidate| Some((edits(&candidate.to_lowercase())?, candidate)))
        .min_by_key(|(edits, _)| *edits)
        .map(|(_, candidate)| candidate)
}

/// Likeness of two names. Being part of the other counts (`file_path` and `path`), and so does being an
/// abbreviation of it (`cmd` and `command`).
fn similarity(written: &str, candidate: &str) -> f64 {
    let (a, b) = (written.to_lowercase(), candidate.to_lowercase());
    let edit = strsim::normalized_damerau_levenshtein(&a, &b);
    let contains = if a.len().min(b.len()) >= 3 && (a.contains(&b) || b.contains(&a)) { 0.6 } else { 0.0 };
    let short = if a.len() >= 2 && a.chars().next() == b.chars().next() && is_subsequence(&a, &b) {
        0.55
    } else {
        0.0
    };
    edit.max(contains).max(short)
}

fn is_subsequence(short: &str, long: &str) -> bool {
    let mut rest = long.chars();
    short.chars().all(|wanted| rest.any(|found| found == wanted))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_misspelled_command_is_found_and_an_unrelated_one_is_not() {
        const COMMANDS: [&str; 6] = ["run", "chat", "check", "list", "models", "doctor"];
        for (written, meant) in [
            ("rnu", Some("run")),
            ("Run", Some("run")),
            ("chekc", Some("check")),
            ("lst", Some("list")),
            ("mod", Some("models")),
            ("docter", Some("doctor")),
            ("test", None),
            ("foo", None),
            ("ls", None),
            ("", None),
            ("hello", None),
        ] {
            assert_eq!(misspelled(written, COMMANDS), meant, "{written}");
        }
    }

    #[test]
    fn a_near_miss_finds_the_name_that_was_meant() {
        assert_eq!(nearest("file_path", ["content", "path"]), Some("path"));
        assert_eq!(nearest("cmd", ["command", "timeout"]), Some("command"));
        assert_eq!(nearest("raed_file", ["read_file", "write_file"]), Some("read_file"));
        assert_eq!(nearest("weather", ["read_file", "shell"]), None);
    }

    #[test]
    fn a_text_far_too_long_for_a_name_is_near_to_none() {
        let long = "path".repeat(1_000_000);
        assert_eq!(nearest(&long, ["path"]), None);
        assert_eq!(nearest("path", [long.as_str(), "paths"]), Some("paths"));
    }

    #[test]
    fn keys_nest_without_a_leading_slash() {
        assert_eq!(Key::root().child("1").child("t2"), "1/t2");
    }
}
