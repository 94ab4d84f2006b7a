//! Draws Markdown as styled rows that fit a width.
//!
//! [`markdown`] draws a whole text; [`MarkdownStream`] draws one that still grows, block by block. Everything a model wrote is
//! made visible first (see [`shown`]), so no text can move the cursor or hide a part of itself. Footnotes are off, and
//! HTML is shown literally.

use std::ops::Range;

use pulldown_cmark::{Event, Options, Parser, Tag};
use ratatui::text::Line;

use crate::Theme;

mod escape;
mod highlight;
mod inline;
mod page;
mod render;
mod source;
mod stable;
mod stream;
mod table;
#[cfg(test)]
mod tests;

use highlight::Highlights;
pub(crate) use highlight::read_grammars;
use page::Before;
use render::Renderer;
use source::{SourcePart, item_start};
pub(crate) use stream::MarkdownStream;

/// Draws Markdown: one blank row between blocks, none at the start or end.
///
/// Within lists there is a blank row where the text has a blank line, so that no row depends on a later item.
pub(crate) fn markdown(text: &str, width: u16, theme: Theme) -> Vec<Line<'static>> {
    drawn(SourcePart::whole(text), Before::default(), width, theme, &mut Highlights::default()).0
}

/// Draws a part of Markdown and returns the state for the next one.
///
/// The highlighting of its code is remembered for the next time, when the text has grown.
fn drawn(
    part: SourcePart<'_>,
    before: Before,
    width: u16,
    theme: Theme,
    highlights: &mut Highlights,
) -> (Vec<Line<'static>>, Before) {
    let mut renderer = Renderer::new(part, before, width, theme, highlights);
    for (event, range) in events(part.text) {
        // A cell that is missing in a row has the end of the row as its range.
        if range.start >= part.until && !renderer.is_in_table() {
            break;
        }
        renderer.take(event, range);
    }
    renderer.finish()
}

/// Reads a text: what is in it, and where.
fn events(text: &str) -> impl Iterator<Item = (Event<'_>, Range<usize>)> {
    let options = Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS;
    Parser::new_ext(text, options).into_offset_iter().map(|(event, range)| match event {
        Event::Start(Tag::List(_) | Tag::Item) => (event, item_start(text, range.start)..range.end),
        event => (event, range),
    })
}
