//! Draws tables: in boxes where the columns fit, as `header: value` lines where they do not.

use pulldown_cmark::Alignment;
use ratatui::style::Style;
use ratatui::text::{Line, Span};

use crate::Theme;
use crate::wrap::{columns_of, unstyled, wrapped};

/// A column is not made narrower than this, or than its text.
const MIN_COLUMN_WIDTH: usize = 6;

/// A table that is being read.
pub(super) struct MarkdownTable {
    alignments: Vec<Alignment>,
    /// The header first.
    rows: Vec<Vec<Line<'static>>>,
    row: Vec<Line<'static>>,
}

impl MarkdownTable {
    pub(super) fn new(alignments: Vec<Alignment>) -> Self {
        Self { alignments, rows: Vec::new(), row: Vec::new() }
    }

    /// Takes a cell. Its emoji are drawn as their plain or separate pictures, which are as wide in every terminal: no
    /// border is pushed away.
    pub(super) fn push_cell(&mut self, mut cell: Line<'static>) {
        for span in &mut cell.spans {
            span.content = unstyled(&span.content).into();
        }
        self.row.push(cell);
    }

    pub(super) fn end_row(&mut self) {
        self.rows.push(std::mem::take(&mut self.row));
    }

    /// Draws the table within a width.
    pub(super) fn rows(&self, width: u16, theme: Theme) -> Vec<Line<'static>> {
        match self.column_widths(usize::from(width)) {
            Some(widths) => Boxes { table: self, widths, border: theme.dim() }.rows(),
            None => self.records(width),
        }
    }

    /// Shares a width out to the columns, or finds it too small.
    fn column_widths(&self, width: usize) -> Option<Vec<usize>> {
        let borders = 3 * self.alignments.len() + 1;
        let room = width.checked_sub(borders)?;
        let natural = self.natural_widths();
        let least: usize = natural.iter().map(|&width| width.min(MIN_COLUMN_WIDTH)).sum();
        (least <= room).then(|| shared_out(&natural, room))
    }

    fn natural_widths(&self) -> Vec<usize> {
        let mut widths = vec![1; self.alignments.len()];
        for row in &self.rows {
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = columns_of(&cell.spans).max(*width);
            }
        }
        widths
    }

    /// Lists the rows one after the other, a line for each value. A table without rows shows its header.
    fn records(&self, width: u16) -> Vec<Line<'static>> {
        let Some((header, rows)) = self.rows.split_first() else { return Vec::new() };
        if rows.is_empty() {
            return header.iter().flat_map(|cell| wrapped(cell, width, &[], &[])).collect();
        }
        let mut lines = Vec::new();
        for row in rows {
            if !lines.is_empty() {
                lines.push(Line::default());
            }
            for (name, value) in header.iter().zip(row).filter(|(_, value)| !value.spans.is_empty()) {
                lines.extend(wrapped(&record(name, value), width, &[], &[Span::raw("  ")]));
            }
        }
        lines
    }
}

fn record(name: &Line<'static>, value: &Line<'static>) -> Line<'static> {
    let mut spans = name.spans.clone();
    if !spans.is_empty() {
        spans.push(Span::raw(": "));
    }
    spans.extend(value.spans.iter().cloned());
    Line::from(spans)
}

/// Cuts the widest columns down to one common width, so that all together fit.
fn shared_out(natural: &[usize], room: usize) -> Vec<usize> {
    let mut by_width: Vec<usize> = natural.to_vec();
    by_width.sort_unstable();
    let (mut room, mut left) = (room, by_width.len());
    let mut cap = usize::MAX;
    let mut spare = 0;
    for width in by_width {
        if width * left > room {
            (cap, spare) = (room / left, room % left);
            break;
        }
        room -= width;
        left -= 1;
    }
    let mut cut = |&width: &usize| {
        if width <= cap {
            return width;
        }
        let extra = usize::from(spare > 0);
        spare -= extra;
        cap + extra
    };
    natural.iter().map(&mut cut).collect()
}

/// A table with its columns measured.
struct Boxes<'a> {
    table: &'a MarkdownTable,
    widths: Vec<usize>,
    border: Style,
}

impl Boxes<'_> {
    fn rows(&self) -> Vec<Line<'static>> {
        let rows: Vec<Vec<Line<'static>>> = self.table.rows.iter().map(|row| self.row(row)).collect();
        // Where rows take several lines, only rules tell where the next one begins.
        let ruled = rows.iter().skip(1).any(|lines| lines.len() > 1);
        let count = rows.len();
        let mut drawn = vec![self.rule("┌─", "─┬─", "─┐")];
        for (index, lines) in rows.into_iter().enumerate() {
            drawn.extend(lines);
            if index + 1 < count && (index == 0 || ruled) {
                drawn.push(self.rule("├─", "─┼─", "─┤"));
            }
        }
        drawn.push(self.rule("└─", "─┴─", "─┘"));
        drawn
    }

    fn rule(&self, left: &str, between: &str, right: &str) -> Line<'static> {
        let columns: Vec<String> = self.widths.iter().map(|&width| "─".repeat(width)).collect();
        Line::styled(format!("{left}{}{right}", columns.join(between)), self.border)
    }

    /// Draws a row, with as many lines as its longest cell.
    fn row(&self, cells: &[Line<'static>]) -> Vec<Line<'static>> {
        let mut columns: Vec<_> =
            self.widths.iter().zip(cells).map(|(&width, cell)| cell_rows(cell, width)).collect();
        columns.resize(self.widths.len(), Vec::new());
        let height = columns.iter().map(Vec::len).max().unwrap_or(1);
        (0..height).map(|line| self.line(&mut columns, line)).collect()
    }

    fn line(&self, columns: &mut [Vec<Line<'static>>], line: usize) -> Line<'static> {
        let mut spans = vec![self.border("│ ")];
        for (index, (column, &width)) in columns.iter_mut().zip(&self.widths).enumerate() {
            if index > 0 {
                spans.push(self.border(" │ "));
            }
            let content = column.get_mut(line).map(std::mem::take).unwrap_or_default();
            let alignment = self.table.alignments.get(index).copied().unwrap_or(Alignment::None);
            spans.extend(aligned(content, width, alignment));
        }
        spans.push(self.border(" │"));
        Line::from(spans)
    }

    fn border(&self, text: &'static str) -> Span<'static> {
        Span::styled(text, self.border)
    }
}

fn cell_rows(cell: &Line<'static>, width: usize) -> Vec<Line<'static>> {
    wrapped(cell, u16::try_from(width).unwrap_or(u16::MAX), &[], &[])
}

/// Fills a cell with spaces up to its width.
fn aligned(content: Line<'static>, width: usize, alignment: Alignment) -> Vec<Span<'static>> {
    let space = width.saturating_sub(columns_of(&content.spans));
    let before = match alignment {
        Alignment::None | Alignment::Left => 0,
        Alignment::Center => space / 2,
        Alignment::Right => space,
    };
    let mut spans = Vec::with_capacity(content.spans.len() + 2);
    spans.extend((before > 0).then(|| Span::raw(" ".repeat(before))));
    spans.extend(content.spans);
    spans.extend((space > before).then(|| Span::raw(" ".repeat(space - before))));
    spans
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn narrow_columns_keep_their_width_and_wide_ones_share_the_rest() {
        assert_eq!(shared_out(&[3, 40, 60], 100), [3, 37 + 3, 57]);
        assert_eq!(shared_out(&[3, 40, 60], 200), [3, 40, 60]);
        assert_eq!(shared_out(&[3, 40, 60], 44), [3, 21, 20]);
    }
}
