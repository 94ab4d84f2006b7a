//! Removes secrets from whatever may be shown or kept.
//!
//! Providers echo keys in their errors, and not always as they were sent: within JSON, within an address, or
//! in the base64 of some longer text. All these forms are found. A form that the provider shortened itself
//! (`sk-ab***yz`) is not: it is no longer the key.

use std::borrow::Cow;
use std::ops::Range;

use base64::Engine;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use bytes::Bytes;
use llm_do_core::ModelError;
use memchr::memmem::Finder;
use serde_json::{Map, Value};

/// What stands in place of a secret.
pub(crate) const REMOVED: &str = "[removed]";

/// A shorter value is no secret: removing it would tear holes into harmless words.
const SHORTEST_SECRET: usize = 4;
/// Shorter parts of base64 are met by chance.
const SHORTEST_ENCODED: usize = 8;

/// From this length on, a secret is removed from answers whatever letters it has.
const SURELY_SECRET: usize = 16;

/// Knows some secrets and removes them.
#[derive(Clone, Default)]
pub(crate) struct Mask {
    forms: Vec<Finder<'static>>,
    /// The secrets as they stand in answers, without those that may be words of an answer.
    in_answers: Vec<Finder<'static>>,
}

impl Mask {
    /// A mask of secrets. Values of fewer than four bytes are left alone.
    pub(crate) fn new(secrets: impl IntoIterator<Item = String>) -> Self {
        let secrets = secrets.into_iter().map(|secret| secret.trim().to_owned());
        let secrets: Vec<String> = secrets.filter(|secret| secret.len() >= SHORTEST_SECRET).collect();
        let telling = secrets.iter().filter(|secret| is_telling(secret));
        Self {
            forms: finders(secrets.iter().flat_map(|secret| forms_of(secret)).collect()),
            in_answers: finders(
                telling.flat_map(|secret| [secret.clone(), quoted(secret)].map(String::into_bytes)).collect(),
            ),
        }
    }

    /// Returns what has arrived of an answer without the secrets in it. An end that may be the beginning of a
    /// secret is held back until more has arrived.
    pub(crate) fn arriving<'a>(&self, held: &mut Vec<u8>, piece: &'a [u8]) -> Cow<'a, [u8]> {
        let text: Cow<'a, [u8]> = if held.is_empty() {
            Cow::Borrowed(piece)
        } else {
            held.extend_from_slice(piece);
            Cow::Owned(std::mem::take(held))
        };
        let places = places(&self.in_answers, &text);
        let rest = &text[places.last().map_or(0, |place| place.end)..];
        let begun = self.in_answers.iter().map(|form| begun(form.needle(), rest)).max().unwrap_or(0);
        let end = text.len() - begun;
        held.extend_from_slice(&text[end..]);
        match text {
            text if !places.is_empty() => Cow::Owned(without(&places, 0..end, &text[..end])),
            Cow::Borrowed(text) => Cow::Borrowed(&text[..end]),
            Cow::Owned(mut text) => {
                text.truncate(end);
                Cow::Owned(text)
            }
        }
    }

    /// Returns the text without secrets.
    pub(crate) fn text<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let places = places(&self.forms, text.as_bytes());
        if places.is_empty() {
            return Cow::Borrowed(text);
        }
        let mut masked = String::with_capacity(text.len());
        let mut kept_to = 0;
        for place in places {
            // Every form begins and ends with a whole character, so these are boundaries of characters.
            masked.push_str(text.get(kept_to..place.start).unwrap_or_default());
            masked.push_str(REMOVED);
            kept_to = place.end;
        }
        masked.push_str(text.get(kept_to..).unwrap_or_default());
        Cow::Owned(masked)
    }

    /// Returns the error without secrets in its words.
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
    pub(crate) fn pieces(&self, pieces: &[Bytes]) -> Vec<Vec<u8>> {
        let places = places(&self.forms, &pieces.concat());
        let mut start = 0;
        let ranges = pieces.iter().map(|piece| {
            let range = start..start + piece.len();
            start = range.end;
            (range, piece)
        });
        ranges.map(|(range, piece)| without(&places, range, piece)).collect()
    }
}

