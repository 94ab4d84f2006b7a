//! Pixels, and the PNG that they become.

use std::collections::BTreeMap;
use std::iter::repeat_n;

use super::colours::{Colour, between};

/// A rectangle of pixels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Area {
    pub(super) x: u32,
    pub(super) y: u32,
    pub(super) width: u32,
    pub(super) height: u32,
}

/// A picture in memory.
pub(super) struct Canvas {
    width: u32,
    height: u32,
    pixels: Vec<Colour>,
    /// How many steps there are between nothing and all of a colour.
    shades: u8,
}

impl Canvas {
    pub(super) fn new(width: u32, height: u32, background: Colour, shades: u8) -> Self {
        Self { width, height, pixels: vec![background; (width * height) as usize], shades }
    }

    pub(super) fn width(&self) -> u32 {
        self.width
    }

    /// Puts a part of a colour over a pixel; what is outside is left out.
    pub(super) fn blend(&mut self, x: i64, y: i64, colour: Colour, part: f32) {
        let part = self.stepped(part);
        if part > 0.0
            && let Some(pixel) = self.pixel(x, y)
        {
            *pixel = between(*pixel, colour, part);
        }
    }

    /// Puts a colour over an area, which is inside.
    pub(super) fn fill(&mut self, area: Area, colour: Colour) {
        for y in area.y..area.y + area.height {
            let start = (y * self.width + area.x) as usize;
            self.pixels[start..start + area.width as usize].fill(colour);
        }
    }

    /// Puts a part of a colour over an area.
    pub(super) fn wash(&mut self, area: Area, colour: Colour, part: f32) {
        for y in area.y..area.y + area.height {
            for x in area.x..area.x + area.width {
                self.blend(i64::from(x), i64::from(y), colour, part);
            }
        }
    }

    /// Draws a disc around a point.
    pub(super) fn disc(&mut self, x: f32, y: f32, radius: f32, colour: Colour) {
        let reach = radius.ceil() as i64 + 1;
        let (middle_x, middle_y) = (x.floor() as i64, y.floor() as i64);
        for pixel_y in middle_y - reach..=middle_y + reach {
            for pixel_x in middle_x - reach..=middle_x + reach {
                let part = radius - distance(pixel_x, pixel_y, x, y) + 0.5;
                self.blend(pixel_x, pixel_y, colour, part);
            }
        }
    }

    /// Makes the four corners round, with nothing behind them.
    pub(super) fn round_corners(&mut self, radius: u32) {
        let (right, bottom) = (self.width - 1, self.height - 1);
        for (x, y) in (0..radius).flat_map(|y| (0..radius).map(move |x| (x, y))) {
            let outside = distance(x.into(), y.into(), radius as f32, radius as f32) - radius as f32 + 0.5;
            let part = self.stepped(outside);
            for (x, y) in [(x, y), (right - x, y), (x, bottom - y), (right - x, bottom - y)] {
                if let Some(pixel) = self.pixel(x.into(), y.into()) {
                    pixel[3] = (255.0 * (1.0 - part)).round() as u8;
                }
            }
        }
    }

    fn stepped(&self, part: f32) -> f32 {
        let shades = f32::from(self.shades);
        (part.clamp(0.0, 1.0) * shades).round() / shades
    }

    fn pixel(&mut self, x: i64, y: i64) -> Option<&mut Colour> {
        let inside = (0..i64::from(self.width)).contains(&x) && (0..i64::from(self.height)).contains(&y);
        if inside { self.pixels.get_mut((y * i64::from(self.width) + x) as usize) } else { None }
    }

    /// Makes a PNG with a palette, where the colours fit into one.
    pub(super) fn indexed_png(&self) -> Option<Vec<u8>> {
        let mut numbers = BTreeMap::new();
        for run in self.runs() {
            numbers.insert(run[0], 0);
            if numbers.len() > 256 {
                return None;
            }
        }
        for (index, number) in (0..).zip(numbers.values_mut()) {
            *number = index;
        }
        let palette: Vec<u8> = numbers.keys().flat_map(|colour| colour[..3].to_vec()).collect();
        let parts: Vec<u8> = numbers.keys().map(|colour| colour[3]).collect();
        let data: Vec<u8> = self.runs().flat_map(|run| repeat_n(numbers[&run[0]] as u8, run.len())).collect();
        Some(self.encoded(png::ColorType::Indexed, &data, Some((palette, parts))))
    }

    /// Neighbours of one colour: most of a screen is empty.
    fn runs(&self) -> impl Iterator<Item = &[Colour]> {
        self.pixels.chunk_by(|one, next| one == next)
    }

    /// Makes a PNG that can have any colours.
    pub(super) fn true_colour_png(&self) -> Vec<u8> {
        self.encoded(png::ColorType::Rgba, self.pixels.as_flattened(), None)
    }

    fn encoded(&self, kind: png::ColorType, data: &[u8], palette: Option<(Vec<u8>, Vec<u8>)>) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut encoder = png::Encoder::new(&mut bytes, self.width, self.height);
        encoder.set_color(kind);
        encoder.set_depth(png::BitDepth::Eight);
        encoder.set_compression(png::Compression::High);
        if let Some((colours, parts)) = palette {
            encoder.set_palette(colours);
            encoder.set_trns(parts);
            encoder.set_filter(png::Filter::NoFilter); // neighbours in a palette are not neighbours
        }
        let mut writer = encoder.write_header().expect("a picture has a size");
        writer.write_image_data(data).expect("memory takes a picture");
        writer.finish().expect("memory takes a picture");
        bytes
    }
}

/// How far the middle of a pixel is from a point.
fn distance(pixel_x: i64, pixel_y: i64, x: f32, y: f32) -> f32 {
    (pixel_x as f32 + 0.5 - x).hypot(pixel_y as f32 + 0.5 - y)
}
