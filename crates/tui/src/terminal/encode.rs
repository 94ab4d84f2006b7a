//! Styled text as the bytes that a terminal understands.

use std::fmt::Write as _;

use ratatui::buffer::Buffer;
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::Line;
use unicode_width::UnicodeWidthStr;

const PLAIN: &str = "\u{1b}[0m";

/// One row, ready to be written.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct TerminalRow {
    pub(crate) text: String,
    /// How many columns it takes.
    pub(crate) width: u16,
}

/// The rows of a buffer, without the blanks at their ends.
pub(crate) fn rows_of(buffer: &Buffer) -> Vec<TerminalRow> {
    (buffer.area.top()..buffer.area.bottom()).map(|y| buffer_row(buffer, y)).collect()
}

fn buffer_row(buffer: &Buffer, y: u16) -> TerminalRow {
    let mut pen = Pen::default();
    let mut skipped = 0;
    for x in buffer.area.left()..buffer.area.right() {
        if skipped > 0 {
            skipped -= 1;
            continue;
        }
        let Some(cell) = buffer.cell((x, y)) else { break };
        let symbol = cell.symbol();
        skipped = symbol.width().saturating_sub(1);
        pen.write(symbol, cell.style());
    }
    pen.finish()
}

/// A finished line.
pub(crate) fn line_row(line: &Line<'_>) -> TerminalRow {
    let mut pen = Pen::default();
    for span in &line.spans {
        pen.write(&span.content, line.style.patch(span.style));
    }
    pen.finish()
}

/// Writes text and changes of style.
#[derive(Default)]
struct Pen {
    row: TerminalRow,
    style: Style,
    /// Blanks that are written only if something follows.
    blanks: usize,
}

impl Pen {
    fn write(&mut self, text: &str, style: Style) {
        let style = relevant(style);
        if text.chars().all(|c| c == ' ') && is_bare(style) {
            self.blanks += text.len();
            return;
        }
        let blanks = std::mem::take(&mut self.blanks);
        if blanks > 0 {
            self.change(Style::new());
            self.row.text.extend(std::iter::repeat_n(' ', blanks));
        }
        self.change(style);
        self.row.text.push_str(text);
        let width = blanks + text.width();
        self.row.width = self.row.width.saturating_add(u16::try_from(width).unwrap_or(u16::MAX));
    }

    fn change(&mut self, style: Style) {
        if style != self.style {
            self.row.text.push_str(PLAIN);
            encode_style(&mut self.row.text, style);
            self.style = style;
        }
    }

    fn finish(mut self) -> TerminalRow {
        self.change(Style::new());
        self.row
    }
}

/// The style without what says nothing.
fn relevant(style: Style) -> Style {
    let set = |color: Option<Color>| color.filter(|color| *color != Color::Reset);
    let mut plain = Style::new().add_modifier(style.add_modifier);
    plain.fg = set(style.fg);
    plain.bg = set(style.bg);
    plain
}

/// Returns whether a blank in this style cannot be seen.
fn is_bare(style: Style) -> bool {
    style.bg.is_none()
        && !style.add_modifier.intersects(Modifier::REVERSED | Modifier::UNDERLINED | Modifier::CROSSED_OUT)
}

fn encode_style(text: &mut String, style: Style) {
    const MODIFIERS: [(Modifier, u8); 6] = [
        (Modifier::BOLD, 1),
        (Modifier::DIM, 2),
        (Modifier::ITALIC, 3),
        (Modifier::UNDERLINED, 4),
        (Modifier::REVERSED, 7),
        (Modifier::CROSSED_OUT, 9),
    ];
    for (modifier, code) in MODIFIERS {
        if style.add_modifier.contains(modifier) {
            let _ = write!(text, "\u{1b}[{code}m");
        }
    }
    for (color, base) in [(style.fg, 30), (style.bg, 40)] {
        if let Some(code) = color.and_then(|color| color_code(color, base)) {
            let _ = write!(text, "\u{1b}[{code}m");
        }
    }
}

/// The code of one of the sixteen colors; others are not used here.
fn color_code(color: Color, base: u8) -> Option<u8> {
    const COLORS: [Color; 16] = [
        Color::Black,
        Color::Red,
        Color::Green,
        Color::Yellow,
        Color::Blue,
        Color::Magenta,
        Color::Cyan,
        Color::Gray,
        Color::DarkGray,
        Color::LightRed,
        Color::LightGreen,
        Color::LightYellow,
        Color::LightBlue,
        Color::LightMagenta,
        Color::LightCyan,
        Color::White,
    ];
    let index = u8::try_from(COLORS.iter().position(|known| *known == color)?).ok()?;
    Some(if index < 8 { base + index } else { base + 60 + index - 8 })
}

#[cfg(test)]
mod tests {
    use ratatui::layout::Rect;
    use ratatui::text::Span;

    use super::*;

    #[test]
    fn styles_are_written_where_they_change_and_blanks_at_the_end_are_not() {
        let line = Line::from(vec![
            Span::raw("a "),
            Span::styled("b", Style::new().fg(Color::Red)),
            Span::raw("  "),
        ]);
        assert_eq!(
            line_row(&line),
            TerminalRow { text: "a \u{1b}[0m\u{1b}[31mb\u{1b}[0m".to_owned(), width: 3 }
        );
    }

    #[test]
    fn wide_signs_take_two_columns() {
        let mut buffer = Buffer::empty(Rect::new(0, 0, 6, 1));
        buffer.set_string(0, 0, "漢字x", Style::new());
        assert_eq!(rows_of(&buffer), [TerminalRow { text: "漢字x".to_owned(), width: 5 }]);
    }

    #[test]
    fn bright_colors_have_codes_of_their_own() {
        assert_eq!(color_code(Color::LightRed, 30), Some(91));
        assert_eq!(color_code(Color::Cyan, 40), Some(46));
        assert_eq!(color_code(Color::Rgb(1, 2, 3), 30), None);
    }
}
