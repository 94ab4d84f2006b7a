//! Draws Markdown that is still being written.
//!
//! What cannot change any more (see [`Stable`]) is drawn once, and only the text behind it is drawn again as the
//! text grows. The one exception are link definitions (`[name]: url`): they reach the links of their own piece of the
//! text only, and a link before or after it is shown as it was written.
//!
//! The text before the last block, item or line of code is forgotten, so a frame costs the same however long a list
//! is. Where a single paragraph, table or item is huge, only its end is drawn until it is final.

use ratatui::text::Line;

use super::drawn;
use super::highlight::Highlights;
use super::page::Before;
use super::source::{LineIndex, SourcePart, line_end};
use super::stable::Stable;
use crate::Theme;

/// What is not final is drawn whole up to so many bytes.
const HUGE: usize = 32 * 1024;
/// The end that is drawn of more begins at a multiple of so many bytes, so that its rows do not shift all the time.
const STEP: usize = 16 * 1024;

/// A text that grows at its end.
#[derive(Default)]
pub(crate) struct MarkdownStream {
    /// What has not been forgotten.
    rest: String,
    /// Where its first block or item begins.
    cut: usize,
    /// Up to where it has been drawn for good.
    from: usize,
    /// Up to where its lines have ended. A line that has not ended can still become anything.
    complete: usize,
    /// Up to where it was searched for what is final.
    checked: usize,
    /// The state at its start.
    before: Before,
    /// How many of its first lines say how to read all others.
    head: usize,
    highlights: Highlights,
    /// Those of a huge block, of which only the end is drawn.
    end_highlights: Highlights,
}

impl MarkdownStream {
    /// Adds text at the end.
    pub(crate) fn push(&mut self, text: &str) {
        if let Some(end) = text.rfind('\n') {
            self.complete = self.rest.len() + end + 1;
        }
        self.rest.push_str(text);
    }

    /// Draws what has become final since the last time.
    ///
    /// All rows returned over time, and those of [`MarkdownStream::end`], are the rows of the whole text.
    pub(crate) fn finished(&mut self, width: u16, theme: Theme) -> Vec<Line<'static>> {
        if !self.is_search_due() {
            return Vec::new();
        }
        let stable = Stable::new(&self.rest[..self.complete]);
        self.head = stable.head;
        let mut rows = Vec::new();
        let mut end = stable.end;
        if stable.cut > self.cut {
            let (drawn, before) = self.draw_until(stable.cut, width, theme);
            rows = drawn;
            end -= self.forget_before(stable.cut, before);
        }
        if end > self.from {
            rows.extend(self.draw_until(end, width, theme).0);
            self.from = end;
            self.forget_code();
        }
        self.checked = self.complete;
        rows
    }

    /// Whether lines have ended since the last search; many, where a search takes long.
    fn is_search_due(&self) -> bool {
        let least = if self.rest.len() > HUGE { self.rest.len() / 16 } else { 1 };
        self.complete >= self.checked + least
    }

    /// Draws what is not finished, to be drawn over the next time.
    pub(crate) fn unfinished(&mut self, width: u16, theme: Theme) -> Vec<Line<'static>> {
        if self.rest.len() > HUGE {
            return self.huge_end(width, theme);
        }
        let part = SourcePart { from: self.from, ..SourcePart::whole(&self.rest) };
        drawn(part, self.before, width, theme, &mut self.highlights).0
    }

    /// Draws all that is left of a text that has ended.
    pub(crate) fn end(&mut self, width: u16, theme: Theme) -> Vec<Line<'static>> {
        let (rows, before) = self.draw_until(usize::MAX, width, theme);
        *self = Self { before, ..Self::default() };
        rows
    }

    fn draw_until(&mut self, until: usize, width: u16, theme: Theme) -> (Vec<Line<'static>>, Before) {
        let text = if until <= self.complete { &self.rest[..self.complete] } else { &self.rest };
        let part = SourcePart { text, from: self.from, until };
        drawn(part, self.before, width, theme, &mut self.highlights)
    }

    /// Forgets the text before a block that can be read without it; returns how much that was.
    fn forget_before(&mut self, cut: usize, before: Before) -> usize {
        // A blank line within a list is seen as a blank row before the next item.
        let blank = LineIndex::new(&self.rest).blank_before(cut).filter(|_| before.is_within());
        let start = blank.filter(|line| line.marks <= before.quotes()).map_or(cut, |line| line.start);
        self.rest.drain(..start);
        self.cut = cut - start;
        self.from = self.cut;
        self.complete -= start;
        self.before = before;
        self.highlights = Highlights::default();
        self.end_highlights = Highlights::default();
        start
    }

    /// Forgets the lines that were drawn of a block of code, but for its fence.
    fn forget_code(&mut self) {
        let begin = line_end(&self.rest, 0);
        if self.head != 1 || self.from <= begin {
            return;
        }
        let lines = &self.rest[begin..self.from];
        // A carriage return alone ends some lines and not others.
        if self.rest[..self.from].replace("\r\n", "\n").contains('\r') {
            return;
        }
        self.highlights.forget(0, lines.matches('\n').count());
        self.complete -= lines.len();
        self.rest.drain(begin..self.from);
        self.from = begin;
    }

    /// Draws the end of a huge block, as well as that can be done without its beginning.
    fn huge_end(&mut self, width: u16, theme: Theme) -> Vec<Line<'static>> {
        let head = (0..self.head).fold(0, |end, _| line_end(&self.rest, end));
        let start = self.end_start().max(head);
        let text = [&self.rest[..head], &self.rest[start..]].concat();
        drawn(SourcePart::whole(&text), self.before, width, theme, &mut self.end_highlights).0
    }

    /// Returns how many bytes have not been forgotten.
    #[cfg(test)]
    pub(super) fn kept(&self) -> usize {
        self.rest.len()
    }

    /// Returns where the end of a huge block begins: with a line, if there is one near.
    fn end_start(&self) -> usize {
        let step = self.rest.len() / STEP * STEP - STEP;
        let step = (step..).find(|offset| self.rest.is_char_boundary(*offset)).unwrap_or(self.from);
        match line_end(&self.rest, step) {
            line if line < step + STEP / 2 => line.max(self.from),
            _ => step.max(self.from),
        }
    }
}
