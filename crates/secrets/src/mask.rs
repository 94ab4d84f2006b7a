//! Removes known secrets from whatever may be shown or kept.
//!
//! Providers and tools echo keys, and not always as they were given: within JSON, within an address, in the base64 of
//! some longer text, or spread over several pieces of a stream. All these forms are found: the plain and the
//! JSON-escaped ones everywhere ([`StreamMask`] finds them across pieces), the others in texts that are complete.
//!
//! This stops echoes. It does not stop a model that spells a key out letter by letter, nor does it find a form that
//! somebody shortened (`sk-ab***yz`), which is not the key any more.

mod forms;
mod stream;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use aho_corasick::AhoCorasick;
use aho_corasick::packed::{Config, MatchKind, Searcher};
use serde_json::{Map, Value};

pub use forms::{all_forms, plain_forms};
pub use stream::StreamMask;
use stream::{StreamAutomaton, add_match};

/// Replaces a secret.
pub const REMOVED: &str = "[removed]";

/// With how many of its bytes a form is looked for. No form is shorter.
const PREFIX_LEN: usize = 4;

/// Knows some secrets and removes them. Clones share the automata.
#[derive(Clone, Default)]
pub struct SecretMask(Option<Arc<Automata>>);

struct Automata {
    /// Finds every form, in a text that is complete.
    all: AhoCorasick,
    /// Finds the first bytes of every form with vector instructions. Missing if the processor has none, or if there
    /// are too many forms.
    prefixes: Option<Searcher>,
    /// Finds the plain forms, in a text that arrives in pieces.
    plain: StreamAutomaton,
}

impl Automata {
    fn new(secrets: &[&str]) -> Option<Self> {
        let all: Vec<String> = secrets.iter().flat_map(|secret| all_forms(secret)).collect();
        let plain: Vec<String> = secrets.iter().flat_map(|secret| plain_forms(secret)).collect();
        let mut prefixes: Vec<&[u8]> = all.iter().map(|form| &form.as_bytes()[..PREFIX_LEN]).collect();
        prefixes.sort_unstable();
        prefixes.dedup();
        // The limits keep the search fast if much is found; here nearly nothing is.
        let mut config = Config::new();
        config.match_kind(MatchKind::LeftmostFirst).heuristic_pattern_limits(false);
        let prefixes = config.builder().extend(prefixes).build();
        // The length of secrets is bounded, so that the automata never have too many states to be built.
        Some(Self { all: AhoCorasick::new(&all).ok()?, prefixes, plain: StreamAutomaton::new(&plain)? })
    }

    /// Returns where the first form may begin. Most texts have no such position.
    fn candidate(&self, text: &[u8]) -> Option<usize> {
        match &self.prefixes {
            Some(prefixes) => prefixes.find(text).map(|found| found.start()),
            None => Some(0),
        }
    }
}

impl SecretMask {
    /// A mask of secrets. Values that are too short to be secrets, and placeholders, are left alone.
    pub fn new<S: AsRef<str>>(secrets: impl IntoIterator<Item = S>) -> Self {
        let values: Vec<S> = secrets.into_iter().collect();
        let mut secrets: Vec<&str> =
            values.iter().filter_map(|value| forms::secret(value.as_ref())).collect();
        secrets.sort_unstable();
        secrets.dedup();
        if secrets.is_empty() {
            return Self(None);
        }
        Self(Automata::new(&secrets).map(Arc::new))
    }

    fn automaton(&self) -> Option<&StreamAutomaton> {
        self.0.as_deref().map(|automata| &automata.plain)
    }

    /// Returns whether a text contains a secret in any form.
    pub fn finds(&self, text: &str) -> bool {
        let Some(automata) = self.0.as_deref() else { return false };
        let text = text.as_bytes();
        automata.candidate(text).is_some_and(|from| automata.all.is_match(&text[from..]))
    }

    /// Returns whether a text or a name in a value contains a secret in any form.
    pub fn finds_in(&self, value: &Value) -> bool {
        if self.0.is_none() {
            return false;
        }
        match value {
            Value::String(text) => self.finds(text),
            Value::Array(values) => values.iter().any(|value| self.finds_in(value)),
            Value::Object(fields) => {
                fields.iter().any(|(name, value)| self.finds(name) || self.finds_in(value))
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => false,
        }
    }

    /// Returns where secrets are, in order and apart from each other.
    fn found(&self, text: &[u8]) -> Vec<Range<usize>> {
        let Some(automata) = self.0.as_deref() else { return Vec::new() };
        let Some(from) = automata.candidate(text) else { return Vec::new() };
        let mut found = Vec::new();
        for range in automata.all.find_overlapping_iter(&text[from..]) {
            add_match(&mut found, from + range.start()..from + range.end());
        }
        found
    }

    /// Returns the text without secrets.
    pub fn text<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let found = self.found(text.as_bytes());
        if found.is_empty() {
            return Cow::Borrowed(text);
        }
        let mut masked = String::with_capacity(text.len());
        let mut kept_to = 0;
        for range in found {
            // Every form begins and ends with a whole character, so these are boundaries of characters.
            masked.push_str(text.get(kept_to..range.start).unwrap_or_default());
            masked.push_str(REMOVED);
            kept_to = range.end;
        }
        masked.push_str(text.get(kept_to..).unwrap_or_default());
        Cow::Owned(masked)
    }

    /// Returns the value without secrets in its texts and names.
    pub fn value(&self, value: Value) -> Value {
        match value {
            Value::String(text) => match self.text(&text) {
                Cow::Borrowed(_) => Value::String(text),
                Cow::Owned(masked) => Value::String(masked),
            },
            Value::Array(values) => values.into_iter().map(|value| self.value(value)).collect(),
            Value::Object(fields) => {
                let fields = fields.into_iter();
                let masked: Map<String, Value> =
                    fields.map(|(name, value)| (self.text(&name).into_owned(), self.value(value))).collect();
                Value::Object(masked)
            }
            other => other,
        }
    }

    /// Returns the pieces of one text without secrets, also those that were cut in two. A removed secret is
    /// marked in the piece in which it began.
    pub fn pieces(&self, pieces: &[impl AsRef<[u8]>]) -> Vec<Vec<u8>> {
        let whole: Vec<u8> = pieces.iter().flat_map(|piece| piece.as_ref().iter().copied()).collect();
        let found = self.found(&whole);
        let mut start = 0;
        let ranges = pieces.iter().map(|piece| {
            let range = start..start + piece.as_ref().len();
            start = range.end;
            (range, piece)
        });
        ranges.map(|(range, piece)| without(&found, range, piece.as_ref())).collect()
    }
}

impl fmt::Debug for SecretMask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SecretMask(…)")
    }
}

/// Returns a piece, which is a range of a longer text, without the ranges that were found.
fn without(found: &[Range<usize>], range: Range<usize>, piece: &[u8]) -> Vec<u8> {
    let mut kept = Vec::with_capacity(piece.len());
    let mut kept_to = range.start;
    for secret in found.iter().filter(|secret| secret.start < range.end && secret.end > range.start) {
        kept.extend_from_slice(&piece[kept_to - range.start..secret.start.max(range.start) - range.start]);
        if secret.start >= range.start {
            kept.extend_from_slice(REMOVED.as_bytes());
        }
        kept_to = secret.end.min(range.end);
    }
    kept.extend_from_slice(&piece[kept_to - range.start..]);
    kept
}
