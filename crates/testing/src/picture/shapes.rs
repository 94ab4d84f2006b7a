//! Lines, blocks and braille, drawn to the pixel: those of a font leave gaps between cells.

use super::canvas::{Area, Canvas};
use super::colours::Colour;

/// The thickness of a light line.
const LIGHT: u32 = 1;
/// The thickness of a heavy line.
const HEAVY: u32 = 3;

/// For the signs from U+2500 (the dashed ones among them are left to the font) the thickness of the arms: up, right, down, left; 0 none, 1 light, 2 heavy.
const ARMS: &str = "\
    0101 0202 1010 2020 0000 0000 0000 0000 0000 0000 0000 0000 0110 0210 0120 0220 \
    0011 0012 0021 0022 1100 1200 2100 2200 1001 1002 2001 2002 1110 1210 2110 1120 \
    2120 2210 1220 2220 1011 1012 2011 1021 2021 2012 1022 2022 0111 0112 0211 0212 \
    0121 0122 0221 0222 1101 1102 1201 1202 2101 2102 2201 2202 1111 1112 1211 1212 \
    2111 1121 2121 2112 2211 1122 1221 2212 1222 2122 2221 2222";

/// The arms of the signs from U+2574, all of which are halves of lines.
const HALVES: &str = "0001 1000 0100 0010 0002 2000 0200 0020 0201 1020 0102 2010";

/// Draws a sign that is a shape; says whether it is one.
pub(super) fn draw(canvas: &mut Canvas, area: Area, sign: char, colour: Colour) -> bool {
    let mut pen = Pen { canvas, area, colour };
    match u32::from(sign) {
        number @ (0x2500..=0x2503 | 0x250c..=0x254b) => pen.arms(ARMS, number - 0x2500),
        number @ 0x256d..=0x2570 => pen.arc(number - 0x256d),
        number @ 0x2574..=0x257f => pen.arms(HALVES, number - 0x2574),
        number @ 0x2580..=0x259f => pen.block(number),
        number @ 0x2800..=0x28ff => pen.braille(number - 0x2800),
        _ => return false,
    }
    true
}

struct Pen<'a> {
    canvas: &'a mut Canvas,
    area: Area,
    colour: Colour,
}

impl Pen<'_> {
    fn arms(&mut self, table: &str, index: u32) {
        let Some(arms) = table.split_whitespace().nth(index as usize) else { return };
        let thickness: Vec<u32> =
            arms.bytes().map(|arm| [0, LIGHT, HEAVY][usize::from(arm - b'0')]).collect();
        let [up, right, down, left] = thickness[..] else { return };
        let (width, height) = (self.area.width, self.area.height);
        // Arms reach over the middle as far as those across them are thick, so that corners are closed.
        let (upright, level) = (up.max(down), left.max(right));
        let (x, y) = (|thick: u32| (width - thick) / 2, |thick: u32| (height - thick) / 2);
        self.part(x(up), 0, up, y(level) + level);
        self.part(x(down), y(level), down, height - y(level));
        self.part(0, y(left), x(upright) + upright, left);
        self.part(x(upright), y(right), width - x(upright), right);
    }

    /// Draws a rounded corner: down and right, down and left, up and left, up and right.
    fn arc(&mut self, which: u32) {
        let (to_right, to_bottom) = (matches!(which, 0 | 3), matches!(which, 0 | 1));
        let (width, height) = (self.area.width, self.area.height);
        let (x, y) = ((width - LIGHT) / 2, (height - LIGHT) / 2);
        let radius = x.min(width - x - LIGHT);
        let centre_x = if to_right { x + LIGHT + radius } else { x - radius };
        let centre_y = if to_bottom { y + LIGHT + radius } else { y - radius };
        if to_bottom {
            self.part(x, centre_y, LIGHT, height - centre_y);
        } else {
            self.part(x, 0, LIGHT, centre_y);
        }
        if to_right {
            self.part(centre_x, y, width - centre_x, LIGHT);
        } else {
            self.part(0, y, centre_x, LIGHT);
        }
        for (from_x, from_y) in (0..=radius).flat_map(|y| (0..=radius).map(move |x| (x, y))) {
            let from_centre = (from_x as f32 + 0.5).hypot(from_y as f32 + 0.5);
            let part = LIGHT as f32 - (from_centre - radius as f32 - 0.5).abs();
            let pixel_x = if to_right { centre_x - 1 - from_x } else { centre_x + from_x };
            let pixel_y = if to_bottom { centre_y - 1 - from_y } else { centre_y + from_y };
            let (x, y) = (self.area.x + pixel_x, self.area.y + pixel_y);
            self.canvas.blend(x.into(), y.into(), self.colour, part);
        }
    }

    fn block(&mut self, number: u32) {
        let (width, height) = (self.area.width, self.area.height);
        let (across, down) =
            (|eighths: u32| (width * eighths + 4) / 8, |eighths: u32| (height * eighths + 4) / 8);
        match number {
            0x2580 => self.part(0, 0, width, down(4)),
            0x2581..=0x2588 => {
                let filled = down(number - 0x2580);
                self.part(0, height - filled, width, filled);
            }
            0x2589..=0x258f => self.part(0, 0, across(0x2590 - number), height),
            0x2590 => self.part(across(4), 0, width - across(4), height),
            0x2591..=0x2593 => self.canvas.wash(self.area, self.colour, (number - 0x2590) as f32 / 4.0),
            0x2594 => self.part(0, 0, width, down(1)),
            0x2595 => self.part(width - across(1), 0, across(1), height),
            _ => self.quarters(number),
        }
    }

    /// Draws the quarters of a block: upper left, upper right, lower left, lower right.
    fn quarters(&mut self, number: u32) {
        const QUARTERS: [u8; 10] =
            [0b0010, 0b0001, 0b1000, 0b1011, 0b1001, 0b1110, 0b1101, 0b0100, 0b0110, 0b0111];
        let quarters = QUARTERS[(number - 0x2596) as usize];
        let (middle, half) = (self.area.width / 2, self.area.height / 2);
        let (right, lower) = (self.area.width - middle, self.area.height - half);
        let places = [
            (0, 0, middle, half),
            (middle, 0, right, half),
            (0, half, middle, lower),
            (middle, half, right, lower),
        ];
        for (index, (x, y, width, height)) in places.into_iter().enumerate() {
            if quarters & (0b1000 >> index) != 0 {
                self.part(x, y, width, height);
            }
        }
    }

    /// Draws dots: the bits stand for three rows left, three rows right, then the fourth row.
    fn braille(&mut self, bits: u32) {
        const PLACES: [(u32, u32); 8] = [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2), (0, 3), (1, 3)];
        let (width, height) = (self.area.width as f32, self.area.height as f32);
        for (bit, (column, row)) in PLACES.into_iter().enumerate() {
            if bits & (1 << bit) != 0 {
                let x = self.area.x as f32 + width * (0.5 + column as f32) / 2.0;
                let y = self.area.y as f32 + 2.0 + (height - 4.0) * (0.5 + row as f32) / 4.0;
                self.canvas.disc(x, y, width * 0.16, self.colour);
            }
        }
    }

    /// Fills a part of the cell.
    fn part(&mut self, x: u32, y: u32, width: u32, height: u32) {
        self.canvas.fill(Area { x: self.area.x + x, y: self.area.y + y, width, height }, self.colour);
    }
}
