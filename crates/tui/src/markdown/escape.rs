//! Makes text of models visible: nothing in it is obeyed, nothing hides.

/// Returns text that is safe in a span: control, bidi and invisible characters are escaped, tabs are spaces.
///
/// Emoji keep their joiners and modifiers. How wide they are drawn is a matter of [`crate::wrap`].
pub(super) fn escaped(text: &str) -> String {
    crate::wrap::prose(text)
}

/// The same for URLs: somebody may open them, so every invisible character is escaped.
pub(super) fn escaped_url(text: &str) -> String {
    crate::wrap::plain(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn emoji_stay_whole() {
        for text in ["⚠\u{fe0f} careful", "👨\u{200d}👩\u{200d}👧", "👍🏽 🇩🇪"] {
            assert_eq!(escaped(text), text);
        }
        assert_eq!(escaped_url("https://❤\u{fe0f}.example"), "https://❤\\u{fe0f}.example");
    }

    #[test]
    fn invisible_signs_elsewhere_are_written_out() {
        assert_eq!(escaped("pay\u{200d}pal"), "pay\\u{200d}pal");
        assert_eq!(escaped("a\u{fe0f}b"), "a\\u{fe0f}b");
        assert_eq!(escaped("漢\u{fe0f}👍\u{200d}x"), "漢\\u{fe0f}👍\\u{200d}x");
        assert_eq!(escaped("\u{1b}[31m\tred\u{202e}"), "\\u{1b}[31m    red\\u{202e}");
    }
}
