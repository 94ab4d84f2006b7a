//! Draws a screen as an SVG.
//!
//! The text stays text, set in a monospace font of whoever looks at it. Fonts differ in width, so every piece
//! of text says how wide it is, and columns line up in all of them.
//!
//! This module does not run programs: see [`crate::terminal`].

use std::fmt::Write as _;

const CELL_WIDTH: u16 = 10;
const CELL_HEIGHT: u16 = 20;
/// From the top of a cell to the line that letters stand on.
const BASELINE: u16 = 15;
const MARGIN: u16 = 14;
const TITLE_HEIGHT: u16 = 32;

const BACKGROUND: u32 = 0x1b_1d23;
const FOREGROUND: u32 = 0xd7_dae0;
/// The sixteen colors that a terminal chooses itself: eight, then their bright ones.
const PALETTE: [u32; 16] = [
    0x2b_2e37, 0xe2_727b, 0x93_c47d, 0xdf_b96d, 0x6a_a9ee, 0xc5_86d9, 0x5f_bcc7, 0xc3_c8d2, //
    0x7a_8191, 0xf0_929a, 0xae_db9a, 0xf0_d08e, 0x8f_c2f7, 0xda_a5ea, 0x86_d5de, 0xf5_f7fa,
];

/// Draws a screen as an SVG: a dark window with a title.
pub fn svg(screen: &vt100::Screen, title: &str) -> String {
    let (rows, columns) = screen.size();
    let (rows, columns) = (rows.get(), columns.get());
    let width = columns * CELL_WIDTH + 2 * MARGIN;
    let height = rows * CELL_HEIGHT + 2 * MARGIN + TITLE_HEIGHT;
    let mut out = window(width, height, title);
    for row in 0..rows {
        let cells = (0..columns).filter_map(|column| Cell::at(screen, row, column)).collect::<Vec<_>>();
        let y = TITLE_HEIGHT + MARGIN + row * CELL_HEIGHT;
        for run in cells.chunk_by(|one, next| one.background == next.background) {
            background(&mut out, run, y);
        }
        for run in cells.chunk_by(|one, next| one.style == next.style && !one.wide && !next.wide) {
            text(&mut out, run, y + BASELINE);
        }
    }
    out + "</svg>\n"
}

fn window(width: u16, height: u16, title: &str) -> String {
    let (middle, side, title) = (width / 2, width - 18, escaped(title));
    format!(
        r##"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" font-family="ui-monospace, 'SF Mono', Menlo, Consolas, 'DejaVu Sans Mono', monospace" font-size="16.6">
<rect x=".5" y=".5" width="{}" height="{}" rx="9" fill="#{BACKGROUND:06x}" stroke="#434854"/>
<path d="M1 {TITLE_HEIGHT}V9q0-8 8-8h{side}q8 0 8 8v23z" fill="#2b2e37"/>
<circle cx="22" cy="16" r="6" fill="#ec6a5e"/><circle cx="42" cy="16" r="6" fill="#f4bf4f"/><circle cx="62" cy="16" r="6" fill="#61c554"/>
<text x="{middle}" y="22" text-anchor="middle" fill="#9aa1b0">{title}</text>
"##,
        width - 1,
        height - 1,
    )
}

/// One cell with the colors that its attributes come to.
struct Cell {
    column: u16,
    wide: bool,
    text: String,
    background: u32,
    style: Style,
}

#[derive(PartialEq, Eq)]
struct Style {
    color: u32,
    bold: bool,
    dim: bool,
    italic: bool,
    underline: bool,
}

impl Cell {
    /// Returns a cell; none for the second half of a wide one.
    fn at(screen: &vt100::Screen, row: u16, column: u16) -> Option<Self> {
        let cell = screen.cell(row, column).filter(|cell| !cell.is_wide_continuation())?;
        let is_cursor = !screen.hide_cursor() && screen.cursor_position() == (row, column);
        let (mut color, mut background) = (rgb(cell.fgcolor(), FOREGROUND), rgb(cell.bgcolor(), BACKGROUND));
        if cell.inverse() != is_cursor {
            std::mem::swap(&mut color, &mut background);
        }
        let text = if cell.has_contents() { cell.contents() } else { " " };
        let (bold, dim, italic, underline) = (cell.bold(), cell.dim(), cell.italic(), cell.underline());
        let style = Style { color, bold, dim, italic, underline };
        Some(Self { column, wide: cell.is_wide(), text: text.to_owned(), background, style })
    }

    fn columns(&self) -> u16 {
        if self.wide { 2 } else { 1 }
    }
}

/// Returns left edge and width of neighbors.
fn extent(run: &[Cell]) -> (u16, u16) {
    (MARGIN + run[0].column * CELL_WIDTH, run.iter().map(Cell::columns).sum::<u16>() * CELL_WIDTH)
}

fn background(out: &mut String, run: &[Cell], y: u16) {
    let ((x, width), color) = (extent(run), run[0].background);
    if color != BACKGROUND {
        let _ = writeln!(
            out,
            r##"<rect x="{x}" y="{y}" width="{width}" height="{CELL_HEIGHT}" fill="#{color:06x}"/>"##
        );
    }
}