/// Says whether a secret is no word. What people write where a server wants any key (`ollama`, `lm-studio`) may well
/// stand in an answer.
fn is_telling(secret: &str) -> bool {
    let has_digit = secret.bytes().any(|byte| byte.is_ascii_digit());
    secret.len() >= SURELY_SECRET || (secret.len() >= SHORTEST_ENCODED && has_digit)
}

fn finders(mut forms: Vec<Vec<u8>>) -> Vec<Finder<'static>> {
    forms.sort();
    forms.dedup();
    forms.iter().map(|form| Finder::new(form).into_owned()).collect()
}

/// Returns where secrets stand, in order and apart from each other.
fn places(forms: &[Finder<'_>], text: &[u8]) -> Vec<Range<usize>> {
    let mut places: Vec<Range<usize>> = forms.iter().flat_map(|form| all(form, text)).collect();
    places.sort_by_key(|place| place.start);
    places.dedup_by(|next, place| {
        let touches = next.start < place.end;
        place.end = if touches { place.end.max(next.end) } else { place.end };
        touches
    });
    places
}

/// Returns how many bytes at the end of a text may be the beginning of a secret.
fn begun(secret: &[u8], text: &[u8]) -> usize {
    let most = text.len().min(secret.len() - 1);
    (1..=most).rev().find(|length| text.ends_with(&secret[..*length])).unwrap_or(0)
}

fn all(form: &Finder<'_>, text: &[u8]) -> impl Iterator<Item = Range<usize>> {
    let length = form.needle().len();
    form.find_iter(text).map(move |start| start..start + length)
}

/// Returns a piece, which is a range of a longer text, without what lies in the places.
fn without(places: &[Range<usize>], range: Range<usize>, piece: &[u8]) -> Vec<u8> {
    let mut kept = Vec::with_capacity(piece.len());
    let mut kept_to = range.start;
    for place in places.iter().filter(|place| place.start < range.end && place.end > range.start) {
        kept.extend_from_slice(&piece[kept_to - range.start..place.start.max(range.start) - range.start]);
        if place.start >= range.start {
            kept.extend_from_slice(REMOVED.as_bytes());
        }
        kept_to = place.end.min(range.end);
    }
    kept.extend_from_slice(&piece[kept_to - range.start..]);
    kept
}

/// Returns the forms in which a secret may be met.
fn forms_of(secret: &str) -> Vec<Vec<u8>> {
    let mut forms = vec![secret.to_owned(), quoted(secret)];
    forms.extend([percent(secret, false), percent(secret, true)]);
    forms.extend((0..3).flat_map(|shift| encoded(secret, shift)));
    forms.into_iter().map(String::into_bytes).collect()
}

/// Returns a secret as it stands within a JSON text.
fn quoted(secret: &str) -> String {
    let quoted = Value::from(secret).to_string();
    quoted[1..quoted.len() - 1].to_owned()
}

fn percent(secret: &str, is_lower: bool) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    secret.bytes().fold(String::new(), |text, byte| match (is_plain(byte), is_lower) {
        (true, _) => text + char::from(byte).encode_utf8(&mut [0; 4]),
        (false, false) => text + &format!("%{byte:02X}"),
        (false, true) => text + &format!("%{byte:02x}"),
    })
}

