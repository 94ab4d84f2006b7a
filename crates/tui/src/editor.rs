//! Text that a person writes: messages, arguments being corrected, the words of a denial.
//!
//! The text, its cursor, undo and what was erased live in a `TextArea`. Its rows are laid out here (see `rows`), by
//! clusters instead of characters, so that the terminal's own cursor is where the next character will appear.

mod keys;
mod rows;
#[cfg(test)]
mod tests;

use std::cell::{Cell, Ref, RefCell};
use std::io;

use crossterm::event::KeyEvent;
use llm_do_core::visible_line;
use ratatui::buffer::{Buffer, CellWidth};
use ratatui::layout::{Position, Rect};
use ratatui_textarea::{CursorMove, TextArea};
use unicode_segmentation::UnicodeSegmentation;

use self::keys::{Action, EraseRange, Motion, action};
pub(crate) use self::rows::wrapped;
use self::rows::{EditorRow, Layout, byte_at, columns, first_cluster, last_cluster, shown};
use crate::Theme;
use crate::completion::word_before;
use crate::history::History;

/// How many edits can be undone.
const UNDO_STEPS: usize = 1_000;

/// What a key did to an editor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Edited {
    /// The key means nothing here, and is free for others.
    Nothing,
    /// The cursor moved, or could not move further.
    Moved,
    /// The text changed.
    Changed,
    /// The text, which is not blank, is to be sent; it is still there.
    Send,
}

/// A text with a cursor. It never holds control characters other than line ends and tabs.
#[derive(Debug, Clone)]
pub(crate) struct Editor {
    text: TextArea<'static>,
    placeholder: String,
    history: Option<History>,
    /// The column that Up and Down try to keep.
    goal: Option<usize>,
    drawn: Cell<Drawn>,
    layout: RefCell<Layout>,
}

/// How the text was drawn last: Up and Down follow the rows that the person sees.
#[derive(Debug, Clone, Copy)]
struct Drawn {
    width: usize,
    top: usize,
}

impl Editor {
    /// An empty editor, which shows the placeholder until something is written.
    pub(crate) fn new(placeholder: impl Into<String>) -> Self {
        let drawn = Cell::new(Drawn { width: 77, top: 0 });
        let (text, placeholder) = (area(vec![]), placeholder.into());
        Self { text, placeholder, history: None, goal: None, drawn, layout: RefCell::default() }
    }

    /// Lets Up and Down go through what was sent before.
    pub(crate) fn with_history(mut self, history: History) -> Self {
        self.history = Some(history);
        self
    }

    /// Returns the whole text.
    pub(crate) fn text(&self) -> String {
        self.text.lines().join("\n")
    }

    /// Whether nothing is written.
    pub(crate) fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// Whether there is nothing but space.
    pub(crate) fn is_blank(&self) -> bool {
        self.text.lines().iter().all(|line| line.trim().is_empty())
    }

    /// Replaces the text and puts the cursor at its end.
    pub(crate) fn set_text(&mut self, text: &str) {
        let erased = self.text.yank_text();
        self.text = area(clean(text).split('\n').map(str::to_owned).collect());
        self.text.set_yank_text(erased);
        self.text.move_cursor(CursorMove::Bottom);
        self.text.move_cursor(CursorMove::End);
        self.goal = None;
    }

    /// Takes the text out.
    pub(crate) fn take(&mut self) -> String {
        let text = self.text();
        self.set_text("");
        text
    }

    /// Adds what was sent to the history, where there is one.
    pub(crate) fn remember(&mut self, text: &str) -> io::Result<()> {
        self.history.as_mut().map_or(Ok(()), |history| history.add(text))
    }

    /// Inserts at the cursor, without control characters.
    pub(crate) fn insert(&mut self, text: &str) -> Edited {
        let changed = self.text.insert_str(clean(text));
        self.settle(changed)
    }

    /// Inserts what was pasted, however long. It never sends.
    pub(crate) fn paste(&mut self, text: &str) -> Edited {
        self.insert(text)
    }

    /// Returns the line and the characters of it that are before the cursor.
    pub(crate) fn cursor(&self) -> (usize, usize) {
        let cursor = self.text.cursor();
        (cursor.0, cursor.1)
    }

    /// Returns the word that ends at the cursor; one that begins with `@"` may hold spaces.
    pub(crate) fn word(&self) -> &str {
        word_before(self.before_cursor())
    }

    /// Puts something else in place of that word.
    pub(crate) fn replace_word(&mut self, with: &str) -> Edited {
        let length = self.word().chars().count();
        let erased = self.erase_left(length);
        let inserted = self.insert(with);
        if erased { Edited::Changed } else { inserted }
    }