fn text(out: &mut String, run: &[Cell], y: u16) {
    let is_blank = |cell: &Cell| cell.text == " " && !cell.style.underline;
    let Some(start) = run.iter().position(|cell| !is_blank(cell)) else { return };
    let end = run.iter().rposition(|cell| !is_blank(cell)).map_or(start, |last| last + 1);
    let run = &run[start..end];
    let ((x, width), style) = (extent(run), &run[0].style);
    let _ = write!(
        out,
        r##"<text xml:space="preserve" x="{x}" y="{y}" textLength="{width}" lengthAdjust="spacingAndGlyphs" fill="#{:06x}""##,
        style.color
    );
    for (is_set, attribute) in [
        (style.bold, r#" font-weight="bold""#),
        (style.dim, r#" fill-opacity=".55""#),
        (style.italic, r#" font-style="italic""#),
        (style.underline, r#" text-decoration="underline""#),
    ] {
        out.push_str(if is_set { attribute } else { "" });
    }
    let text = run.iter().map(|cell| cell.text.as_str()).collect::<String>();
    let _ = writeln!(out, ">{}</text>", escaped(&text));
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

fn rgb(color: vt100::Color, default: u32) -> u32 {
    let joined = |red: u8, green: u8, blue: u8| u32::from_be_bytes([0, red, green, blue]);
    let step = |digit: u8| if digit == 0 { 0 } else { 55 + 40 * digit };
    match color {
        vt100::Color::Default => default,
        vt100::Color::Idx(index @ 0..16) => PALETTE[usize::from(index)],
        // A cube of six steps per color, then 24 grays.
        vt100::Color::Idx(index @ 16..232) => {
            let index = index - 16;
            joined(step(index / 36), step(index / 6 % 6), step(index % 6))
        }
        vt100::Color::Idx(index) => {
            let gray = 8 + 10 * (index - 232);
            joined(gray, gray, gray)
        }
        vt100::Color::Rgb(red, green, blue) => joined(red, green, blue),
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU16;

    fn drawn(columns: u16, rows: u16, text: &str) -> String {
        let (columns, rows) = (NonZeroU16::new(columns).unwrap(), NonZeroU16::new(rows).unwrap());
        let mut parser = vt100::Parser::new(rows, columns, 0);
        parser.process(b"\x1b[?25l");
        parser.process(text.as_bytes());
        super::svg(parser.screen(), "a & b")
    }

    #[test]
    fn the_picture_has_the_size_of_its_cells_a_title_and_a_margin() {
        let svg = drawn(7, 3, "hi");
        assert!(svg.contains(r#"viewBox="0 0 98 120""#), "{svg}");
        assert!(svg.contains(">a &amp; b</text>"), "{svg}");
    }

    #[test]
    fn text_of_one_style_is_one_element_as_wide_as_its_cells() {
        let svg = drawn(20, 2, "\r\n  a  <b> \x1b[31mc");
        let attributes = r#"lengthAdjust="spacingAndGlyphs" fill"#;
        for expected in [
            format!(
                r##"<text xml:space="preserve" x="34" y="81" textLength="60" {attributes}="#d7dae0">a  &lt;b&gt;</text>"##
            ),
            format!(
                r##"<text xml:space="preserve" x="104" y="81" textLength="10" {attributes}="#e2727b">c</text>"##
            ),
        ] {
            assert!(svg.contains(&expected), "{svg}");
        }
    }

    #[test]
    fn a_wide_character_takes_two_cells() {
        let svg = drawn(9, 1, "a\x1b[41m日\x1b[0mb");
        assert!(svg.contains(r##"<rect x="24" y="46" width="20" height="20" fill="#e2727b"/>"##), "{svg}");
        assert!(svg.contains(r#"x="24" y="61" textLength="20""#), "{svg}");
        assert!(svg.contains(r#"x="44" y="61" textLength="10""#), "{svg}");
    }

    #[test]
    fn attributes_and_colors_are_drawn() {
        let codes =
            ["0", "1", "2", "3", "4", "7", "1;3", "31", "91", "38;5;17", "38;5;240", "38;2;1;2;3", "41"];
        let all = codes.map(|codes| drawn(4, 1, &format!("\x1b[{codes}mabcd")));
        for (index, one) in all.iter().enumerate() {
            assert!(!all[index + 1..].contains(one), "{}", codes[index]);
        }
        assert!(drawn(1, 1, "\x1b[38;5;17ma").contains("#00005f"));
        assert!(drawn(1, 1, "\x1b[38;5;240ma").contains("#585858"));
        assert!(drawn(1, 1, "\x1b[31;7m ").contains(r##"height="20" fill="#e2727b"/>"##));
    }

    #[test]
    fn the_cursor_is_drawn_unless_it_is_hidden() {
        let cursor = r##"<rect x="24" y="46" width="10" height="20" fill="#d7dae0"/>"##;
        assert!(!drawn(2, 1, "a").contains(cursor));
        assert!(drawn(2, 1, "a\x1b[?25h").contains(cursor));
    }
}