/// Returns the part of a base64 text that tells nothing but the secret, if so many bytes stand before it.
fn encoded(secret: &str, shift: usize) -> Vec<String> {
    let shifted = [&b"\0\0"[..shift], secret.as_bytes()].concat();
    let first = (shift * 8).div_ceil(6);
    let end = shifted.len() * 8 / 6;
    let texts = [STANDARD_NO_PAD.encode(&shifted), URL_SAFE_NO_PAD.encode(&shifted)];
    let parts = texts.into_iter().filter(|_| end.saturating_sub(first) >= SHORTEST_ENCODED);
    parts.map(|text| text[first..end].to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use llm_do_core::ModelErrorKind;
    use serde_json::json;

    use super::*;

    const KEY: &str = "sk-ant/api+03=\"Zq7\\x";

    fn mask() -> Mask {
        Mask::new([KEY.to_owned()])
    }

    #[test]
    fn a_text_without_secrets_is_not_copied() {
        assert!(matches!(mask().text("incorrect key sk-ant***x"), Cow::Borrowed(_)));
    }

    #[test]
    fn a_secret_is_removed_wherever_it_stands() {
        let text = format!("{KEY}: bad key {KEY}, not {KEY}");
        assert_eq!(mask().text(&text), "[removed]: bad key [removed], not [removed]");
    }

    #[test]
    fn its_forms_in_json_and_in_addresses_are_removed() {
        let json = json!({"error": format!("bad key {KEY}")}).to_string();
        assert_eq!(mask().text(&json), r#"{"error":"bad key [removed]"}"#);
        assert_eq!(mask().text("?key=sk-ant%2Fapi%2B03%3D%22Zq7%5Cx&a"), "?key=[removed]&a");
        assert_eq!(mask().text("?key=sk-ant%2fapi%2b03%3d%22Zq7%5cx"), "?key=[removed]");
    }

    #[test]
    fn base64_of_texts_around_it_tells_nothing_of_it() {
        for before in ["", "u", "us", "user:", "user1:", "user12:"] {
            for after in ["", "\n", "ab", "abc"] {
                for engine in [STANDARD_NO_PAD, URL_SAFE_NO_PAD] {
                    let text = engine.encode(format!("{before}{KEY}{after}"));
                    let masked = mask().text(&text).into_owned();
                    assert!(masked.contains(REMOVED), "{before:?} {after:?}: {text}");
                    // At most the letters that share bits with their neighbours are left.
                    assert!(masked.len() <= REMOVED.len() + 4 + (before.len() + after.len()) * 2, "{masked}");
                }
            }
        }
    }

    #[test]
    fn secrets_that_overlap_leave_no_rest() {
        let mask = Mask::new(["abcdef".to_owned(), "defghi".to_owned(), "abcdefghij".to_owned()]);
        assert_eq!(mask.text("x abcdefghi y abcdefghij z"), "x [removed] y [removed] z");
    }

    #[test]
    fn short_values_are_no_secrets() {
        let mask = Mask::new(["abc".to_owned(), "  ".to_owned(), String::new()]);
        assert_eq!(mask.text("abc"), "abc");
    }

    #[test]
    fn errors_and_values_are_masked_in_every_text() {
        let error = ModelError::new(ModelErrorKind::Auth, format!("invalid key {KEY}"));
        assert_eq!(mask().error(error).message, "invalid key [removed]");
        let value = json!({"a": [KEY, 1, null], KEY: {"b": format!("<{KEY}>")}});
        let masked = json!({"a": ["[removed]", 1, null], "[removed]": {"b": "<[removed]>"}});
        assert_eq!(mask().value(value), masked);
    }

    #[test]
    fn an_answer_is_masked_as_it_arrives_and_only_a_beginning_is_held_back() {
        let text = format!("grüße {KEY}, {KEY} sk-a");
        for cut in 0..text.len() {
            let mut held = Vec::new();
            let mut shown = mask().arriving(&mut held, &text.as_bytes()[..cut]).into_owned();
            assert!(held.len() < quoted(KEY).len());
            shown.extend_from_slice(&mask().arriving(&mut held, &text.as_bytes()[cut..]));
            assert_eq!((&*shown, &*held), ("grüße [removed], [removed] ".as_bytes(), &b"sk-a"[..]), "{cut}");
        }
        let mut held = Vec::new();
        assert!(matches!(mask().arriving(&mut held, b"data: {}\n\n"), Cow::Borrowed(b"data: {}\n\n")));
        assert_eq!(held, b"");
    }

    #[test]
    fn a_word_in_the_place_of_a_key_stays_in_answers() {
        let mask = Mask::new(["lm-studio".to_owned(), "none".to_owned()]);
        assert_eq!(&*mask.arriving(&mut Vec::new(), b"lm-studio: none"), b"lm-studio: none");
        assert_eq!(mask.text("lm-studio: none"), "[removed]: [removed]");
    }

    #[test]
    fn a_secret_that_was_cut_in_pieces_is_removed_from_all_of_them() {
        let text = format!("grüße {KEY}, {KEY}!");
        for cut in 0..text.len() {
            for second in cut..text.len() {
                let whole = Bytes::from(text.clone());
                let pieces = [whole.slice(..cut), whole.slice(cut..second), whole.slice(second..)];
                let masked = mask().pieces(&pieces);
                assert_eq!(masked.len(), 3);
                assert_eq!(
                    masked.concat(),
                    "grüße [removed], [removed]!".as_bytes(),
                    "cut at {cut}, {second}"
                );
            }
        }
    }
}