    /// Takes a key.
    pub(crate) fn key(&mut self, key: KeyEvent) -> Edited {
        let Some(action) = action(key) else { return Edited::Nothing };
        let goal = self.goal.take();
        match action {
            Action::Type(c) => self.insert(c.encode_utf8(&mut [0; 4])),
            Action::Newline => self.insert("\n"),
            Action::Enter => self.enter(),
            Action::Go(Motion::Up) => self.up(goal),
            Action::Go(Motion::Down) => self.down(goal),
            Action::Go(motion) => self.move_to(motion),
            Action::Erase(_) if self.is_empty() => Edited::Nothing,
            Action::Erase(piece) => self.erase(piece),
            Action::Undo => {
                let changed = self.text.undo();
                self.settle(changed)
            }
            Action::Redo => {
                let changed = self.text.redo();
                self.settle(changed)
            }
            Action::Yank => {
                let changed = self.text.paste();
                self.settle(changed)
            }
        }
    }

    fn enter(&mut self) -> Edited {
        let slashes = self.before_cursor().bytes().rev().take_while(|byte| *byte == b'\\').count();
        if slashes % 2 == 1 {
            self.erase_left(1);
            return self.insert("\n");
        }
        if self.is_blank() { Edited::Nothing } else { Edited::Send }
    }

    fn move_to(&mut self, motion: Motion) -> Edited {
        match motion {
            Motion::Left => self.left(),
            Motion::Right => self.right(),
            Motion::WordLeft => self.text.move_cursor(CursorMove::WordBack),
            Motion::WordRight => self.text.move_cursor(CursorMove::WordForward),
            Motion::LineStart => self.text.move_cursor(CursorMove::Head),
            Motion::LineEnd => self.text.move_cursor(CursorMove::End),
            Motion::TextStart => self.text.move_cursor(CursorMove::Jump(0, 0)),
            Motion::TextEnd => {
                self.text.move_cursor(CursorMove::Bottom);
                self.text.move_cursor(CursorMove::End);
            }
            Motion::Up | Motion::Down => {}
        }
        self.snap(matches!(motion, Motion::WordLeft));
        Edited::Moved
    }

    fn left(&mut self) {
        let (row, column) = self.cursor();
        match last_cluster(self.before_cursor()) {
            Some(cluster) => self.go(row, column - cluster.chars().count()),
            None if row > 0 => self.go(row - 1, self.length_of(row - 1)),
            None => {}
        }
    }

    fn right(&mut self) {
        let (row, column) = self.cursor();
        match first_cluster(self.after_cursor()) {
            Some(cluster) => self.go(row, column + cluster.chars().count()),
            None if row + 1 < self.text.lines().len() => self.go(row + 1, 0),
            None => {}
        }
    }

    fn erase(&mut self, piece: EraseRange) -> Edited {
        let changed = match piece {
            EraseRange::Left => {
                let length = last_cluster(self.before_cursor()).map_or(0, |cluster| cluster.chars().count());
                if length > 0 { self.erase_left(length) } else { self.text.delete_newline() }
            }
            EraseRange::Right => {
                let length = first_cluster(self.after_cursor()).map_or(0, |cluster| cluster.chars().count());
                if length > 0 { self.erase_right(length) } else { self.text.delete_next_char() }
            }
            EraseRange::WordLeft => self.text.delete_word(),
            EraseRange::WordRight => self.text.delete_next_word(),
            EraseRange::ToLineStart => self.text.delete_line_by_head(),
            EraseRange::ToLineEnd => self.text.delete_line_by_end(),
        };
        self.settle(changed)
    }

    /// Erases so many characters before the cursor, all in its line.
    fn erase_left(&mut self, length: usize) -> bool {
        let (row, column) = self.cursor();
        self.go(row, column - length);
        self.erase_right(length)
    }

    /// Erases so many characters behind the cursor, all in its line. Ctrl-Y still inserts what it did before.
    fn erase_right(&mut self, length: usize) -> bool {
        let kept = self.text.yank_text();
        let changed = self.text.delete_str(length);
        self.text.set_yank_text(kept);
        changed
    }

    /// Goes one row up, and from the first one back in the history.
    fn up(&mut self, goal: Option<usize>) -> Edited {
        let rows = self.rows(self.drawn.get().width);
        let above = self.row_of_cursor(&rows).checked_sub(1).map(|above| rows[above]);
        drop(rows);
        match above {
            Some(above) => self.go_to_row(above, goal),
            None => self.recall(|history, draft| history.older(draft)),
        }
    }

