//! Breaks text into the rows of a width, and finds columns in them.
//!
//! Everything counts in clusters, the characters as a person sees them: one may be several characters and two columns wide.
//! Characters that would hide or reverse text are escaped, because an editor also shows what a model wrote.

use std::borrow::Cow;
use std::ops::Range;

use llm_do_core::visible;
use ratatui::buffer::CellWidth;
use unicode_segmentation::UnicodeSegmentation;

/// What one row shows: these bytes of that line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct EditorRow {
    pub(super) line: usize,
    pub(super) start: usize,
    pub(super) end: usize,
}

/// The rows of a text, kept from one look at it to the next: only lines that changed are broken anew, so that a key in a
/// long draft costs little.
#[derive(Debug, Clone, Default)]
pub(super) struct Layout {
    lines: Vec<String>,
    width: usize,
    rows: Vec<EditorRow>,
}

impl Layout {
    /// The rows as they were made last.
    pub(super) fn rows(&self) -> &[EditorRow] {
        &self.rows
    }

    /// Takes account of the text and the width; returns which lines were broken anew.
    ///
    /// Lines break between words, and words that are wider than a row between clusters. Each line has at least one row.
    pub(super) fn update(&mut self, lines: &[String], width: usize) -> Range<usize> {
        if width != self.width {
            *self = Self { width, ..Self::default() };
        }
        let (old, new) = (self.lines.len(), lines.len());
        let same = |(one, other): &(&String, &String)| one == other;
        let before = self.lines.iter().zip(lines).take_while(same).count();
        let most = old.min(new) - before;
        let after = self.lines.iter().rev().zip(lines.iter().rev()).take(most).take_while(same).count();
        if before < old || before < new {
            let broken = broken_rows(&lines[before..new - after], before, width);
            self.put(before..old - after, new - after, broken);
            self.lines.splice(before..old - after, lines[before..new - after].iter().cloned());
        }
        before..new - after
    }

    /// Puts rows in the place of those of some lines; the line behind them is that one from now on.
    fn put(&mut self, lines: Range<usize>, next: usize, broken: Vec<EditorRow>) {
        let first_of = |line: usize| self.rows.partition_point(|row| row.line < line);
        let (start, end) = (first_of(lines.start), first_of(lines.end));
        for row in &mut self.rows[end..] {
            row.line = row.line - lines.end + next;
        }
        self.rows.splice(start..end, broken);
    }
}

fn broken_rows(lines: &[String], first: usize, width: usize) -> Vec<EditorRow> {
    let mut rows = Vec::with_capacity(lines.len());
    for (line, text) in (first..).zip(lines) {
        break_line(text, width, |start, end| rows.push(EditorRow { line, start, end }));
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
        // A cluster without columns could not be seen, so it counts as one.
        _ => usize::from(shown(cluster).cell_width()).max(1),
    }
}

/// Emoji contain joiners and modifiers, which hide nothing there but would hide something elsewhere.
fn is_emoji(cluster: &str) -> bool {
    let joins = |c: &char| matches!(c, '\u{200d}' | '\u{fe0f}');
    let drawn: String = cluster.chars().filter(|c| !joins(c)).collect();
    drawn.len() < cluster.len()
        && cluster.cell_width() == 2
        && cluster.chars().count() <= 12
        && cluster.chars().next().is_some_and(|first| !joins(&first) && !first.is_alphanumeric())
        && visible(&drawn) == drawn
}

#[cfg(test)]
mod tests {
    use llm_do_testing::Chance;

    use super::*;

    fn broken(text: &str, width: usize) -> Vec<String> {
        let lines = [text.to_owned()];
        broken_rows(&lines, 0, width).iter().map(|row| text[row.start..row.end].to_owned()).collect()
    }

    #[test]
    fn rows_end_between_words() {
        assert_eq!(broken("one two three", 8), ["one two ", "three"]);
        assert_eq!(broken("one two three", 7), ["one two ", "three"]);
        assert_eq!(broken("", 5), [""]);
    }

    #[test]
    fn a_key_in_a_long_text_breaks_one_line_anew() {
        let mut lines = vec!["a line of a long draft with some words".to_owned(); 10_000];
        let mut layout = Layout::default();
        assert_eq!(layout.update(&lines, 20), 0..10_000);
        lines[5_000].push('x');
        assert_eq!(layout.update(&lines, 20), 5_000..5_001);
        assert!(layout.update(&lines, 20).is_empty());
        lines.insert(9_999, "one more".to_owned());
        assert_eq!(layout.update(&lines, 20).len(), 1);
        assert_eq!(layout.update(&lines, 30), 0..10_001);
    }

    #[test]
    fn whatever_changes_the_rows_are_those_of_the_whole_text() {
        let seed = 8;
        let mut chance = Chance::new(seed);
        let mut lines = vec![String::new()];
        let mut layout = Layout::default();
        for step in 0..2_000 {
            let motion = chance.between(0, lines.len() - 1);
            let words = "漢字 and a word ".repeat(chance.between(0, 3));
            match chance.between(0, 3) {
                0 => lines.insert(motion, words),
                1 if lines.len() > 1 => drop(lines.remove(motion)),
                2 => lines[motion] = words,
                _ => lines[motion].push('x'),
            }
            let width = if step % 100 < 50 { 7 } else { 12 };
            layout.update(&lines, width);
            assert_eq!(layout.rows(), broken_rows(&lines, 0, width), "seed {seed}, step {step}");
        }
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
