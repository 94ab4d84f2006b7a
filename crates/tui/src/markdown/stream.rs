//! Draws Markdown that is still being written.
//!
//! Blocks of Markdown follow each other line by line: once a later block has begun, no further text changes those
//! before it. So what stands before the last block is finished and can be drawn for good, and only the last block is
//! drawn again as it grows. The one exception are link definitions (`[name]: url`): they reach the links of their own
//! piece of the text only, and a link before or after it is shown as it was written.

use pulldown_cmark::Event;
use ratatui::text::Line;

use super::highlight::Highlights;
use super::{drawn, parser};
use crate::Theme;

/// A text that grows at its end.
#[derive(Default)]
pub(crate) struct Stream {
    /// What has not been drawn for good.
    rest: String,
    /// How much of it is known to hold no finished block.
    checked: usize,
    /// Whether any row has been drawn for good.
    begun: bool,
    highlights: Highlights,
}

impl Stream {
    /// Adds text at the end.
    pub(crate) fn push(&mut self, text: &str) {
        self.rest.push_str(text);
    }

    /// Draws the blocks that were finished since the last time.
    ///
    /// All rows returned over time, and those of [`Stream::end`], are the rows of the whole text.
    pub(crate) fn finished(&mut self, width: u16, theme: Theme) -> Vec<Line<'static>> {
        let complete = complete_lines(&self.rest);
        if complete == self.checked {
            return Vec::new();
        }
        let end = stable_end(&self.rest);
        self.checked = complete - end;
        self.draw_up_to(end, width, theme)
    }

    /// Draws what is not finished, to be drawn over the next time.
    pub(crate) fn unfinished(&mut self, width: u16, theme: Theme) -> Vec<Line<'static>> {
        let rows = drawn(&self.rest, width, theme, &mut self.highlights);
        after(self.begun, rows)
    }

    /// Draws all that is left of a text that has ended.
    pub(crate) fn end(&mut self, width: u16, theme: Theme) -> Vec<Line<'static>> {
        self.checked = 0;
        self.draw_up_to(self.rest.len(), width, theme)
    }

    fn draw_up_to(&mut self, end: usize, width: u16, theme: Theme) -> Vec<Line<'static>> {
        let rows = drawn(&self.rest[..end], width, theme, &mut self.highlights);
        self.rest.drain(..end);
        let rows = after(self.begun, rows);
        self.begun |= !rows.is_empty();
        rows
    }
}

/// Puts a blank row before rows that follow others.
fn after(begun: bool, mut rows: Vec<Line<'static>>) -> Vec<Line<'static>> {
    if begun && !rows.is_empty() {
        rows.insert(0, Line::default());
    }
    rows
}

/// Returns up to where a growing text consists of finished top-level blocks: where its last block begins.
///
/// Drawing what stands before and what stands behind, with a blank row between, is drawing all at once. The end never
/// decreases as text is added.
pub(super) fn stable_end(text: &str) -> usize {
    // A line that has not ended can still become anything.
    let complete = &text[..complete_lines(text)];
    let mut depth = 0;
    let mut end = 0;
    for (event, range) in parser(complete).into_offset_iter() {
        if depth == 0 {
            end = line_start(complete, range.start).unwrap_or(end);
        }
        match event {
            Event::Start(_) => depth += 1,
            Event::End(_) => depth -= 1,
            _ => {}
        }
    }
    end
}

fn complete_lines(text: &str) -> usize {
    text.rfind('\n').map_or(0, |end| end + 1)
}

/// Returns where the line of a block begins, if nothing but white space stands before it.
fn line_start(text: &str, place: usize) -> Option<usize> {
    let before = text[..place].trim_end_matches([' ', '\t']);
    (before.is_empty() || before.ends_with('\n')).then_some(before.len())
}