    fn down(&mut self, goal: Option<usize>) -> Edited {
        let rows = self.rows(self.drawn.get().width);
        let below = rows.get(self.row_of_cursor(&rows) + 1).copied();
        drop(rows);
        match below {
            Some(below) => self.go_to_row(below, goal),
            None => self.recall(|history, _| history.newer()),
        }
    }

    fn recall(&mut self, step: impl FnOnce(&mut History, &str) -> Option<String>) -> Edited {
        let draft = self.text();
        let Some(history) = &mut self.history else { return Edited::Nothing };
        let Some(entry) = step(history, &draft) else { return Edited::Moved };
        self.set_text(&entry);
        Edited::Changed
    }

    fn go_to_row(&mut self, row: EditorRow, goal: Option<usize>) -> Edited {
        let goal = goal.unwrap_or_else(|| self.column_of_cursor());
        let line = &self.text.lines()[row.line];
        let byte = row.start + self.last_place(row).min(byte_at(&line[row.start..row.end], goal));
        let column = line[..byte].chars().count();
        self.go(row.line, column);
        self.goal = Some(goal);
        Edited::Moved
    }

    /// The end of a row that goes on below belongs to the row below.
    fn last_place(&self, row: EditorRow) -> usize {
        let line = &self.text.lines()[row.line];
        let piece = &line[row.start..row.end];
        if row.end == line.len() {
            return piece.len();
        }
        piece.len() - last_cluster(piece).map_or(0, str::len)
    }

    /// Puts the cursor at a place of the text. The `TextArea` jumps to places that a `u16` can name; farther ones are
    /// walked to, from the nearer end.
    fn go(&mut self, row: usize, column: usize) {
        let limit = usize::from(u16::MAX);
        if row <= limit && (self.cursor().0 != row || column <= limit) {
            self.text.move_cursor(CursorMove::Jump(narrow(row), narrow(column)));
        }
        while self.cursor().0 < row {
            self.text.move_cursor(CursorMove::Down);
        }
        while self.cursor().0 > row {
            self.text.move_cursor(CursorMove::Up);
        }
        if self.length_of(row) - column < self.cursor().1.abs_diff(column) {
            self.text.move_cursor(CursorMove::End);
        }
        self.walk(row, column);
    }

    /// Walks within a row. The `TextArea` leaves a row at marks without a width that begin or end it, so the walk stops
    /// there at the row's end.
    fn walk(&mut self, row: usize, column: usize) {
        while self.cursor().1 != column {
            let before = self.cursor();
            let forward = before.1 < column;
            self.text.move_cursor(if forward { CursorMove::Forward } else { CursorMove::Back });
            let here = self.cursor();
            if here.0 != row || here == before {
                if here.0 != row {
                    self.text.move_cursor(if forward { CursorMove::Up } else { CursorMove::Down });
                }
                self.text.move_cursor(if forward { CursorMove::End } else { CursorMove::Head });
                return;
            }
        }
    }

    fn length_of(&self, row: usize) -> usize {
        self.text.lines()[row].chars().count()
    }

    /// Leaves the cursor between clusters.
    fn settle(&mut self, changed: bool) -> Edited {
        self.snap(false);
        if changed { Edited::Changed } else { Edited::Moved }
    }

    fn snap(&mut self, back: bool) {
        let row = self.cursor().0;
        let line = &self.text.lines()[row];
        let at = self.before_cursor().len();
        if line.is_ascii() || at == line.len() {
            return;
        }
        let Some((start, cluster)) =
            line.grapheme_indices(true).find(|(start, cluster)| start + cluster.len() > at)
        else {
            return;
        };
        if start < at {
            let target = if back { start } else { start + cluster.len() };
            let column = line[..target].chars().count();
            self.go(row, column);
        }
    }

    fn before_cursor(&self) -> &str {
        self.around_cursor().0
    }

    fn after_cursor(&self) -> &str {
        self.around_cursor().1
    }

    fn around_cursor(&self) -> (&str, &str) {
        let (row, column) = self.cursor();
        let line = &self.text.lines()[row];
        let at = line.char_indices().nth(column).map_or(line.len(), |(at, _)| at);
        line.split_at(at)
    }

    fn rows(&self, width: usize) -> Ref<'_, [EditorRow]> {
        self.layout.borrow_mut().update(self.text.lines(), width);
        Ref::map(self.layout.borrow(), Layout::rows)
    }

    fn row_of_cursor(&self, rows: &[EditorRow]) -> usize {
        let (line, at) = (self.cursor().0, self.before_cursor().len());
        rows.partition_point(|row| (row.line, row.start) <= (line, at)).saturating_sub(1)
    }

    fn column_of_cursor(&self) -> usize {
        let rows = self.rows(self.drawn.get().width);
        let row = rows[self.row_of_cursor(&rows)];
        columns(&self.before_cursor()[row.start..])
    }
}

