//! Finds out how much of a growing text cannot change any more.
//!
//! Blocks of Markdown follow each other line by line: once a later block has begun, in whatever quotes and items, no
//! further text changes those before it. The lines of a fenced block of code are final as they end.

use std::ops::Range;

use pulldown_cmark::{CodeBlockKind, Event, Tag};

use super::events;
use super::render::{is_block, is_block_end};
use super::source::{LineIndex, holds_marks_only};

/// How far a text of whole lines is final.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stable {
    /// Where the last block begins that can be parsed without the text before it: a block of the text or of quotes,
    /// or an item of a list there.
    pub(super) cut: usize,
    /// Up to where all blocks are final; not before `cut`.
    pub(super) end: usize,
    /// How many lines at `cut` say how to read those behind them: the fence of code, the header of a table.
    pub(super) head: usize,
}

impl Stable {
    pub(super) fn new(text: &str) -> Self {
        let mut search = StableSearch {
            text,
            lines: LineIndex::new(text),
            stable: Self::default(),
            open: Vec::new(),
            code: None,
        };
        for (event, range) in events(text) {
            match event {
                Event::Start(tag) if is_block(&tag) => {
                    search.begin(&tag, range);
                    search.open.push(Enclosing::from(&tag));
                }
                Event::End(tag) if is_block_end(tag) => {
                    search.open.pop();
                }
                Event::Rule => search.begin(&Tag::Paragraph, range),
                _ => {}
            }
        }
        search.finish()
    }
}

/// What encloses a block.
#[derive(PartialEq, Eq)]
enum Enclosing {
    Quote,
    List,
    Other,
}

impl From<&Tag<'_>> for Enclosing {
    fn from(tag: &Tag<'_>) -> Self {
        match tag {
            Tag::BlockQuote(_) => Self::Quote,
            Tag::List(_) => Self::List,
            _ => Self::Other,
        }
    }
}

struct StableSearch<'a> {
    text: &'a str,
    lines: LineIndex<'a>,
    stable: Stable,
    open: Vec<Enclosing>,
    /// The range of the last block, if it is fenced code.
    code: Option<Range<usize>>,
}

impl StableSearch<'_> {
    fn begin(&mut self, tag: &Tag<'_>, range: Range<usize>) {
        if matches!(tag, Tag::TableHead | Tag::TableRow | Tag::TableCell) {
            return;
        }
        let start = self.lines.start(range.start);
        self.stable.end = self.stable.end.max(start);
        if self.can_be_cut(&self.text[start..range.start]) {
            self.stable.cut = start;
            self.stable.head = 0;
        }
        let is_fenced = matches!(tag, Tag::CodeBlock(CodeBlockKind::Fenced(_)));
        if self.open.is_empty() {
            self.stable.head = if is_fenced { 1 } else { usize::from(matches!(tag, Tag::Table(_))) * 2 };
        }
        self.code = is_fenced.then_some(range);
    }

    /// Returns whether the text from the line of this block on is parsed the same without the text before it.
    fn can_be_cut(&self, before: &str) -> bool {
        let quotes = self.open.iter().take_while(|enclosing| **enclosing == Enclosing::Quote).count();
        matches!(self.open[quotes..], [] | [Enclosing::List])
            && holds_marks_only(before, |marks| marks == quotes)
    }

    fn finish(mut self) -> Stable {
        if let Some(code) = self.code.take() {
            self.stable.end = self.code_end(code).max(self.stable.end);
        }
        self.stable
    }

    /// Returns where the lines of code end, but for blank ones: what ends the block may take them away.
    fn code_end(&self, code: Range<usize>) -> usize {
        // A carriage return alone does not end a line of code.
        let next_line = |offset: usize| self.text[offset..].find('\n').map(|end| offset + end + 1);
        let Some(begin) = next_line(code.start) else { return 0 };
        let end = self.text[..code.end].rfind('\n').map_or(0, |end| end + 1);
        let Some(lines) = self.text.get(begin..end) else { return 0 };
        match lines.trim_end_matches([' ', '\t', '\r', '\n', '>']).len() {
            0 => 0,
            seen => next_line(begin + seen).unwrap_or(0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stable(text: &str) -> (usize, usize) {
        let stable = Stable::new(text);
        (stable.cut, stable.end)
    }

    #[test]
    fn a_block_is_final_when_the_next_one_has_begun() {
        assert_eq!(stable("para\n\nnext\n"), (6, 6));
        assert_eq!(stable("maybe a heading\n"), (0, 0));
        assert_eq!(stable("- a\n\n    code\n\nend\n"), (15, 15));
        assert_eq!(stable("a\n\n    code\n"), (3, 3), "the indent belongs to the code");
    }

    #[test]
    fn items_and_blocks_of_quotes_are_final_when_the_next_one_has_begun() {
        assert_eq!(stable("- a\n\n- b\n\n  c\n"), (5, 10), "an item cannot be cut");
        assert_eq!(stable("1. a\n2. b\nlazy\n"), (5, 5));
        assert_eq!(stable("- a\n  - b\n  - c\n"), (0, 10));
        assert_eq!(stable("> a\n>\n> b\n"), (6, 6));
        assert_eq!(stable("> a\nlazy\n"), (0, 0));
        assert_eq!(stable("> - a\n> - b\n"), (6, 6));
    }

    #[test]
    fn lines_of_fenced_code_are_final_when_they_end() {
        assert_eq!(stable("```\n# no heading\n\n- no list\n"), (0, 28));
        assert_eq!(stable("```\n"), (0, 0), "a block without lines has a row");
        assert_eq!(stable("```\na\n\n"), (0, 6));
        assert_eq!(stable("- ```\n  a\n"), (0, 10));
        assert_eq!(stable("    a\n    b\n"), (0, 0));
    }

    #[test]
    fn lines_that_say_how_to_read_the_others_are_counted() {
        let head = |text: &str| Stable::new(text).head;
        assert_eq!(
            [head("a\n\n```\nb\n"), head("|a|\n|-|\n|b|\n"), head("a\n"), head("- ```\n  a\n")],
            [1, 2, 0, 0]
        );
    }
}
