//! Draws a screen as a PNG.
//!
//! [`png()`] gives the usual picture; [`Picture`] also a light one, or one in the frame of a window. The same
//! screen always gives the same bytes. Text is set in DejaVu Sans Mono (see `fonts`), lines, blocks and
//! braille are drawn to the pixel so that they meet (see `shapes`), and few enough colours are used that a
//! palette holds them (see `canvas`).
//!
//! This module does not run programs: see [`crate::terminal`].

mod canvas;
mod colours;
mod fonts;
mod shapes;
#[cfg(test)]
mod tests;

use self::canvas::{Area, Canvas};
use self::colours::{Colour, Colours};
use self::fonts::{Fonts, Style};

/// The width of one cell in pixels.
const CELL_WIDTH: u32 = 10;
/// The height of one cell in pixels.
const CELL_HEIGHT: u32 = 21;
/// The space around the cells.
const MARGIN: u32 = 14;
/// The height of a window's title.
const TITLE: u32 = 32;
/// The radius of a window's corners.
const CORNER: u32 = 9;

/// Draws a screen as a PNG, light on dark.
pub fn png(screen: &vt100::Screen) -> Vec<u8> {
    Picture::new().png(screen)
}

/// How a screen is drawn.
#[derive(Debug, Clone, Default)]
pub struct Picture {
    light: bool,
    title: Option<String>,
    rows: Option<u16>,
}

impl Picture {
    /// Draws light on dark, without a frame.
    pub fn new() -> Self {
        Self::default()
    }

    /// Draws dark on light.
    pub fn light(mut self) -> Self {
        self.light = true;
        self
    }

    /// Draws the frame of a window with a title.
    pub fn window(mut self, title: &str) -> Self {
        self.title = Some(title.to_owned());
        self
    }

    /// Draws the first rows only, so that an empty rest takes no space.
    pub fn rows(mut self, rows: u16) -> Self {
        self.rows = Some(rows);
        self
    }

    /// Draws a screen.
    pub fn png(&self, screen: &vt100::Screen) -> Vec<u8> {
        // Fewer shades of grey at the edges of letters until the colours fit into a palette.
        let shades = [16, 8, 4].into_iter().find_map(|shades| self.drawn(screen, shades).indexed_png());
        shades.unwrap_or_else(|| self.drawn(screen, 16).true_colour_png())
    }

    fn drawn(&self, screen: &vt100::Screen, shades: u8) -> Canvas {
        let mut drawing = Drawing::new(self, screen, shades);
        drawing.window();
        drawing.backgrounds();
        drawing.foregrounds();
        drawing.canvas
    }
}

/// A picture that is being drawn.
struct Drawing<'a> {
    picture: &'a Picture,
    screen: &'a vt100::Screen,
    colours: &'static Colours,
    fonts: Fonts,
    canvas: Canvas,
    rows: u16,
    columns: u16,
}

/// One cell with the colours that its attributes come to.
struct Cell<'a> {
    cell: &'a vt100::Cell,
    area: Area,
    foreground: Colour,
    background: Colour,
}

impl<'a> Drawing<'a> {
    fn new(picture: &'a Picture, screen: &'a vt100::Screen, shades: u8) -> Self {
        let (rows, columns) = screen.size();
        let rows = picture.rows.unwrap_or(u16::MAX).min(rows.get());
        let width = u32::from(columns.get()) * CELL_WIDTH + 2 * MARGIN;
        let height = u32::from(rows) * CELL_HEIGHT + 2 * MARGIN + picture.title_height();
        let colours = if picture.light { &colours::LIGHT } else { &colours::DARK };
        let canvas = Canvas::new(width, height, colours.background, shades);
        Self { picture, screen, colours, fonts: Fonts::new(), canvas, rows, columns: columns.get() }
    }

    /// Draws title and corners, where a window was asked for.
    fn window(&mut self) {
        let Some(title) = &self.picture.title else { return };
        let width = self.canvas.width();
        self.canvas.fill(Area { x: 0, y: 0, width, height: TITLE }, self.colours.title);
        for (number, light) in (0..).zip(self.colours.lights) {
            self.canvas.disc(22.0 + 20.0 * number as f32, TITLE as f32 / 2.0, 6.0, light);
        }
        let length = title.chars().count() as u32 * CELL_WIDTH;
        let left = (width.saturating_sub(length) / 2).max(90);
        for (number, sign) in (0..).zip(title.chars()) {
            let x = left + number * CELL_WIDTH;
            let area = Area { x, y: (TITLE - CELL_HEIGHT) / 2, width: CELL_WIDTH, height: CELL_HEIGHT };
            self.fonts.draw(&mut self.canvas, area, sign, Style::default(), self.colours.title_text);
        }
        self.canvas.round_corners(CORNER);
    }

    fn backgrounds(&mut self) {
        for (row, column) in self.positions() {
            if let Some(cell) = self.cell(row, column) {
                self.canvas.fill(cell.area, cell.background);
            }
        }
    }

    fn foregrounds(&mut self) {
        for (row, column) in self.positions() {
            if let Some(cell) = self.cell(row, column) {
                self.foreground(&cell);
            }
        }
    }

    fn foreground(&mut self, cell: &Cell<'_>) {
        let style = Style { bold: cell.cell.bold(), italic: cell.cell.italic() };
        for sign in cell.cell.contents().chars().filter(|sign| !sign.is_whitespace()) {
            if !shapes::draw(&mut self.canvas, cell.area, sign, cell.foreground) {
                self.fonts.draw(&mut self.canvas, cell.area, sign, style, cell.foreground);
            }
        }
        if cell.cell.underline() {
            let Area { x, y, width, height } = cell.area;
            self.canvas.fill(Area { x, y: y + height - 3, width, height: 1 }, cell.foreground);
        }
    }

    fn positions(&self) -> impl Iterator<Item = (u16, u16)> + use<> {
        let columns = self.columns;
        (0..self.rows).flat_map(move |row| (0..columns).map(move |column| (row, column)))
    }

    /// Returns a cell; none for the second half of a wide one.
    fn cell(&self, row: u16, column: u16) -> Option<Cell<'a>> {
        let cell = self.screen.cell(row, column).filter(|cell| !cell.is_wide_continuation())?;
        let area = Area {
            x: MARGIN + u32::from(column) * CELL_WIDTH,
            y: MARGIN + self.picture.title_height() + u32::from(row) * CELL_HEIGHT,
            width: if cell.is_wide() { 2 * CELL_WIDTH } else { CELL_WIDTH },
            height: CELL_HEIGHT,
        };
        let (foreground, background) = self.colours_of(cell, self.is_cursor(row, column));
        Some(Cell { cell, area, foreground, background })
    }

    fn colours_of(&self, cell: &vt100::Cell, is_cursor: bool) -> (Colour, Colour) {
        let mut foreground = self.colours.of(cell.fgcolor(), self.colours.foreground);
        let mut background = self.colours.of(cell.bgcolor(), self.colours.background);
        if cell.inverse() {
            std::mem::swap(&mut foreground, &mut background);
        }
        if cell.dim() {
            foreground = colours::between(background, foreground, 0.55);
        }
        if is_cursor { (self.colours.background, self.colours.cursor) } else { (foreground, background) }
    }

    fn is_cursor(&self, row: u16, column: u16) -> bool {
        !self.screen.hide_cursor() && self.screen.cursor_position() == (row, column)
    }
}

impl Picture {
    fn title_height(&self) -> u32 {
        if self.title.is_some() { TITLE } else { 0 }
    }
}
