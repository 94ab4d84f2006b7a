//! Fits text into columns.
//!
//! [`wrapped`] breaks styled prose between words, [`hard_wrapped`] breaks styled code wherever the row is full,
//! [`literal_rows`] does so without changing a byte, and [`fitted`] cuts text down to one row. Columns are counted by
//! grapheme cluster, as the screen does it, so that a wide character is never cut in half at the edge.
//!
//! Terminals disagree about emoji of several pictures: some draw a joined family in two columns, others draw each of its
//! members. A row that is wider than its terminal would break what is painted below it, so such a cluster is counted as
//! wide as its pictures are together. Where it is drawn narrower, the row is a little shorter than it could be. A style
//! that makes a picture wider is counted whether or not the terminal obeys it.
//!
//! This module does not decide what may be shown: its text has passed `llm_do_core::visible` or `llm_do_core::visible_prose`.

use ratatui::style::Style;
use ratatui::text::{Line, Span};
use unicode_segmentation::UnicodeSegmentation;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Replaces a character of two columns if there is only one.
const TOO_WIDE: &str = "\u{fffd}";
/// Makes one picture of two, where the terminal knows how.
const JOINER: char = '\u{200d}';

/// Wraps a styled line between its words.
///
/// The first row begins with `first`, the others with `rest`. White space at a break and at the end is dropped, other
/// white space stays; a word longer than a row is broken between its clusters. A prefix that leaves less than two
/// columns is shortened.
pub(crate) fn wrapped(
    line: &Line<'static>,
    width: u16,
    first: &[Span<'static>],
    rest: &[Span<'static>],
) -> Vec<Line<'static>> {
    let mut wrapper = WordWrapper::new(Rows::new(width, first, rest));
    for span in &line.spans {
        let style = line.style.patch(span.style);
        for run in runs(&span.content) {
            wrapper.add(run, style);
        }
    }
    wrapper.finish()
}

/// Wraps a styled line wherever a row is full and drops nothing.
pub(crate) fn hard_wrapped(
    line: &Line<'static>,
    width: u16,
    first: &[Span<'static>],
    rest: &[Span<'static>],
) -> Vec<Line<'static>> {
    let mut rows = Rows::new(width, first, rest);
    for span in &line.spans {
        rows.put_broken(&span.content, line.style.patch(span.style));
    }
    rows.finish()
}

/// Breaks literal text into rows without changing it: the rows of each of its lines, one after the other, are that
/// line.
///
/// A row is wider than `width` only if a single character is, and ends in a blank only if it holds nothing else or ends its
/// line.
pub(crate) fn literal_rows(text: &str, width: u16) -> Vec<String> {
    let width = usize::from(width.max(1));
    let mut rows = Vec::new();
    for mut line in text.split('\n') {
        loop {
            let (row, after) = line.split_at(literal_end(line, width));
            rows.push(row.to_owned());
            line = after;
            if line.is_empty() {
                break;
            }
        }
    }
    rows
}

/// Fits text into one row of at most so many columns; a text that is cut ends in `…`.
///
/// Line ends and tabs become spaces.
pub(crate) fn fitted(text: &str, width: usize) -> String {
    let text = text.replace(['\n', '\r', '\t'], " ");
    let (end, _) = fitting(&text, width);
    if end == text.len() {
        return text;
    }
    if width == 0 {
        return String::new();
    }
    let (end, _) = fitting(&text, width - 1);
    format!("{}…", text[..end].trim_end())
}

/// Fits text into one row of at most so many columns; a text that is too long loses its middle: names of models and
/// files differ at their ends.
pub(crate) fn fitted_in_middle(text: &str, width: usize) -> String {
    if columns(text) <= width {
        return text.to_owned();
    }
    let Some(room) = width.checked_sub(1) else { return String::new() };
    let (end, used) = fitting(text, room / 2);
    let clusters = text.grapheme_indices(true).rev();
    let mut begin = text.len();
    let mut left = room - used;
    for (index, cluster) in clusters {
        let Some(rest) = left.checked_sub(widest(cluster)) else { break };
        (left, begin) = (rest, index);
    }
    format!("{}…{}", &text[..end], &text[begin..])
}

/// Returns how many columns text takes.
pub(crate) fn columns(text: &str) -> usize {
    if text.is_ascii() { text.len() } else { text.graphemes(true).map(widest).sum() }
}

/// Returns how many columns a cluster takes in a terminal that draws it as wide as any does.
fn widest(cluster: &str) -> usize {
    let drawn = cluster.width();
    if !cluster.contains(is_disputed) {
        return drawn;
    }
    let apart = cluster.chars().filter_map(UnicodeWidthChar::width).sum();
    drawn.max(apart)
}

/// Characters of emoji that not every terminal supports: a joiner, the style of text, the colors of skin.
fn is_disputed(c: char) -> bool {
    matches!(c, JOINER | '\u{fe0e}' | '\u{1f3fb}'..='\u{1f3ff}')
}

/// Removes the characters about whose width terminals disagree: for text in columns.
pub(crate) fn unstyled(text: &str) -> String {
    text.replace([JOINER, '\u{fe0e}', '\u{fe0f}'], "")
}

/// Returns how many columns spans take.
pub(crate) fn columns_of(spans: &[Span<'_>]) -> usize {
    spans.iter().map(|span| columns(&span.content)).sum()
}

/// Returns the bytes and columns of the longest beginning, in whole clusters, that fits.
fn fitting(text: &str, room: usize) -> (usize, usize) {
    // A combining mark can belong to the last ASCII character, so the next one has to be ASCII too.
    let plain = text.bytes().take(room + 1).take_while(u8::is_ascii).count();
    if plain > room || plain == text.len() {
        return (plain.min(room), plain.min(room));
    }
    let (mut end, mut used) = (0, 0);
    for cluster in text.graphemes(true) {
        let columns = widest(cluster);
        if used + columns > room {
            break;
        }
        end += cluster.len();
        used += columns;
    }
    (end, used)
}

/// Returns where the first row of a line ends: at least one cluster is in it.
fn row_end(line: &str, width: usize) -> usize {
    let (end, _) = fitting(line, width);
    if end > 0 { end } else { first_cluster(line).len() }
}

/// The same for literal text. Blanks at a break begin the next row, where they can be seen.
fn literal_end(line: &str, width: usize) -> usize {
    let end = row_end(line, width);
    match line[..end].trim_end_matches(' ').len() {
        seen if seen > 0 && end < line.len() => seen,
        _ => end,
    }
}

fn first_cluster(text: &str) -> &str {
    text.graphemes(true).next().unwrap_or_default()
}

/// Splits text into runs of white space and runs of other characters.
fn runs(text: &str) -> impl Iterator<Item = &str> {
    let mut left = text;
    std::iter::from_fn(move || {
        let is_space = breaks(left.chars().next()?);
        let end = left.find(|c| breaks(c) != is_space).unwrap_or(left.len());
        let (run, after) = left.split_at(end);
        left = after;
        Some(run)
    })
}

/// Returns whether a row may end at this character: white space, unless it is non-breaking.
fn breaks(c: char) -> bool {
    c.is_whitespace() && !matches!(c, '\u{a0}' | '\u{2007}' | '\u{202f}')
}

/// Returns whether a wide character may not begin a row.
fn closes(cluster: &str) -> bool {
    cluster.starts_with([
        '、', '。', '，', '．', '：', '；', '！', '？', '）', '］', '｝', '」', '』', '】', '〉', '》', 'ー',
    ])
}

/// A part of a word or of the space before it.
struct Fragment<'a> {
    text: &'a str,
    style: Style,
}

/// Collects words and puts each where it fits.
struct WordWrapper<'a> {
    rows: Rows<'a>,
    space: Vec<Fragment<'a>>,
    space_columns: usize,
    word: Vec<Fragment<'a>>,
    word_columns: usize,
    /// Whether the last character was wide: scripts with such characters break between any two of them.
    after_wide: bool,
}

impl<'a> WordWrapper<'a> {
    fn new(rows: Rows<'a>) -> Self {
        Self {
            rows,
            space: Vec::new(),
            space_columns: 0,
            word: Vec::new(),
            word_columns: 0,
            after_wide: false,
        }
    }

    fn add(&mut self, run: &'a str, style: Style) {
        if run.starts_with(breaks) {
            self.settle();
            self.space_columns += columns(run);
            self.space.push(Fragment { text: run, style });
            self.after_wide = false;
        } else if run.is_ascii() {
            self.add_part(run, run.len(), style);
        } else {
            for cluster in run.graphemes(true) {
                self.add_part(cluster, widest(cluster), style);
            }
        }
    }

    fn add_part(&mut self, text: &'a str, columns: usize, style: Style) {
        let wide = columns >= 2 && first_cluster(text).len() == text.len();
        if (wide || self.after_wide) && !closes(text) {
            self.settle();
        }
        self.word_columns += columns;
        self.word.push(Fragment { text, style });
        self.after_wide = wide;
    }

    /// Puts the word, and the space before it unless the row breaks there.
    fn settle(&mut self) {
        if self.word.is_empty() {
            return;
        }
        if self.space_columns + self.word_columns <= self.rows.left() {
            for piece in self.space.drain(..) {
                self.rows.put(piece.text, piece.style);
            }
            self.rows.used += self.space_columns;
        } else if self.rows.used > 0 {
            self.rows.break_row();
        }
        self.put_word();
        self.space.clear();
        self.space_columns = 0;
    }

    fn put_word(&mut self) {
        let fits = self.word_columns <= self.rows.left();
        for piece in self.word.drain(..) {
            if fits {
                self.rows.put(piece.text, piece.style);
            } else {
                self.rows.put_broken(piece.text, piece.style);
            }
        }
        if fits {
            self.rows.used += self.word_columns;
        }
        self.word_columns = 0;
    }

    fn finish(mut self) -> Vec<Line<'static>> {
        self.settle();
        self.rows.finish()
    }
}

