//! Letters: DejaVu Sans Mono, and DejaVu Sans for the signs that it has not.

use ab_glyph::{Font, FontRef, Glyph, GlyphId, PxScale, ScaleFont, point};

use super::canvas::{Area, Canvas};
use super::colours::Colour;

/// How letters stand.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Style {
    pub(super) bold: bool,
    pub(super) italic: bool,
}

pub(super) struct Fonts {
    regular: FontRef<'static>,
    bold: FontRef<'static>,
    italic: FontRef<'static>,
    bold_italic: FontRef<'static>,
    /// Knows more signs, but they are not all of one width.
    other: FontRef<'static>,
}

impl Fonts {
    pub(super) fn new() -> Self {
        let font = |bytes| FontRef::try_from_slice(bytes).expect("the fonts are whole");
        Self {
            regular: font(dejavu::sans_mono::regular()),
            bold: font(dejavu::sans_mono::bold()),
            italic: font(dejavu::sans_mono::oblique()),
            bold_italic: font(dejavu::sans_mono::bold_oblique()),
            other: font(dejavu::sans::regular()),
        }
    }

    /// Draws a sign into the area of its cell; a box where no font has it.
    pub(super) fn draw(&self, canvas: &mut Canvas, area: Area, sign: char, style: Style, colour: Colour) {
        let font = self.of(style);
        if let Some(glyph) = known(font, sign) {
            draw_glyph(canvas, font, placed(font, glyph, area), colour);
        } else if let Some(glyph) = known(&self.other, sign) {
            draw_glyph(canvas, &self.other, fitted(&self.other, glyph, area), colour);
        } else {
            draw_box(canvas, area, colour);
        }
    }

    fn of(&self, style: Style) -> &FontRef<'static> {
        match (style.bold, style.italic) {
            (false, false) => &self.regular,
            (true, false) => &self.bold,
            (false, true) => &self.italic,
            (true, true) => &self.bold_italic,
        }
    }
}

fn known(font: &FontRef<'_>, sign: char) -> Option<GlyphId> {
    Some(font.glyph_id(sign)).filter(|glyph| glyph.0 != 0)
}

/// The size at which a letter of the font with one width is as wide as a cell.
fn scale_for(font: &FontRef<'_>, width: f32, glyph: GlyphId) -> PxScale {
    PxScale::from(width * font.height_unscaled() / font.h_advance_unscaled(glyph).max(1.0))
}

fn placed(font: &FontRef<'_>, glyph: GlyphId, area: Area) -> Glyph {
    let scale = scale_for(font, super::CELL_WIDTH as f32, font.glyph_id('m'));
    let spare = (area.width - super::CELL_WIDTH) as f32 / 2.0;
    glyph.with_scale_and_position(scale, point(area.x as f32 + spare, baseline(font, scale, area)))
}

/// Makes a sign so small that it fits, and puts it in the middle.
fn fitted(font: &FontRef<'_>, glyph: GlyphId, area: Area) -> Glyph {
    let usual = PxScale::from(super::CELL_HEIGHT as f32 * 0.92);
    let widest = scale_for(font, area.width as f32, glyph);
    let scale = if usual.x < widest.x { usual } else { widest };
    let spare = area.width as f32 - font.as_scaled(scale).h_advance(glyph);
    glyph.with_scale_and_position(scale, point(area.x as f32 + spare / 2.0, baseline(font, scale, area)))
}

/// Where letters stand: the line of letters, from top to descent, is in the middle of the area.
fn baseline(font: &FontRef<'_>, scale: PxScale, area: Area) -> f32 {
    let scaled = font.as_scaled(scale);
    let spare = area.height as f32 - scaled.height();
    (area.y as f32 + spare / 2.0 + scaled.ascent()).round()
}

fn draw_glyph(canvas: &mut Canvas, font: &FontRef<'_>, glyph: Glyph, colour: Colour) {
    let Some(outline) = font.outline_glyph(glyph) else { return };
    let bounds = outline.px_bounds();
    let (left, top) = (bounds.min.x as i64, bounds.min.y as i64);
    outline.draw(|x, y, part| canvas.blend(left + i64::from(x), top + i64::from(y), colour, part));
}

fn draw_box(canvas: &mut Canvas, area: Area, colour: Colour) {
    let (x, y) = (area.x + 1, area.y + 4);
    let (width, height) = (area.width - 2, area.height - 8);
    for (x, y, width, height) in
        [(x, y, width, 1), (x, y + height - 1, width, 1), (x, y, 1, height), (x + width - 1, y, 1, height)]
    {
        canvas.fill(Area { x, y, width, height }, colour);
    }
}
