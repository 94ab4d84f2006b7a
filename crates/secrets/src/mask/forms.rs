//! The forms in which a secret may appear, and which values count as secrets.

use base64::Engine;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use serde_json::Value;

/// A shorter value is never a secret: removing it would tear holes into ordinary text.
const MIN_SECRET_LEN: usize = 8;

/// From this length on, a value is a secret even without a digit.
const SURE_SECRET_LEN: usize = 16;

/// Only so much of a secret is searched for, which bounds the size of the automaton.
const MAX_SECRET_LEN: usize = 16 * 1024;

/// Shorter parts of base64 appear by chance.
const MIN_ENCODED_LEN: usize = 8;

/// What people write if a server wants any key at all. Texts may well contain these.
const PLACEHOLDERS: &[&str] = &[
    "changeme",
    "dummy",
    "empty",
    "lm-studio",
    "no-key-required",
    "none",
    "not-needed",
    "ollama",
    "placeholder",
    "sk-no-key-required",
    "your-api-key",
    "your-api-key-here",
];

/// Returns the part of a value that is searched for, or nothing if the value is not a secret.
pub(super) fn secret(value: &str) -> Option<&str> {
    let value = value.trim();
    let has_digit = value.bytes().any(|byte| byte.is_ascii_digit());
    let is_long = value.len() >= SURE_SECRET_LEN || (value.len() >= MIN_SECRET_LEN && has_digit);
    let is_placeholder = PLACEHOLDERS.iter().any(|known| value.eq_ignore_ascii_case(known));
    (is_long && !is_placeholder).then(|| &value[..value.floor_char_boundary(MAX_SECRET_LEN)])
}

/// Returns a secret as it appears in text and inside JSON strings, as different programs escape them.
pub fn plain_forms(secret: &str) -> Vec<String> {
    let escaped = json_escaped(secret);
    let backslashes = secret.replace('\\', "\\\\");
    let forms = [
        secret.to_owned(),
        escaped.replace('/', "\\/"),
        unicode_escaped(&escaped, false, |ch| !ch.is_ascii()),
        unicode_escaped(&escaped, false, |ch| !ch.is_ascii() || "<>&".contains(ch)),
        // As .NET does it, which also escapes quotes and `+`.
        unicode_escaped(&backslashes, true, |ch| !ch.is_ascii() || "\"&'+<>`".contains(ch)),
        escaped,
    ];
    distinct(forms)
}

/// Returns every form: those of [`plain_forms`], percent encoding, base64 and hexadecimal digits.
pub fn all_forms(secret: &str) -> Vec<String> {
    let hex = |upper: bool| -> String {
        secret.bytes().map(|byte| if upper { format!("{byte:02X}") } else { format!("{byte:02x}") }).collect()
    };
    let encoded = [percent(secret, false), percent(secret, true), hex(false), hex(true)];
    let base64 = (0..3).flat_map(|shift| base64_parts(secret, shift));
    distinct(plain_forms(secret).into_iter().chain(encoded).chain(base64))
}

fn distinct(forms: impl IntoIterator<Item = String>) -> Vec<String> {
    let mut forms: Vec<String> = forms.into_iter().collect();
    forms.sort_unstable();
    forms.dedup();
    forms
}

fn json_escaped(secret: &str) -> String {
    let quoted = Value::from(secret).to_string();
    quoted[1..quoted.len() - 1].to_owned()
}

fn unicode_escaped(text: &str, is_upper: bool, is_escaped: impl Fn(char) -> bool) -> String {
    let mut escaped = String::with_capacity(text.len());
    for ch in text.chars() {
        if is_escaped(ch) {
            for unit in ch.encode_utf16(&mut [0; 2]) {
                let digits = if is_upper { format!("{unit:04X}") } else { format!("{unit:04x}") };
                escaped.extend(["\\u", &digits]);
            }
        } else {
            escaped.push(ch);
        }
    }
    escaped
}

fn percent(secret: &str, is_lower: bool) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    let encoded = secret.bytes().map(|byte| match (is_plain(byte), is_lower) {
        (true, _) => char::from(byte).to_string(),
        (false, false) => format!("%{byte:02X}"),
        (false, true) => format!("%{byte:02x}"),
    });
    encoded.collect()
}

/// Returns the part of a base64 text that depends on the secret alone, if `shift` bytes precede it in its group.
fn base64_parts(secret: &str, shift: usize) -> Vec<String> {
    let shifted = [&b"\0\0"[..shift], secret.as_bytes()].concat();
    let first = (shift * 8).div_ceil(6);
    let end = shifted.len() * 8 / 6;
    let texts = [STANDARD_NO_PAD.encode(&shifted), URL_SAFE_NO_PAD.encode(&shifted)];
    let parts = texts.into_iter().filter(|_| end.saturating_sub(first) >= MIN_ENCODED_LEN);
    parts.map(|text| text[first..end].to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_values_and_placeholders_are_not_secrets() {
        for value in
            ["", "  ", "abc1234", "abcdefgh", "ollama", "lm-studio", "none", "EMPTY", "sk-no-key-required"]
        {
            assert_eq!(secret(value), None, "{value}");
        }
        for value in ["abcdefg1", "abcdefghijklmnop", " abcdefg1\n"] {
            assert_eq!(secret(value), Some(value.trim()), "{value}");
        }
        assert_eq!(secret(&"ä".repeat(20_000)).map(str::len), Some(MAX_SECRET_LEN));
    }

    #[test]
    fn a_secret_inside_json_is_known_as_different_programs_escape_it() {
        assert_eq!(
            plain_forms("sk/a\"b<ü"),
            [
                r#"sk/a"b<ü"#,
                r#"sk/a\"b<\u00fc"#,
                r#"sk/a\"b<ü"#,
                r#"sk/a\"b\u003c\u00fc"#,
                r"sk/a\u0022b\u003C\u00FC",
                r#"sk\/a\"b<ü"#,
            ]
        );
    }

    #[test]
    fn a_plain_secret_has_one_plain_form() {
        assert_eq!(plain_forms("sk-canary-0123"), ["sk-canary-0123"]);
        // Percent encoding changes nothing; 2 of hexadecimal digits, 3 shifts of base64 with both alphabets.
        assert_eq!(all_forms("sk-canary-0123").len(), 1 + 2 + 3);
    }
}
