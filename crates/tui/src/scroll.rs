//! The part of a long text that is on the screen.

use std::ops::Range;

use crossterm::event::KeyCode;

/// Where a text is looked at, and how many of its rows are seen at once.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Scroll {
    top: usize,
    height: usize,
}

impl Scroll {
    /// Takes account of the room and of the length of the text.
    pub(crate) fn fit(&mut self, height: u16, rows: usize) {
        self.height = usize::from(height);
        self.top = self.top.min(self.last(rows));
    }

    /// Moves the text; says whether the key does that.
    pub(crate) fn key(&mut self, code: KeyCode, rows: usize) -> bool {
        let page = self.height.saturating_sub(1).max(1);
        let top = match code {
            KeyCode::Up | KeyCode::Char('k') => self.top.saturating_sub(1),
            KeyCode::Down | KeyCode::Char('j') => self.top + 1,
            KeyCode::PageUp => self.top.saturating_sub(page),
            KeyCode::PageDown | KeyCode::Char(' ') => self.top + page,
            KeyCode::Home => 0,
            KeyCode::End => self.last(rows),
            _ => return false,
        };
        self.top = top.min(self.last(rows));
        true
    }

    /// The first row on the screen.
    pub(crate) fn top(&self) -> usize {
        self.top
    }

    /// Goes back where the first row lies behind this one.
    pub(crate) fn stay_above(&mut self, row: usize) {
        self.top = self.top.min(row);
    }

    /// Goes back to the first row.
    pub(crate) fn rewind(&mut self) {
        self.top = 0;
    }

    /// The rows that are on the screen.
    pub(crate) fn range(&self, rows: usize) -> Range<usize> {
        let end = (self.top + self.height).min(rows);
        self.top.min(end)..end
    }

    /// The first row from which the end of the text is seen.
    fn last(&self, rows: usize) -> usize {
        rows.saturating_sub(self.height)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_read_page_by_page_and_never_past_its_end() {
        let mut scroll = Scroll::default();
        scroll.fit(4, 10);
        assert_eq!(scroll.range(10), 0..4);
        assert!(scroll.key(KeyCode::PageDown, 10));
        assert_eq!(scroll.range(10), 3..7);
        assert!(scroll.key(KeyCode::End, 10) && scroll.key(KeyCode::Down, 10));
        assert_eq!(scroll.range(10), 6..10);
        scroll.fit(20, 10);
        assert_eq!(scroll.range(10), 0..10);
        assert!(!scroll.key(KeyCode::Char('y'), 10));
    }
}
