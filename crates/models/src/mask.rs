//! Removes secrets from whatever may be shown or kept.
//!
//! Providers echo keys, and not always as they were sent: within JSON, within an address, in the base64 of some longer
//! text, or spread over several deltas of a stream. All these forms are found: the plain and the JSON-escaped ones
//! everywhere ([`AnswerMask`] finds them across deltas), the others in errors and in whatever is recorded.
//!
//! This stops echoes. It does not stop a model that spells a key out letter by letter, nor does it find a form that
//! the provider shortened (`sk-ab***yz`): that is no longer the key.

mod answer;
mod forms;
mod stream;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

use aho_corasick::AhoCorasick;
use llm_do_core::ModelError;
use serde_json::{Map, Value};

pub(crate) use answer::AnswerMask;
use stream::{StreamAutomaton, add_match};

/// Replaces a secret.
pub(crate) const REMOVED: &str = "[removed]";

/// Knows some secrets and removes them. Clones share the automata.
#[derive(Clone, Default)]
pub(crate) struct Mask(Option<Arc<Automata>>);

struct Automata {
    /// Finds every form, in a text that is complete.
    all: AhoCorasick,
    /// Finds the plain forms, in a text that arrives in pieces.
    plain: Option<StreamAutomaton>,
}

impl Mask {
    /// A mask of secrets. Values that are too short to be secrets, and placeholders, are left alone.
    pub(crate) fn new(secrets: impl IntoIterator<Item = String>) -> Self {
        let values: Vec<String> = secrets.into_iter().collect();
        let secrets: Vec<&str> = values.iter().filter_map(|value| forms::secret(value)).collect();
        if secrets.is_empty() {
            return Self(None);
        }
        let all: Vec<String> = secrets.iter().flat_map(|secret| forms::all_forms(secret)).collect();
        let plain: Vec<String> = secrets.iter().flat_map(|secret| forms::plain_forms(secret)).collect();
        // The length of secrets is bounded, so that the automaton never has too many states to be built.
        let all = AhoCorasick::new(&all).ok();
        Self(all.map(|all| Arc::new(Automata { all, plain: StreamAutomaton::new(&plain) })))
    }

    fn automaton(&self) -> Option<&StreamAutomaton> {
        self.0.as_deref()?.plain.as_ref()
    }

    /// Returns whether a text contains a secret in any form.
    fn finds(&self, text: &str) -> bool {
        self.0.as_deref().is_some_and(|automata| automata.all.is_match(text))
    }

    /// Returns where secrets are, in order and apart from each other.
    fn found(&self, text: &[u8]) -> Vec<Range<usize>> {
        let Some(automata) = self.0.as_deref().filter(|automata| automata.all.is_match(text)) else {
            return Vec::new();
        };
        let mut found = Vec::new();
        for range in automata.all.find_overlapping_iter(text) {
            add_match(&mut found, range.range());
        }
        found
    }

    /// Returns the text without secrets.
    pub(crate) fn text<'a>(&self, text: &'a str) -> Cow<'a, str> {
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

    /// Returns the error without secrets in its message.
    pub(crate) fn error(&self, error: ModelError) -> ModelError {
        match self.text(&error.message) {
            Cow::Borrowed(_) => error,
            Cow::Owned(message) => ModelError { message, ..error },
        }
    }

    /// Returns the value without secrets in its texts and names.
    pub(crate) fn value(&self, value: Value) -> Value {
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
    pub(crate) fn pieces(&self, pieces: &[impl AsRef<[u8]>]) -> Vec<Vec<u8>> {
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
