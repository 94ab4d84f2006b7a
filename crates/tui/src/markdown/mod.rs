//! Draws Markdown as styled rows that fit a width.
//!
//! [`markdown`] draws a whole text; [`Stream`] draws one that still grows, block by block. Everything a model wrote is
//! made visible first (see [`shown`]), so no text can move the cursor or hide a part of itself. Footnotes are off, and
//! HTML is shown as it stands.

use pulldown_cmark::{Options, Parser};
use ratatui::text::Line;

use crate::Theme;

mod highlight;
mod inline;
mod page;
mod render;
mod shown;
mod stream;
mod table;
#[cfg(test)]
mod tests;

use highlight::Highlights;
pub(crate) use highlight::read_grammars;
use render::Renderer;
pub(crate) use stream::Stream;

/// Draws Markdown: one blank row between blocks, none at the start or end.
pub(crate) fn markdown(text: &str, width: u16, theme: Theme) -> Vec<Line<'static>> {
    drawn(text, width, theme, &mut Highlights::default())
}

/// Draws Markdown and remembers the highlighting of its code for the next time, when the text has grown.
fn drawn(text: &str, width: u16, theme: Theme, highlights: &mut Highlights) -> Vec<Line<'static>> {
    let mut renderer = Renderer::new(width, theme, highlights);
    for event in parser(text) {
        renderer.take(event);
    }
    renderer.finish()
}

fn parser(text: &str) -> Parser<'_> {
    Parser::new_ext(text, Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS)
}
