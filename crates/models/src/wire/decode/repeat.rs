//! A short way for events that differ from the one before in their text alone.
//!
//! Most events of a stream are such: the same envelope around the next few letters. What comes before and after the
//! text is compared as bytes, and only the text is read; everything else goes the long way.

use std::borrow::Cow;

/// The longest envelope that is kept.
const MAX_LEN: usize = 4 * 1024;

/// The envelope of an event that did nothing but add text.
#[derive(Default)]
pub(super) struct Repeat {
    /// Up to the quote before the text, that quote included; empty where nothing is known.
    before: Vec<u8>,
    /// From the quote behind the text.
    behind: Vec<u8>,
}

impl Repeat {
    /// Returns the text of an event with the same envelope.
    pub(super) fn text_in<'a>(&self, event: &'a [u8]) -> Option<Cow<'a, str>> {
        if self.before.is_empty() || event.len() < self.before.len() + self.behind.len() {
            return None;
        }
        let literal = event.strip_prefix(self.before.as_slice())?.strip_suffix(self.behind.as_slice())?;
        read_literal(literal, &event[self.before.len() - 1..event.len() - self.behind.len() + 1])
    }

    /// Learns the envelope of an event that added this text, as the value of this key, and nothing else.
    pub(super) fn learn(&mut self, event: &[u8], key: &str, text: &str) {
        self.forget();
        let Some(start) = start_of_text(event, key) else { return };
        let Some(end) = end_of_literal(&event[start..]).map(|length| start + length) else { return };
        let is_text =
            read_literal(&event[start..end], &event[start - 1..=end]).is_some_and(|read| read == text);
        if is_text && event.len() - (end - start) <= MAX_LEN {
            self.before.extend_from_slice(&event[..start]);
            self.behind.extend_from_slice(&event[end..]);
        }
    }

    pub(super) fn forget(&mut self) {
        self.before.clear();
        self.behind.clear();
    }
}

/// Reads the inside of a JSON string; `quoted` is the same with its quotes. Nothing where it is more than one string.
fn read_literal<'a>(literal: &'a [u8], quoted: &'a [u8]) -> Option<Cow<'a, str>> {
    if literal.iter().all(|byte| !matches!(byte, b'"' | b'\\' | 0..=0x1f)) {
        return std::str::from_utf8(literal).ok().map(Cow::Borrowed);
    }
    serde_json::from_slice::<String>(quoted).ok().map(Cow::Owned)
}

/// Finds the text that is the value of the last such key.
fn start_of_text(event: &[u8], key: &str) -> Option<usize> {
    let field = format!("\"{key}\":");
    let behind_key = memchr::memmem::rfind(event, field.as_bytes())? + field.len();
    let blanks = event[behind_key..].iter().position(|byte| *byte != b' ')?;
    (event[behind_key + blanks] == b'"').then_some(behind_key + blanks + 1)
}

/// Returns where the string that begins here ends.
fn end_of_literal(text: &[u8]) -> Option<usize> {
    let mut is_escaped = false;
    text.iter().position(|byte| {
        let ends = *byte == b'"' && !is_escaped;
        is_escaped = *byte == b'\\' && !is_escaped;
        ends
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn learnt(event: &str, text: &str) -> Repeat {
        let mut repeat = Repeat::default();
        repeat.learn(event.as_bytes(), "content", text);
        repeat
    }

    #[test]
    fn an_event_that_differs_in_its_text_alone_is_read_the_short_way() {
        let repeat = learnt(r#"{"id":1,"delta":{"content":"a\"b"},"end":null}"#, "a\"b");
        let text = |event: &'static str| repeat.text_in(event.as_bytes()).map(Cow::into_owned);
        assert_eq!(text(r#"{"id":1,"delta":{"content":"next"},"end":null}"#).as_deref(), Some("next"));
        assert_eq!(text(r#"{"id":1,"delta":{"content":"\u00e9\n"},"end":null}"#).as_deref(), Some("é\n"));
        assert_eq!(text(r#"{"id":1,"delta":{"content":""},"end":null}"#).as_deref(), Some(""));
        for other in [
            r#"{"id":2,"delta":{"content":"next"},"end":null}"#,
            r#"{"id":1,"delta":{"content":"next"},"end":"stop"}"#,
            r#"{"id":1,"delta":{"content":"a","x":"b"},"end":null}"#,
            r#"{"id":1,"delta":{"content":"a\"},"end":null}"#,
            r#"{"id":1,"delta":{"content":"#,
        ] {
            assert_eq!(text(other), None, "{other}");
        }
    }

    #[test]
    fn nothing_is_learnt_from_an_event_whose_text_is_not_found() {
        let event = r#"{"content":"a","other":{"content":"b"}}"#;
        assert!(learnt(event, "a").text_in(event.as_bytes()).is_none());
        assert!(learnt(r#"{"content":null}"#, "a").text_in(br#"{"content":null}"#).is_none());
    }
}
