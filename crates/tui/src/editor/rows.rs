//! Breaks text into the rows of a width, and finds columns in them.
//!
//! Everything counts in clusters, the signs that a person sees: one may be several characters and two columns wide.
//! Signs that would hide or turn text are written out, because an editor also shows what a model wrote.

use std::borrow::Cow;

use llm_do::visible;
use ratatui::buffer::CellWidth;
use unicode_segmentation::UnicodeSegmentation;

/// What one row shows: these bytes of that line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Row {
    pub(super) line: usize,
    pub(super) start: usize,
    pub(super) end: usize,
}

/// Breaks lines between words, and words that are wider than a row between clusters. There is at least one row.
pub(super) fn rows_of(lines: &[String], width: usize) -> Vec<Row> {
    let mut rows = Vec::with_capacity(lines.len());
    for (line, text) in lines.iter().enumerate() {
        break_line(text, width, |start, end| rows.push(Row { line, start, end }));
    }
    rows
}

/// Breaks one line for reading, without the spaces at which it is broken.
pub(crate) fn wrapped(text: &str, width: usize) -> Vec<&str> {
    let mut rows = Vec::new();
    break_line(text, width.max(1), |start, end| rows.push(text[start..end].trim_end()));
    rows
}

fn break_line(text: &str, width: usize, mut row: impl FnMut(usize, usize)) {
    let (mut start, mut used) = (0, 0);
    let mut after_space = 0;
    for (at, cluster) in text.grapheme_indices(true) {
        let wide = width_of(cluster);
        // The space that ends a full row needs no place of its own.
        let hangs = cluster == " " && used == width;
        if used > 0 && used + wide > width && !hangs {
            let end = if after_space > start { after_space } else { at };
            row(start, end);
            used = columns(&text[end..at]);
            start = end;
        }
        used += wide;
        if cluster == " " || cluster == "\t" {
            after_space = at + cluster.len();
        }
    }
    row(start, text.len());
}

/// How many columns a piece of a line takes.
pub(super) fn columns(text: &str) -> usize {
    text.graphemes(true).map(width_of).sum()
}

/// The byte of a piece of a line at which a column is reached, or the end of the piece.
pub(super) fn byte_at(text: &str, column: usize) -> usize {
    let mut used = 0;
    for (at, cluster) in text.grapheme_indices(true) {
        used += width_of(cluster);
        if used > column {
            return at;
        }
    }
    text.len()
}

/// The last cluster.
pub(super) fn last_cluster(text: &str) -> Option<&str> {
    text.graphemes(true).next_back()
}

/// The first cluster.
pub(super) fn first_cluster(text: &str) -> Option<&str> {
    text.graphemes(true).next()
}

/// How a cluster is shown.
pub(super) fn shown(cluster: &str) -> Cow<'_, str> {
    if cluster == "\t" {
        return Cow::Borrowed("    ");
    }
    if cluster.is_ascii() || is_emoji(cluster) {
        return Cow::Borrowed(cluster);
    }
    let written = visible(cluster);
    if written == cluster { Cow::Borrowed(cluster) } else { Cow::Owned(written) }
}

fn width_of(cluster: &str) -> usize {
    match cluster.as_bytes() {
        [b'\t'] => 4,
        [_] => 1,
        // Nothing is shown in no columns: such a sign could not be seen.
        _ => usize::from(shown(cluster).cell_width()).max(1),
    }
}

/// Emoji are joined and coloured by signs that hide nothing there, and would hide something elsewhere.
fn is_emoji(cluster: &str) -> bool {
    let joins = |sign: &char| matches!(sign, '\u{200d}' | '\u{fe0f}');
    let drawn: String = cluster.chars().filter(|sign| !joins(sign)).collect();
    drawn.len() < cluster.len()
        && cluster.cell_width() == 2
        && cluster.chars().count() <= 12
        && cluster.chars().next().is_some_and(|first| !joins(&first) && !first.is_alphanumeric())
        && visible(&drawn) == drawn
}

#[cfg(test)]
mod tests {
    use super::*;

    fn broken(text: &str, width: usize) -> Vec<String> {
        let lines = [text.to_owned()];
        rows_of(&lines, width).iter().map(|row| text[row.start..row.end].to_owned()).collect()
    }

    #[test]
    fn rows_end_between_words() {
        assert_eq!(broken("one two three", 8), ["one two ", "three"]);
        assert_eq!(broken("one two three", 7), ["one two ", "three"]);
        assert_eq!(broken("", 5), [""]);
    }

    #[test]
    fn a_word_wider_than_a_row_is_broken_anywhere() {
        assert_eq!(broken("abcdefgh", 3), ["abc", "def", "gh"]);
        assert_eq!(broken("a bcdefgh", 4), ["a ", "bcde", "fgh"]);
    }

    #[test]
    fn a_wide_sign_never_straddles_the_edge() {
        assert_eq!(broken("漢字漢字", 5), ["漢字", "漢字"]);
        assert_eq!(broken("漢字", 1), ["漢", "字"]);
    }

    #[test]
    fn signs_that_hide_are_written_out_and_emoji_stay_whole() {
        assert_eq!(shown("\u{202e}"), "\\u{202e}");
        assert_eq!(shown("a\u{200d}"), "a\\u{200d}");
        assert_eq!(shown("👨\u{200d}👩\u{200d}👧"), "👨\u{200d}👩\u{200d}👧");
        assert_eq!(shown("❤\u{fe0f}"), "❤\u{fe0f}");
        assert_eq!(columns("👨\u{200d}👩\u{200d}👧e\u{301}\t"), 2 + 1 + 4);
    }

    #[test]
    fn a_column_inside_a_wide_sign_means_its_beginning() {
        assert_eq!(byte_at("a漢b", 1), 1);
        assert_eq!(byte_at("a漢b", 2), 1);
        assert_eq!(byte_at("a漢b", 3), 4);
        assert_eq!(byte_at("a漢b", 9), 5);
    }
}
