use std::num::NonZeroU16;

use super::{CELL_HEIGHT, CELL_WIDTH, MARGIN, Picture, png};

fn screen(columns: u16, rows: u16, text: &str) -> vt100::Screen {
    let (columns, rows) = (NonZeroU16::new(columns).unwrap(), NonZeroU16::new(rows).unwrap());
    let mut parser = vt100::Parser::new(rows, columns, 0);
    parser.process(b"\x1b[?25l");
    parser.process(text.as_bytes());
    parser.screen().clone()
}

/// A picture read back.
struct Pixels {
    width: u32,
    height: u32,
    bytes: Vec<u8>,
}

impl Pixels {
    fn of(file: &[u8]) -> Self {
        let mut decoder = png::Decoder::new(std::io::Cursor::new(file));
        decoder.set_transformations(png::Transformations::EXPAND | png::Transformations::ALPHA);
        let mut reader = decoder.read_info().unwrap();
        let mut bytes = vec![0; reader.output_buffer_size().unwrap()];
        let info = reader.next_frame(&mut bytes).unwrap();
        Self { width: info.width, height: info.height, bytes }
    }

    fn at(&self, x: u32, y: u32) -> [u8; 4] {
        let start = ((y * self.width + x) * 4) as usize;
        self.bytes[start..start + 4].try_into().unwrap()
    }

    /// A pixel of a cell.
    fn cell(&self, column: u32, row: u32, x: u32, y: u32) -> [u8; 4] {
        self.at(MARGIN + column * CELL_WIDTH + x, MARGIN + row * CELL_HEIGHT + y)
    }

    /// Says that nothing is drawn in a cell.
    fn is_blank(&self, column: u32, row: u32) -> bool {
        let first = self.at(0, 0);
        let mut pixels = (0..CELL_HEIGHT).flat_map(|y| (0..CELL_WIDTH).map(move |x| (x, y)));
        pixels.all(|(x, y)| self.cell(column, row, x, y) == first)
    }
}

const RED: [u8; 4] = [0xe2, 0x72, 0x7b, 255];
const BACKGROUND: [u8; 4] = [0x1b, 0x1d, 0x23, 255];

#[test]
fn a_picture_has_the_size_of_its_cells_and_a_margin() {
    let pixels = Pixels::of(&png(&screen(7, 3, "hi")));
    let expected = (7 * CELL_WIDTH + 2 * MARGIN, 3 * CELL_HEIGHT + 2 * MARGIN);
    assert_eq!((pixels.width, pixels.height), expected);
    assert!(!pixels.is_blank(0, 0) && !pixels.is_blank(1, 0) && pixels.is_blank(2, 0));
    let shorter = Pixels::of(&Picture::new().rows(1).png(&screen(7, 3, "hi")));
    assert_eq!(shorter.height, CELL_HEIGHT + 2 * MARGIN);
}

#[test]
fn the_same_screen_gives_the_same_bytes() {
    let screen = screen(30, 4, "\x1b[1;32m✓ done\x1b[0m \x1b[3mslowly\x1b[0m ╭──╮ 日本 ⠋");
    assert_eq!(png(&screen), png(&screen));
    assert_ne!(png(&screen), Picture::new().light().png(&screen));
}

#[test]
fn backgrounds_and_reversed_cells_are_filled() {
    let pixels = Pixels::of(&png(&screen(4, 1, "\x1b[41m \x1b[0m\x1b[31;7m \x1b[0m ")));
    assert_eq!([0, 1, 2].map(|column| pixels.cell(column, 0, 0, 0)), [RED, RED, BACKGROUND]);
}

#[test]
fn lines_meet_at_the_edges_of_their_cells() {
    let pixels = Pixels::of(&png(&screen(3, 3, "\x1b[31m╭─╮\r\n│ │\r\n╰─╯")));
    let (across, down) = ((CELL_HEIGHT - 1) / 2, (CELL_WIDTH - 1) / 2);
    for row in [0, 2] {
        let line = (0..CELL_WIDTH).map(|x| pixels.cell(1, row, x, across));
        assert!(line.clone().all(|pixel| pixel == RED), "row {row}: {:?}", line.collect::<Vec<_>>());
        assert_eq!(pixels.cell(0, row, CELL_WIDTH - 1, across), RED);
        assert_eq!(pixels.cell(2, row, 0, across), RED);
    }
    for column in [0, 2] {
        assert!((0..CELL_HEIGHT).all(|y| pixels.cell(column, 1, down, y) == RED), "column {column}");
        assert_eq!(pixels.cell(column, 0, down, CELL_HEIGHT - 1), RED);
        assert_eq!(pixels.cell(column, 2, down, 0), RED);
    }
    assert_eq!(pixels.cell(0, 0, 0, 0), BACKGROUND);
}

