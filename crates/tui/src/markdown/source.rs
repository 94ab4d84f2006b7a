//! The lines of a text, and the part of it that is to be drawn.

use std::ops::Range;

/// The blocks of a text that begin within a range. Those before it have been drawn.
///
/// Both ends are the beginnings of lines. A fenced block of code may have been drawn in part: up to the line at `from`.
#[derive(Clone, Copy)]
pub(super) struct SourcePart<'a> {
    pub(super) text: &'a str,
    pub(super) from: usize,
    pub(super) until: usize,
}

impl<'a> SourcePart<'a> {
    pub(super) fn whole(text: &'a str) -> Self {
        Self { text, from: 0, until: usize::MAX }
    }

    /// Splits the literal text of a range into what has been drawn and what is to be drawn.
    pub(super) fn split<'b>(&self, literal: &'b str, range: &Range<usize>) -> (&'b str, &'b str) {
        if range.end <= self.from {
            return (literal, "");
        }
        // Text that differs from its source is a line end, or the spaces of a tab.
        if literal.len() != range.len() {
            return ("", literal);
        }
        let end = self.until.min(range.end) - range.start;
        let literal = literal.get(..end).unwrap_or(literal);
        literal.split_at_checked(self.from.saturating_sub(range.start)).unwrap_or(("", literal))
    }
}

/// Returns where an item or list begins that the parser says to begin here.
///
/// The parser goes back from the mark by as many bytes as it is indented by columns. If there is a tab, that is
/// the end of the line before.
pub(super) fn item_start(text: &str, said: usize) -> usize {
    said + usize::from(matches!(text.as_bytes().get(said), Some(b'\n' | b'\r')))
}

/// Returns where the line of an offset begins.
pub(super) fn line_start(text: &str, offset: usize) -> usize {
    text[..offset].rfind(['\n', '\r']).map_or(0, |end| end + 1)
}

/// Returns where the line of an offset ends: behind its line end, if it has one.
pub(super) fn line_end(text: &str, offset: usize) -> usize {
    let Some(end) = text[offset..].find(['\n', '\r']).map(|end| offset + end) else { return text.len() };
    end + if text[end..].starts_with("\r\n") { 2 } else { 1 }
}

/// Finds the lines of offsets that mostly follow each other, without reading long lines again and again.
pub(super) struct LineIndex<'a> {
    text: &'a str,
    /// The last offset, where its line begins, and the blank line before that.
    last: (usize, usize, Option<BlankLine>),
}

/// A line with nothing in it but marks of quotes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct BlankLine {
    pub(super) start: usize,
    pub(super) marks: usize,
}

impl<'a> LineIndex<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self { text, last: (0, 0, None) }
    }

    /// Returns where the line of an offset begins.
    pub(super) fn start(&mut self, offset: usize) -> usize {
        let last = self.last.0;
        let after = if last <= offset { last } else { 0 };
        match self.text[after..offset].rfind(['\n', '\r']) {
            Some(end) => self.enter(offset, after + end + 1),
            None if after == last => self.last.0 = offset,
            None => self.enter(offset, 0),
        }
        self.last.1
    }

    /// Returns the line before the line of an offset, if it is blank.
    pub(super) fn blank_before(&mut self, offset: usize) -> Option<BlankLine> {
        self.start(offset);
        self.last.2
    }

    fn enter(&mut self, offset: usize, start: usize) {
        self.last = (offset, start, blank_line(&self.text[..start]));
    }
}

/// Returns the last line of a text, if it is blank.
fn blank_line(text: &str) -> Option<BlankLine> {
    let line = text.strip_suffix("\r\n").or_else(|| text.strip_suffix(['\n', '\r']))?;
    let start = line_start(line, line.len());
    let marks = line[start..].matches('>').count();
    holds_marks_only(&line[start..], |_| true).then_some(BlankLine { start, marks })
}

/// Whether a line, or its beginning, consists of white space and as many marks of quotes as wanted.
pub(super) fn holds_marks_only(line: &str, wanted: impl Fn(usize) -> bool) -> bool {
    line.bytes().all(|c| matches!(c, b' ' | b'\t' | b'>')) && wanted(line.matches('>').count())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_end_in_all_ways() {
        let text = "a\nb\r\nc\rd";
        let ends: Vec<usize> = (0..text.len()).map(|offset| line_end(text, offset)).collect();
        assert_eq!(ends, [2, 2, 5, 5, 5, 7, 7, 8]);
        assert_eq!([0, 2, 5, 7].map(|offset| line_start(text, offset)), [0, 2, 5, 7]);
    }

    #[test]
    fn an_item_begins_in_the_line_of_its_mark() {
        assert_eq!(item_start("- a\n\t- b", 3), 4);
        assert_eq!(item_start("- a\n  - b", 4), 4);
        assert_eq!(item_start("-", 0), 0);
    }

    #[test]
    fn a_line_with_the_marks_of_its_quotes_is_blank() {
        let blank = |text: &str| LineIndex::new(text).blank_before(text.len() - 1);
        assert_eq!(blank("a\n\nb"), Some(BlankLine { start: 2, marks: 0 }));
        assert_eq!(blank("a\n \t\r\n  b"), Some(BlankLine { start: 2, marks: 0 }));
        assert_eq!(blank("> a\n>\n> b"), Some(BlankLine { start: 4, marks: 1 }));
        assert_eq!([blank("a\nb"), blank("b")], [None, None]);
    }

    #[test]
    fn lines_are_found_in_any_order() {
        let text = "a\n\nbc\r\n\r\nd\re";
        let mut lines = LineIndex::new(text);
        for offset in [0, 4, 3, 5, 9, 11, 2, 1, 0, 11, 10] {
            assert_eq!(lines.start(offset), line_start(text, offset), "{offset}");
            assert_eq!(
                lines.blank_before(offset).is_some(),
                [3, 9].contains(&line_start(text, offset)),
                "{offset}"
            );
        }
    }

    #[test]
    fn literal_text_is_split_where_it_was_drawn() {
        let part = SourcePart { text: "```\na\nb\nc\n", from: 6, until: 8 };
        assert_eq!(part.split("a\nb\nc\n", &(4..10)), ("a\n", "b\n"));
        assert_eq!(part.split("a\n", &(4..6)), ("a\n", ""));
        assert_eq!(part.split("\n", &(7..9)), ("", "\n"));
    }
}
