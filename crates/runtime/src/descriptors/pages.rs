//! Where the pages of a text begin.
//!
//! A page has at most so many characters. It ends after the last line end that lies in its second half; a page without
//! one there is full, and cut between two characters. [`Pager`] is the only code that decides this, for texts in memory and on the disk
//! alike. The starts are kept sparsely ([`PageMarks`]): a page is found from the mark before it.

use serde::Serialize;

/// How many bytes lie between two marks, at least. What is looked for is found by reading about this much.
pub(crate) const STRIDE: u64 = 16 * 1024;

/// A place between two characters of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Position {
    /// The bytes before it.
    pub byte: u64,
    /// The characters before it.
    pub character: u64,
    /// The number of the line that it lies in, from 1.
    pub line: u64,
}

impl Position {
    /// The beginning of a text.
    pub const START: Self = Self { byte: 0, character: 0, line: 1 };

    /// Goes over one character.
    pub(crate) fn pass(&mut self, character: char) {
        self.byte += character.len_utf8() as u64;
        self.character += 1;
        self.line += u64::from(character == '\n');
    }
}

/// Finds the pages of a text that arrives in pieces.
#[derive(Debug)]
pub(crate) struct Pager {
    size: u64,
    /// Where the current page begins.
    start: Position,
    /// What lies after the last line end within the current page.
    after_line: Option<Position>,
    /// How far the text has been looked at.
    pub(crate) at: Position,
}

impl Pager {
    /// Begins where a page begins.
    pub(crate) fn new(start: Position, size: u64) -> Self {
        Self { size: size.max(1), start, after_line: None, at: start }
    }

    /// Looks at more of the text, and names the starts of further pages. A page begins only where there is a
    /// character for it.
    pub(crate) fn take(&mut self, piece: &str, mut found: impl FnMut(Position)) {
        for &byte in piece.as_bytes() {
            if !is_continuation(byte) {
                if self.at.character - self.start.character == self.size {
                    let line = self.after_line.take().filter(|line| self.is_half_full(line));
                    self.start = line.unwrap_or(self.at);
                    found(self.start);
                }
                self.at.character += 1;
            }
            self.at.byte += 1;
            if byte == b'\n' {
                self.at.line += 1;
                self.after_line = Some(self.at);
            }
        }
    }
}

impl Pager {
    /// Returns whether the page would be at least half full if it ended there.
    fn is_half_full(&self, end: &Position) -> bool {
        (end.character - self.start.character) >= self.size.div_ceil(2)
    }
}

/// Returns whether a byte of UTF-8 goes on with a character.
fn is_continuation(byte: u8) -> bool {
    byte & 0b1100_0000 == 0b1000_0000
}

/// Returns where the pages of a text begin. An empty text has one page.
pub fn page_starts(text: &str, page_size: u64) -> Vec<Position> {
    let mut starts = vec![Position::START];
    Pager::new(Position::START, page_size).take(text, |start| starts.push(start));
    starts
}

/// The pages of one text at one page size: how many there are, and where some of them begin.
#[derive(Debug)]
pub(crate) struct PageMarks {
    pub(crate) size: u64,
    pub(crate) count: u64,
    /// The first page is always among them.
    marks: Vec<PageMark>,
}

/// The start of a page.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PageMark {
    /// The number of the page, from 1.
    pub(crate) page: u64,
    pub(crate) start: Position,
}

impl PageMarks {
    /// The one page that every text has.
    pub(crate) fn new(size: u64) -> Self {
        let first = PageMark { page: 1, start: Position::START };
        Self { size, count: 1, marks: vec![first] }
    }

    /// Adds the page that follows.
    pub(crate) fn add(&mut self, start: Position) {
        self.count += 1;
        if self.marks.last().is_none_or(|last| start.byte - last.start.byte >= STRIDE) {
            self.marks.push(PageMark { page: self.count, start });
        }
    }

    /// Returns the last mark that is not behind a page.
    pub(crate) fn before(&self, page: u64) -> PageMark {
        let after = self.marks.partition_point(|mark| mark.page <= page);
        let first = PageMark { page: 1, start: Position::START };
        after.checked_sub(1).and_then(|index| self.marks.get(index)).copied().unwrap_or(first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pages(text: &str, size: u64) -> Vec<&str> {
        let starts = page_starts(text, size);
        let ends = starts.iter().skip(1).map(|start| start.byte as usize).chain([text.len()]);
        starts.iter().zip(ends).map(|(start, end)| &text[start.byte as usize..end]).collect()
    }

    #[test]
    fn a_page_ends_after_the_last_line_that_fits() {
        assert_eq!(pages("one\ntwo\nthree\n", 10), ["one\ntwo\n", "three\n"]);
        assert_eq!(pages("one\ntwo\n", 4), ["one\n", "two\n"]);
    }

    #[test]
    fn a_line_that_is_too_long_is_cut_between_characters() {
        assert_eq!(pages("äöüß漢字🦀x", 3), ["äöü", "ß漢字", "🦀x"]);
        assert_eq!(pages("a\nbcdef\ng", 3), ["a\n", "bcd", "ef\n", "g"]);
    }

    #[test]
    fn a_line_end_in_the_first_half_of_a_page_does_not_end_it() {
        assert_eq!(pages("{\nabcdefghij\n}", 6), ["{\nabcd", "efghij", "\n}"]);
        assert_eq!(pages("abc\nd\nefgh", 6), ["abc\nd\n", "efgh"]);
    }

    #[test]
    fn an_empty_text_has_one_empty_page() {
        assert_eq!(pages("", 5), [""]);
    }

    #[test]
    fn a_text_that_just_fits_is_one_page() {
        assert_eq!(pages("abc", 3), ["abc"]);
        assert_eq!(pages("a\nb", 3), ["a\nb"]);
    }

    #[test]
    fn a_text_in_pieces_has_the_same_pages() {
        let text = "ab\ncdeé\nfgh\n\n\nijklmno";
        let mut found = vec![Position::START];
        let mut pager = Pager::new(Position::START, 4);
        for character in text.chars() {
            pager.take(character.encode_utf8(&mut [0; 4]), |start| found.push(start));
        }
        assert_eq!(found, page_starts(text, 4));
    }

    #[test]
    fn few_starts_are_kept() {
        let mut marks = PageMarks::new(1);
        let text = "x".repeat(100_000);
        Pager::new(Position::START, 1).take(&text, |start| marks.add(start));
        assert_eq!(marks.count, 100_000);
        assert_eq!(marks.marks.len(), 1 + 100_000 / STRIDE as usize);
        assert_eq!(marks.before(20_000).page, STRIDE + 1);
    }
}
