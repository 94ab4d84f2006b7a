//! Makes text of models visible: nothing in it is obeyed, nothing hides.

/// Returns text as it may stand in a span: control, direction and invisible signs are written out, tabs are spaces.
///
/// Emoji keep the signs that join or restyle them. How wide they are drawn is a matter of [`crate::wrap`].
pub(super) fn shown(text: &str) -> String {
    crate::wrap::prose(text)
}

/// The same for addresses: somebody may follow them, so that every invisible sign is written out.
pub(super) fn shown_address(text: &str) -> String {
    crate::wrap::plain(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn emoji_stay_whole() {
        for text in ["⚠\u{fe0f} careful", "👨\u{200d}👩\u{200d}👧", "👍🏽 🇩🇪"] {
            assert_eq!(shown(text), text);
        }
        assert_eq!(shown_address("https://❤\u{fe0f}.example"), "https://❤\\u{fe0f}.example");
    }

    #[test]
    fn invisible_signs_elsewhere_are_written_out() {
        assert_eq!(shown("pay\u{200d}pal"), "pay\\u{200d}pal");
        assert_eq!(shown("a\u{fe0f}b"), "a\\u{fe0f}b");
        assert_eq!(shown("漢\u{fe0f}👍\u{200d}x"), "漢\\u{fe0f}👍\\u{200d}x");
        assert_eq!(shown("\u{1b}[31m\tred\u{202e}"), "\\u{1b}[31m    red\\u{202e}");
    }
}