/// Rows that are filled one after the other.
struct Rows<'a> {
    width: usize,
    rest: &'a [Span<'static>],
    done: Vec<Line<'static>>,
    row: Vec<Span<'static>>,
    /// How many spans of the row are its prefix.
    prefix: usize,
    /// Columns of text in the row, and how many there may be.
    used: usize,
    room: usize,
}

impl<'a> Rows<'a> {
    fn new(width: u16, first: &[Span<'static>], rest: &'a [Span<'static>]) -> Self {
        let width = usize::from(width.max(1));
        let mut rows = Self { width, rest, done: Vec::new(), row: Vec::new(), prefix: 0, used: 0, room: 0 };
        rows.begin(first);
        rows
    }

    fn begin(&mut self, prefix: &[Span<'static>]) {
        let (row, columns) = shortened(prefix, self.width - self.width.min(2));
        self.prefix = row.len();
        self.row = row;
        self.used = 0;
        self.room = self.width - columns;
    }

    fn left(&self) -> usize {
        self.room - self.used
    }

    fn break_row(&mut self) {
        let row = std::mem::take(&mut self.row);
        self.done.push(Line::from(row));
        self.begin(self.rest);
    }

    /// Adds text that fits. The caller counts its columns.
    fn put(&mut self, text: &str, style: Style) {
        let (_, own) = self.row.split_at_mut(self.prefix);
        match own.last_mut() {
            Some(last) if last.style == style => last.content.to_mut().push_str(text),
            _ => self.row.push(Span::styled(text.to_owned(), style)),
        }
    }

    /// Adds text and begins a new row wherever one is full.
    fn put_broken(&mut self, mut text: &str, style: Style) {
        while !text.is_empty() {
            let (end, columns) = fitting(text, self.left());
            if end > 0 {
                self.put(&text[..end], style);
                self.used += columns;
                text = &text[end..];
            } else if self.used > 0 {
                self.break_row();
            } else {
                let cluster = first_cluster(text);
                self.put_too_wide(cluster, style);
                text = &text[cluster.len()..];
            }
        }
    }

    /// Adds a cluster that is wider than a row: joined emoji one by one, others as a replacement character.
    fn put_too_wide(&mut self, cluster: &str, style: Style) {
        if cluster.contains(JOINER) {
            return self.put_broken(&cluster.replace(JOINER, ""), style);
        }
        self.put(TOO_WIDE, style);
        self.used += 1;
    }

    fn finish(mut self) -> Vec<Line<'static>> {
        self.done.push(Line::from(self.row));
        self.done
    }
}

/// Cuts a prefix down to so many columns.
fn shortened(prefix: &[Span<'static>], room: usize) -> (Vec<Span<'static>>, usize) {
    let mut kept = Vec::with_capacity(prefix.len() + 1);
    let mut used = 0;
    for span in prefix {
        let (end, columns) = fitting(&span.content, room - used);
        used += columns;
        if end == span.content.len() {
            kept.push(span.clone());
        } else {
            kept.push(Span::styled(span.content[..end].to_owned(), span.style));
            break;
        }
    }
    (kept, used)
}

/// Returns text that is safe in a span: control characters are escaped, tabs are spaces.
pub(crate) fn plain(text: &str) -> String {
    llm_do_core::visible(&text.replace('\t', "    "))
}

/// The same for words of people and models, in which emoji stay whole.
pub(crate) fn prose(text: &str) -> String {
    llm_do_core::visible_prose(&text.replace('\t', "    "))
}

/// How long a rule is drawn. One over the whole width would be two rows after the window has become narrower.
pub(crate) fn rule_width(width: u16) -> u16 {
    width.min(72)
}

#[cfg(test)]
mod tests {
    use llm_do_testing::Chance;
    use ratatui::style::Stylize;

    use super::*;

    fn text_of(rows: &[Line<'_>]) -> Vec<String> {
        rows.iter().map(ToString::to_string).collect()
    }

    fn wrap(text: &str, width: u16) -> Vec<String> {
        text_of(&wrapped(&Line::from(text.to_owned()), width, &[], &[]))
    }

    #[test]
    fn words_go_to_the_next_row_and_the_space_between_is_dropped() {
        assert_eq!(wrap("one two  three", 7), ["one two", "three"]);
        assert_eq!(wrap("a  b   c", 80), ["a  b   c"]);
        assert_eq!(wrap("  kept at the start  ", 12), ["  kept at", "the start"]);
        assert_eq!(wrap("", 5), [""]);
    }

    #[test]
    fn a_long_word_begins_a_row_and_is_broken_where_it_is_full() {
        assert_eq!(wrap("see abcdefghij k", 4), ["see", "abcd", "efgh", "ij k"]);
    }

    #[test]
    fn spaces_that_hold_words_together_do_not_break() {
        assert_eq!(wrap("about 10\u{a0}km away", 10), ["about", "10\u{a0}km away"]);
    }

    #[test]
    fn wide_signs_break_between_each_other_and_never_straddle() {
        assert_eq!(wrap("漢字漢字漢字", 5), ["漢字", "漢字", "漢字"]);
        assert_eq!(wrap("abc 漢字。", 8), ["abc 漢", "字。"], "a closing sign stays with the one before it");
        assert_eq!(wrap("漢", 1), ["\u{fffd}"]);
    }

    #[test]
    fn clusters_of_several_signs_stay_whole() {
        let family = "👨\u{200d}👩\u{200d}👧";
        let families = format!("{family}{family}{family}");
        let pair = format!("{family}{family}");
        assert_eq!(wrap(&families, 12), [&pair, family], "counted as terminals draw it that know no joiner");
        assert_eq!(wrap(family, 4), ["👨👩", "👧"], "where it does not fit, its pictures do");
        assert_eq!(fitted(&pair, 8), format!("{family}…"));
        assert_eq!([columns("❤\u{fe0f}"), columns("👍🏽"), columns("🇩🇪")], [2, 4, 2]);
        assert_eq!(wrap("e\u{301}e\u{301}e\u{301}", 2), ["e\u{301}e\u{301}", "e\u{301}"]);
    }

    #[test]
    fn prefixes_stand_before_the_first_and_before_further_rows() {
        let line = Line::from("one two three".to_owned());
        let rows = wrapped(&line, 8, &["1. ".dim()], &["   ".into()]);
        assert_eq!(text_of(&rows), ["1. one", "   two", "   three"]);
    }

    #[test]
    fn a_prefix_as_wide_as_the_row_is_shortened() {
        let line = Line::from("ab".to_owned());
        assert_eq!(text_of(&wrapped(&line, 4, &["12345".into()], &["    ".into()])), ["12ab"]);
        assert_eq!(text_of(&wrapped(&line, 1, &["12345".into()], &["    ".into()])), ["a", "b"]);
    }

    #[test]
    fn styles_follow_their_words() {
        let line = Line::from(vec!["plain ".into(), "bo".bold(), "ld".italic(), " tail".into()]);
        let rows = wrapped(&line, 6, &[], &[]);
        assert_eq!(rows[0], Line::from("plain"));
        assert_eq!(rows[1], Line::from(vec!["bo".bold(), "ld".italic()]));
        assert_eq!(rows[2], Line::from("tail"));
    }

    #[test]
    fn code_keeps_its_spaces_over_a_break() {
        let line = Line::from("if  x  {".to_owned());
        assert_eq!(text_of(&hard_wrapped(&line, 4, &["|".into()], &["|".into()])), ["|if ", "| x ", "| {"]);
    }

    #[test]
    fn literal_rows_keep_every_line_end_and_blank() {
        assert_eq!(literal_rows("ab  cd\n\nx\n", 3), ["ab", "  c", "d", "", "x", ""]);
        assert_eq!(literal_rows("漢a", 1), ["漢", "a"]);
        assert_eq!(literal_rows("", 3), [""]);
    }

    #[test]
    fn names_keep_both_ends() {
        assert_eq!(fitted_in_middle("openai:gpt-5", 12), "openai:gpt-5");
        assert_eq!(fitted_in_middle("openai:gpt-5-mini", 13), "openai…5-mini");
        assert_eq!(fitted_in_middle("anthropic:漢字漢字", 10), "anth…字字".replace("字字", "漢字"));
        assert_eq!(fitted_in_middle("ab", 0), "");
        assert_eq!(fitted_in_middle("abc", 1), "…");
    }

    #[test]
    fn fitted_text_says_where_it_was_cut() {
        assert_eq!(fitted("hello", 5), "hello");
        assert_eq!(fitted("hello world", 7), "hello…");
        assert_eq!(fitted("漢字漢字", 5), "漢字…");
        assert_eq!(fitted("漢字漢字", 4), "漢…");
        assert_eq!(fitted("two\nlines", 20), "two lines");
        assert_eq!(
            (fitted("ab", 1), fitted("ab", 0), fitted("", 0)),
            ("…".to_owned(), String::new(), String::new())
        );
    }

    #[test]
    fn rows_fit_and_nothing_but_space_is_lost() {
        for seed in 0..2_000 {
            let mut chance = Chance::new(seed);
            let line = random_line(&mut chance);
            let width = chance.between(1, 24) as u16;
            let prefix = [Span::raw(" ".repeat(chance.below(6)))];
            let context = format!("seed {seed}, width {width}, {line:?}");
            let text = line.to_string();

            for rows in
                [wrapped(&line, width, &prefix, &prefix), hard_wrapped(&line, width, &prefix, &prefix)]
            {
                assert!(
                    rows.iter().all(|row| columns_of(&row.spans) <= usize::from(width)),
                    "{context}: {rows:?}"
                );
                let signs = |text: &str| unstyled(text).split_whitespace().collect::<String>();
                if width > 1 {
                    assert_eq!(signs(&text_of(&rows).concat()), signs(&text), "{context}");
                }
            }
            assert_eq!(literal_rows(&text, width).concat(), text, "{context}");
            assert!(columns(&fitted(&text, usize::from(width))) <= usize::from(width), "{context}");
        }
    }

    fn random_line(chance: &mut Chance) -> Line<'static> {
        let parts = [
            "a",
            "word",
            "longer-than-most",
            " ",
            "  ",
            "漢",
            "字。",
            "é",
            "e\u{301}",
            "🦀",
            "👨\u{200d}👩",
            "\u{301}",
            "\u{a0}",
        ];
        let spans = (0..chance.below(12)).map(|_| {
            let text: String = (0..chance.between(1, 4)).map(|_| *chance.one_of(&parts)).collect();
            if chance.percent(30) { text.bold() } else { Span::raw(text) }
        });
        Line::from(spans.collect::<Vec<_>>())
    }
}
