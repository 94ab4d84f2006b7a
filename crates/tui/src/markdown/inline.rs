//! Collects the text of a block: styles, links and images within lines.

use pulldown_cmark::{Event, Tag, TagEnd};
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};

use super::escape::{escaped, escaped_url};
use crate::Theme;

/// The text of the block that is being read.
pub(super) struct Inline {
    theme: Theme,
    /// The style of the innermost mark last.
    styles: Vec<Style>,
    lines: Vec<Vec<Span<'static>>>,
    link: Option<Link>,
    image: Option<Image>,
}

struct Link {
    url: String,
    text: String,
}

/// An image, of which only the words are shown, and how many images are open.
struct Image {
    alt: String,
    depth: usize,
}

impl Inline {
    pub(super) fn new(theme: Theme) -> Self {
        Self { theme, styles: Vec::new(), lines: vec![Vec::new()], link: None, image: None }
    }

    /// Takes an event within a line; others do nothing.
    pub(super) fn take(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => self.open(tag),
            Event::End(tag) => self.close(tag),
            Event::Text(text) => self.text(&text, Style::new()),
            Event::Code(code) => self.text(&code, self.theme.code()),
            Event::InlineHtml(html) | Event::Html(html) => self.text(&html, self.theme.dim()),
            Event::SoftBreak | Event::HardBreak if self.image.is_some() => self.text(" ", Style::new()),
            // A model that ends a line means it, in a poem as in a log.
            Event::SoftBreak | Event::HardBreak => self.lines.push(Vec::new()),
            _ => {}
        }
    }

    /// Gives all that follows a style, until [`Inline::pop_style`].
    pub(super) fn push_style(&mut self, style: Style) {
        self.styles.push(self.style().patch(style));
    }

    pub(super) fn pop_style(&mut self) {
        self.styles.pop();
    }

    /// Returns the lines collected, unless there is nothing to see in them.
    pub(super) fn finish(&mut self) -> Option<Vec<Line<'static>>> {
        let lines = std::mem::replace(&mut self.lines, vec![Vec::new()]);
        let is_blank = lines.iter().flatten().all(|span| span.content.trim().is_empty());
        (!is_blank).then(|| lines.into_iter().map(Line::from).collect())
    }

    /// Returns the text of a table's cell.
    pub(super) fn finish_cell(&mut self) -> Line<'static> {
        let lines = std::mem::replace(&mut self.lines, vec![Vec::new()]);
        Line::from(lines.concat())
    }

    fn open(&mut self, tag: Tag<'_>) {
        match tag {
            Tag::Emphasis => self.push_style(Style::new().add_modifier(Modifier::ITALIC)),
            Tag::Strong => self.push_style(self.theme.strong()),
            Tag::Strikethrough => self.push_style(Style::new().add_modifier(Modifier::CROSSED_OUT)),
            Tag::Link { dest_url, .. } => {
                self.push_style(self.theme.link());
                self.link = Some(Link { url: escaped_url(&dest_url), text: String::new() });
            }
            Tag::Image { .. } => self.open_image(),
            _ => {}
        }
    }

    fn close(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Emphasis | TagEnd::Strong | TagEnd::Strikethrough => self.pop_style(),
            TagEnd::Link => {
                self.pop_style();
                self.close_link();
            }
            TagEnd::Image => self.close_image(),
            _ => {}
        }
    }

    /// Says where a link leads, unless its text says so.
    fn close_link(&mut self) {
        let Some(link) = self.link.take() else { return };
        if self.image.is_none() && !link.url.is_empty() && link.url != link.text {
            self.text(&format!(" ({})", link.url), self.theme.dim());
        }
    }

    fn open_image(&mut self) {
        let image = self.image.get_or_insert(Image { alt: String::new(), depth: 0 });
        image.depth += 1;
    }

    fn close_image(&mut self) {
        let Some(image) = &mut self.image else { return };
        image.depth -= 1;
        if image.depth == 0 {
            let alt = std::mem::take(&mut image.alt);
            self.image = None;
            self.text(&format!("[image: {alt}]"), self.theme.dim());
        }
    }

    fn text(&mut self, text: &str, style: Style) {
        if let Some(image) = &mut self.image {
            image.alt.push_str(text);
            return;
        }
        let text = escaped(text).replace('\n', " ");
        if let Some(link) = &mut self.link {
            link.text.push_str(&text);
        }
        self.add(text, self.style().patch(style));
    }

    fn add(&mut self, text: String, style: Style) {
        let Some(line) = self.lines.last_mut() else { return };
        match line.last_mut() {
            Some(last) if last.style == style => last.content.to_mut().push_str(&text),
            _ => line.push(Span::styled(text, style)),
        }
    }

    fn style(&self) -> Style {
        self.styles.last().copied().unwrap_or_default()
    }
}
