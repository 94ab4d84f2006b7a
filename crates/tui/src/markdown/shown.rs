//! Makes text of models visible: nothing in it is obeyed, nothing hides.

use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

const EMOJI_STYLE: char = '\u{fe0f}';
const JOINER: char = '\u{200d}';

/// Returns text as it may stand in a span: control, direction and invisible signs are written out, tabs are spaces.
///
/// Emoji are the exception. Terminals disagree on the width of those that are joined or restyled by an invisible sign,
/// so these are drawn without it, as their plain or separate pictures.
pub(super) fn shown(text: &str) -> String {
    let spaced = text.replace('\t', "    ");
    if spaced.contains([EMOJI_STYLE, JOINER]) {
        return spaced.graphemes(true).map(shown_cluster).collect();
    }
    llm_do::visible_prose(&spaced)
}

fn shown_cluster(cluster: &str) -> String {
    if is_emoji(cluster) {
        llm_do::visible_prose(&cluster.replace([EMOJI_STYLE, JOINER], ""))
    } else {
        llm_do::visible_prose(cluster)
    }
}

/// Whether an invisible sign of a cluster belongs there: between pictures, or after a sign that has a picture.
fn is_emoji(cluster: &str) -> bool {
    let mut signs = cluster.chars();
    let is_picture = signs.next().is_some_and(|sign| !sign.is_alphanumeric() && !sign.is_ascii());
    is_picture && cluster.width() == 2 && !cluster.ends_with(JOINER)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn emoji_are_drawn_as_pictures_that_every_terminal_knows() {
        assert_eq!(shown("⚠\u{fe0f} careful"), "⚠ careful");
        assert_eq!(shown("👨\u{200d}👩\u{200d}👧"), "👨👩👧");
        assert_eq!(shown("👍🏽 🇩🇪"), "👍🏽 🇩🇪");
    }

    #[test]
    fn invisible_signs_elsewhere_are_written_out() {
        assert_eq!(shown("pay\u{200d}pal"), "pay\\u{200d}pal");
        assert_eq!(shown("a\u{fe0f}b"), "a\\u{fe0f}b");
        assert_eq!(shown("漢\u{fe0f}👍\u{200d}x"), "漢\\u{fe0f}👍\\u{200d}x");
        assert_eq!(shown("\u{1b}[31m\tred\u{202e}"), "\\u{1b}[31m    red\\u{202e}");
    }
}
