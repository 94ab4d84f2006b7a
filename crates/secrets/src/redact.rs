//! Replaces secrets in a text.

use std::borrow::Cow;

use crate::scan::{Secret, secrets_in};

/// Replaces every private key and every token of a known format by a note such as `[secret: private key, 1,679 bytes]`.
///
/// Returns the text itself if there is none.
pub fn redact(text: &str) -> Cow<'_, str> {
    let mut secrets = secrets_in(text.as_bytes()).peekable();
    if secrets.peek().is_none() {
        return Cow::Borrowed(text);
    }
    let mut redacted = String::with_capacity(text.len());
    let mut end = 0;
    for Secret { kind, span } in secrets {
        let bytes = grouped(span.len());
        redacted.push_str(text.get(end..span.start).unwrap_or_default());
        redacted.push_str(&format!("[secret: {kind}, {bytes} bytes]"));
        end = span.end;
    }
    redacted.push_str(text.get(end..).unwrap_or_default());
    Cow::Owned(redacted)
}

/// Writes a number with commas between its thousands.
fn grouped(number: usize) -> String {
    let digits = number.to_string();
    let mut grouped = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_commas_between_their_thousands() {
        assert_eq!([0, 999, 1_000, 1_234_567].map(grouped), ["0", "999", "1,000", "1,234,567"]);
    }

    #[test]
    fn ordinary_text_is_not_copied() {
        assert!(matches!(redact("PRIVATE KEY----- sk-ant-... ghp_xxx"), Cow::Borrowed(_)));
    }
}