impl Editor {
    /// Returns how many rows the text needs at a width: at least one, at most so many.
    pub(crate) fn height(&self, width: u16, most: u16) -> u16 {
        let rows = self.rows(Columns::for_width(width).text).len();
        narrow(rows).clamp(1, most.max(1))
    }

    /// Draws the rows around the cursor, and returns where the terminal's cursor belongs.
    pub(crate) fn draw(&self, area: Rect, buffer: &mut Buffer, theme: Theme) -> Option<Position> {
        let area = area.intersection(buffer.area);
        if area.is_empty() {
            return None;
        }
        let widths = Columns::for_width(area.width);
        let rows = self.rows(widths.text);
        let cursor = self.row_of_cursor(&rows);
        let top = self.scroll(widths.text, usize::from(area.height), cursor, rows.len());
        for (y, (index, row)) in (area.y..area.bottom()).zip(rows.iter().enumerate().skip(top)) {
            let last = y + 1 == area.bottom() && index + 1 < rows.len();
            self.draw_mark(area, y, mark(index, top == index && top > 0, last), buffer, theme);
            self.draw_row(*row, area.x + widths.mark, y, area.right(), buffer);
        }
        if self.is_empty() {
            self.draw_placeholder(area, widths, buffer, theme);
        }
        let column = columns(&self.before_cursor()[rows[cursor].start..]);
        let x = area.x.saturating_add(widths.mark).saturating_add(narrow(column)).min(area.right() - 1);
        Some(Position::new(x, area.y + narrow(cursor - top)))
    }

    /// Moves the shown part as little as the cursor demands.
    fn scroll(&self, width: usize, height: usize, cursor: usize, rows: usize) -> usize {
        let top = self.drawn.get().top.min(rows.saturating_sub(height));
        let top = top.clamp((cursor + 1).saturating_sub(height), cursor);
        self.drawn.set(Drawn { width, top });
        top
    }

    fn draw_mark(&self, area: Rect, y: u16, mark: &str, buffer: &mut Buffer, theme: Theme) {
        let style = if mark == "> " { theme.accent() } else { theme.dim() };
        if Columns::for_width(area.width).mark > 0 {
            buffer.set_string(area.x, y, mark, style);
        }
    }

    fn draw_row(&self, row: EditorRow, mut x: u16, y: u16, right: u16, buffer: &mut Buffer) {
        for cluster in self.text.lines()[row.line][row.start..row.end].graphemes(true) {
            let shown = shown(cluster);
            let room = usize::from(right - x);
            // A wide sign in a single column, or a mark that needs a base.
            let fits = usize::from(shown.cell_width()) <= room.max(1) || shown.len() > cluster.len();
            let shown = if fits && shown.cell_width() > 0 { &*shown } else { "…" };
            x = buffer.set_stringn(x, y, shown, room, ratatui::style::Style::new()).0;
        }
    }

    fn draw_placeholder(&self, area: Rect, widths: Columns, buffer: &mut Buffer, theme: Theme) {
        let text = crate::wrap::fitted(&visible_line(&self.placeholder), widths.text);
        buffer.set_stringn(area.x + widths.mark, area.y, text, widths.text, theme.dim());
    }
}

/// How a width is shared: the mark, the text, and one column in which the cursor stands behind a full row.
#[derive(Debug, Clone, Copy)]
struct Columns {
    mark: u16,
    text: usize,
}

impl Columns {
    fn for_width(width: u16) -> Self {
        let mark = if width >= 6 { 2 } else { 0 };
        Self { mark, text: usize::from(width.saturating_sub(mark + 1)).max(1) }
    }
}

fn mark(index: usize, more_above: bool, more_below: bool) -> &'static str {
    match (more_above, more_below) {
        (true, true) => "↕ ",
        (true, false) => "↑ ",
        (false, true) => "↓ ",
        (false, false) if index == 0 => "> ",
        (false, false) => "  ",
    }
}

fn area(lines: Vec<String>) -> TextArea<'static> {
    let mut area = TextArea::new(lines);
    area.set_max_histories(UNDO_STEPS);
    area
}

/// Leaves out control characters; every kind of line end becomes the one.
fn clean(text: &str) -> String {
    let ends = text.replace("\r\n", "\n").replace('\r', "\n");
    ends.chars().filter(|c| !c.is_control() || matches!(c, '\n' | '\t')).collect()
}

fn narrow(number: usize) -> u16 {
    u16::try_from(number).unwrap_or(u16::MAX)
}
