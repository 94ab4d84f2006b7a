//! Paints below what the terminal already shows.
//!
//! Finished lines are printed once and belong to the terminal from then on: its scrollback, its selection, its search.
//! The live rows below them are overwritten in place. Only rows that changed are written.

use std::io::{self, Write};

use ratatui::buffer::Buffer;
use ratatui::layout::Position;
use ratatui::text::Line;

use super::encode::{TerminalRow, line_row, rows_of};

const BEGIN: &str = "\u{1b}[?2026h\u{1b}[?25l";
const END: &str = "\u{1b}[?2026l";
const SHOW_CURSOR: &str = "\u{1b}[?25h";
const CLEAR_BELOW: &str = "\u{1b}[J";
const CLEAR_TO_END: &str = "\u{1b}[K";

/// The live rows and the position of the cursor in them.
#[derive(Default)]
pub(crate) struct Inline {
    rows: Vec<TerminalRow>,
    cursor: Position,
    shown: Option<Position>,
}

impl Inline {
    /// Prints finished lines and paints the live rows below them.
    pub(crate) fn paint(
        &mut self,
        output: &mut impl Write,
        finished: &[Line<'static>],
        live: &Buffer,
        cursor: Option<Position>,
    ) -> io::Result<()> {
        let rows = rows_of(live);
        if finished.is_empty() && rows == self.rows && cursor == self.shown {
            return Ok(());
        }
        let mut text = String::from(BEGIN);
        if finished.is_empty() && rows.len() == self.rows.len() {
            self.repaint_changed(&mut text, &rows);
        } else {
            self.repaint_all(&mut text, finished, &rows);
        }
        self.rows = rows;
        self.move_cursor(&mut text, cursor);
        text.push_str(END);
        output.write_all(text.as_bytes())?;
        output.flush()
    }

    fn repaint_changed(&mut self, text: &mut String, rows: &[TerminalRow]) {
        for (index, (row, old)) in rows.iter().zip(&self.rows).enumerate() {
            if row != old {
                let index = u16::try_from(index).unwrap_or(u16::MAX);
                self.cursor = moved(text, self.cursor, Position { x: 0, y: index });
                text.push_str(&row.text);
                text.push_str(CLEAR_TO_END);
                self.cursor.x = row.width;
            }
        }
    }

    fn repaint_all(&mut self, text: &mut String, finished: &[Line<'static>], rows: &[TerminalRow]) {
        self.cursor = moved(text, self.cursor, Position::ORIGIN);
        // Row by row: some terminals keep a screen that is cleared as a whole in their scrollback.
        for line in finished {
            text.push_str(&line_row(line).text);
            text.push_str(CLEAR_TO_END);
            text.push_str("\r\n");
        }
        for (index, row) in rows.iter().enumerate() {
            if index > 0 {
                text.push_str("\r\n");
            }
            text.push_str(&row.text);
            text.push_str(CLEAR_TO_END);
            self.cursor = Position { x: row.width, y: u16::try_from(index).unwrap_or(u16::MAX) };
        }
        if self.rows.len() > finished.len() + rows.len() {
            text.push_str(CLEAR_BELOW);
        }
    }

    fn move_cursor(&mut self, text: &mut String, cursor: Option<Position>) {
        let last = u16::try_from(self.rows.len().saturating_sub(1)).unwrap_or(u16::MAX);
        let index = cursor.unwrap_or(Position { x: 0, y: last });
        self.cursor = moved(text, self.cursor, index);
        self.shown = cursor;
        if cursor.is_some() {
            text.push_str(SHOW_CURSOR);
        }
    }

    /// Takes account of a new width: the terminal has wrapped the rows anew, and everything is painted again.
    pub(crate) fn resize(&mut self, output: &mut impl Write, width: u16) -> io::Result<()> {
        let width = usize::from(width.max(1));
        let taken = |row: &TerminalRow| usize::from(row.width).div_ceil(width).max(1);
        let above: usize = self.rows.iter().take(self.cursor.y.into()).map(taken).sum();
        let above = above + usize::from(self.cursor.x) / width;
        let up = if above > 0 { format!("\u{1b}[{above}A") } else { String::new() };
        self.forget();
        // Not flushed: it goes out with the rows that are painted next, so that nobody sees the gap.
        output.write_all(format!("\r{up}{CLEAR_BELOW}").as_bytes())
    }

    /// How many live rows are above the cursor.
    pub(crate) fn above(&self) -> u16 {
        self.cursor.y
    }

    /// Takes the live rows away and leaves the cursor where they began.
    pub(crate) fn clear(&mut self, output: &mut impl Write) -> io::Result<()> {
        let mut text = String::new();
        moved(&mut text, self.cursor, Position::ORIGIN);
        self.forget();
        output.write_all(format!("{text}{CLEAR_BELOW}{SHOW_CURSOR}").as_bytes())?;
        output.flush()
    }

    fn forget(&mut self) {
        *self = Self::default();
    }
}

/// Moves the cursor within the live rows.
fn moved(text: &mut String, from: Position, to: Position) -> Position {
    use std::fmt::Write as _;
    text.push('\r');
    let _ = match to.y.cmp(&from.y) {
        std::cmp::Ordering::Less => write!(text, "\u{1b}[{}A", from.y - to.y),
        std::cmp::Ordering::Greater => write!(text, "\u{1b}[{}B", to.y - from.y),
        std::cmp::Ordering::Equal => Ok(()),
    };
    if to.x > 0 {
        let _ = write!(text, "\u{1b}[{}C", to.x);
    }
    to
}

#[cfg(test)]
mod tests {
    use ratatui::layout::Rect;

    use super::*;

    fn live(rows: &[&str]) -> Buffer {
        let height = u16::try_from(rows.len()).unwrap();
        let mut buffer = Buffer::empty(Rect::new(0, 0, 20, height));
        for (index, row) in (0..).zip(rows) {
            buffer.set_string(0, index, row, ratatui::style::Style::new());
        }
        buffer
    }

    fn finished(lines: &[&str]) -> Vec<Line<'static>> {
        lines.iter().map(|line| Line::from((*line).to_owned())).collect()
    }

    /// What a terminal of 20 columns and 5 rows shows after some paintings.
    struct Painted {
        parser: vt100::Parser,
        inline: Inline,
    }

    impl Painted {
        fn new() -> Self {
            let [rows, columns] = [5, 20].map(|number| std::num::NonZeroU16::new(number).unwrap());
            Self { parser: vt100::Parser::new(rows, columns, 100), inline: Inline::default() }
        }

        fn paint(&mut self, lines: &[&str], rows: &[&str]) -> usize {
            let mut bytes = Vec::new();
            self.inline.paint(&mut bytes, &finished(lines), &live(rows), None).unwrap();
            self.parser.process(&bytes);
            bytes.len()
        }

        fn screen(&self) -> String {
            self.parser.screen().contents()
        }
    }

    #[test]
    fn finished_lines_stay_above_live_rows() {
        let mut painted = Painted::new();
        painted.paint(&[], &["working", "status"]);
        painted.paint(&["one", "two"], &["working on", "status"]);
        assert_eq!(painted.screen(), "one\ntwo\nworking on\nstatus");
        painted.paint(&["three"], &["status"]);
        assert_eq!(painted.screen(), "one\ntwo\nthree\nstatus");
    }

    #[test]
    fn what_does_not_fit_goes_into_the_scrollback_of_the_terminal() {
        let mut painted = Painted::new();
        let lines: Vec<String> = (0..30).map(|number| format!("line {number}")).collect();
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        painted.paint(&[], &["status"]);
        painted.paint(&lines, &["live", "status"]);
        assert_eq!(painted.screen(), "line 27\nline 28\nline 29\nlive\nstatus");
        painted.parser.screen_mut().set_scrollback(27);
        assert!(painted.screen().starts_with("line 0\nline 1\n"), "{}", painted.screen());
    }

    #[test]
    fn unchanged_rows_are_not_written_again() {
        let mut painted = Painted::new();
        painted.paint(&[], &["one", "two", "three"]);
        assert_eq!(painted.paint(&[], &["one", "two", "three"]), 0);
        assert!(painted.paint(&[], &["one", "2", "three"]) < 60);
        assert_eq!(painted.screen(), "one\n2\nthree");
    }

    #[test]
    fn clearing_leaves_finished_lines_alone() {
        let mut painted = Painted::new();
        painted.paint(&["kept"], &["a", "b"]);
        let mut bytes = Vec::new();
        painted.inline.clear(&mut bytes).unwrap();
        painted.parser.process(&bytes);
        assert_eq!(painted.screen(), "kept");
        assert_eq!(painted.parser.screen().cursor_position(), (1, 0));
    }
}