#[test]
fn a_block_fills_its_part_of_the_cell() {
    let pixels = Pixels::of(&png(&screen(4, 1, "\x1b[31m█▀▌▗")));
    let corners = |column| {
        [(0, 0), (CELL_WIDTH - 1, 0), (0, CELL_HEIGHT - 1), (CELL_WIDTH - 1, CELL_HEIGHT - 1)]
            .map(|(x, y)| pixels.cell(column, 0, x, y) == RED)
    };
    assert_eq!(corners(0), [true; 4]);
    assert_eq!(corners(1), [true, true, false, false]);
    assert_eq!(corners(2), [true, false, true, false]);
    assert_eq!(corners(3), [false, false, false, true]);
}

#[test]
fn every_sign_of_a_user_interface_is_drawn() {
    let signs = "✓✗●◆▸▾…→←↑↓❯›⚠○◐■□•·×│─┌┼═║╬┄⠋⠿▁▒★⋮ℹ";
    let pixels = Pixels::of(&png(&screen(60, 1, signs)));
    for (column, sign) in (0..).zip(signs.chars()) {
        assert!(!pixels.is_blank(column, 0), "{sign}");
    }
}

#[test]
fn a_wide_sign_takes_two_cells() {
    let pixels = Pixels::of(&png(&screen(4, 1, "\x1b[41m日\x1b[0m")));
    assert_eq!(pixels.cell(1, 0, CELL_WIDTH - 1, 0), RED);
    assert_eq!(pixels.cell(2, 0, 0, 0), BACKGROUND);
}

#[test]
fn bold_dim_italic_and_underlined_letters_differ_from_plain_ones() {
    let drawn = |codes: &str| png(&screen(4, 1, &format!("\x1b[{codes}mabcd")));
    let all = ["0", "1", "2", "3", "4", "7", "1;3"].map(drawn);
    for (index, one) in all.iter().enumerate() {
        assert!(all[index + 1..].iter().all(|other| one != other), "{index}");
    }
}

#[test]
fn the_cursor_is_drawn_unless_it_is_hidden() {
    let hidden = screen(2, 1, "a");
    let shown = screen(2, 1, "a\x1b[?25h");
    assert!(Pixels::of(&png(&hidden)).is_blank(1, 0));
    assert!(!Pixels::of(&png(&shown)).is_blank(1, 0));
}

#[test]
fn a_window_has_round_corners_with_nothing_behind_them() {
    let pixels = Pixels::of(&Picture::new().window("llm-do").png(&screen(20, 2, "hi")));
    let (right, bottom) = (pixels.width - 1, pixels.height - 1);
    for (x, y) in [(0, 0), (right, 0), (0, bottom), (right, bottom)] {
        assert_eq!(pixels.at(x, y)[3], 0, "{x}, {y}");
    }
    assert_eq!(pixels.at(pixels.width / 2, bottom), BACKGROUND);
}

#[test]
fn a_full_screen_with_all_colours_is_a_small_file() {
    let mut text = String::new();
    for row in 0..40 {
        let colour = 31 + row % 7;
        text += &format!("\x1b[{row};1H\x1b[{colour};1m{row:>3} │\x1b[0;{colour}m ");
        text += "The quick brown fox jumps over the lazy dog, 0123456789; pack my box with five dozen jugs ";
    }
    let file = png(&screen(140, 40, &text));
    assert!(file.len() < 120_000, "{} bytes", file.len());
    let gradient: String = (0..=255).map(|step| format!("\x1b[38;2;{step};80;200m#")).collect();
    Pixels::of(&png(&screen(128, 2, &gradient))); // more colours than a palette holds
}
