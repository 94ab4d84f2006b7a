//! Characters that show a person another command than the one that runs.

use llm_do_core::visible;

/// Returns whether a character cannot be seen, ends a line for some programs only, or turns text around.
///
/// Spaces of other widths and the marks that join letters and emoji are accepted within quotes, as names of files have
/// them, and refused elsewhere by [`unquote`](super::unquote).
pub(super) fn is_deceptive(c: char) -> bool {
    !c.is_ascii()
        && !is_odd_space(c)
        && !is_joiner(c)
        && visible(c.encode_utf8(&mut [0; 4])).starts_with('\\')
}

/// Returns whether a character is a joiner of letters or emoji, or says how an emoji is drawn.
pub(super) fn is_joiner(c: char) -> bool {
    matches!(c, '\u{200c}' | '\u{200d}' | '\u{fe00}'..='\u{fe0f}')
}

/// Returns whether a character looks like a space, but does not separate arguments.
pub(super) fn is_odd_space(c: char) -> bool {
    c.is_whitespace() && !c.is_ascii() && !matches!(c, '\u{85}' | '\u{2028}' | '\u{2029}')
}
