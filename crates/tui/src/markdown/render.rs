//! Turns the events of the parser into blocks on a page.
//!
//! Blocks are drawn one after the other from a flat stream of events, so no nesting of the text can exhaust the stack.

use pulldown_cmark::{CodeBlockKind, Event, HeadingLevel, Tag, TagEnd};
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};

use super::highlight::Highlights;
use super::inline::Inline;
use super::page::Page;
use super::shown::shown;
use super::table::Table;
use crate::Theme;

const CODE_BAR: &str = "│ ";

/// Draws one text.
pub(super) struct Renderer<'a> {
    theme: Theme,
    page: Page,
    inline: Inline,
    highlights: &'a mut Highlights,
    literal: Option<Literal>,
    table: Option<Table>,
    /// How many blocks of code have been drawn.
    code_blocks: usize,
}

/// A block whose text is collected as it stands.
struct Literal {
    /// The language of code; nothing for HTML.
    language: Option<String>,
    text: String,
}

impl<'a> Renderer<'a> {
    pub(super) fn new(width: u16, theme: Theme, highlights: &'a mut Highlights) -> Self {
        Self {
            theme,
            page: Page::new(width, theme),
            inline: Inline::new(theme),
            highlights,
            literal: None,
            table: None,
            code_blocks: 0,
        }
    }

    pub(super) fn take(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) if is_block(&tag) => self.open(tag),
            Event::End(tag) if is_block_end(tag) => self.close(tag),
            Event::Text(text) | Event::Html(text) if self.literal.is_some() => self.add_literal(&text),
            Event::Rule => self.write_rule(),
            Event::TaskListMarker(done) => self.page.mark_task(done),
            event => self.inline.take(event),
        }
    }

    pub(super) fn finish(mut self) -> Vec<Line<'static>> {
        self.write_text();
        self.page.finish()
    }

    fn open(&mut self, tag: Tag<'_>) {
        // The text of a tight item ends where a block within the item begins.
        if !matches!(tag, Tag::TableHead | Tag::TableRow | Tag::TableCell) {
            self.write_text();
        }
        match tag {
            Tag::Paragraph => self.page.loosen(),
            Tag::Heading { level, .. } => self.inline.push_style(heading(level, self.theme)),
            Tag::BlockQuote(_) => self.page.open_quote(),
            Tag::List(first) => self.page.open_list(first),
            Tag::Item => self.page.open_item(),
            Tag::CodeBlock(kind) => self.literal = Some(Literal::code(&kind)),
            Tag::HtmlBlock => self.literal = Some(Literal { language: None, text: String::new() }),
            Tag::Table(alignments) => self.table = Some(Table::new(alignments)),
            Tag::TableHead => self.inline.push_style(self.theme.strong()),
            _ => {}
        }
    }

    fn close(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Paragraph => self.write_text(),
            TagEnd::Heading(_) => {
                self.inline.pop_style();
                self.write_text();
            }
            TagEnd::BlockQuote(_) | TagEnd::List(_) | TagEnd::Item => {
                self.write_text();
                self.page.close();
            }
            TagEnd::CodeBlock | TagEnd::HtmlBlock => self.write_literal(),
            TagEnd::Table => self.write_table(),
            TagEnd::TableHead => {
                self.inline.pop_style();
                self.end_row();
            }
            TagEnd::TableRow => self.end_row(),
            TagEnd::TableCell => self.end_cell(),
            _ => {}
        }
    }

    fn write_text(&mut self) {
        if let Some(lines) = self.inline.finish() {
            self.page.write(lines);
        }
    }

    fn write_rule(&mut self) {
        self.write_text();
        let rule = "─".repeat(usize::from(self.page.room()));
        self.page.write([Line::styled(rule, self.theme.dim())]);
    }

    fn add_literal(&mut self, text: &str) {
        if let Some(literal) = &mut self.literal {
            literal.text.push_str(text);
        }
    }

    fn write_literal(&mut self) {
        match self.literal.take() {
            Some(Literal { language: Some(language), text }) => self.write_code(&language, &text),
            Some(Literal { language: None, text }) if !text.trim().is_empty() => {
                let lines = text.trim_end().lines().map(|line| Line::styled(shown(line), self.theme.dim()));
                self.page.write_literal(lines, &[]);
            }
            _ => {}
        }
    }

    fn write_code(&mut self, language: &str, code: &str) {
        let mut lines = self.highlights.lines(self.code_blocks, language, code, self.theme);
        self.code_blocks += 1;
        if lines.is_empty() {
            lines.push(Line::default());
        }
        self.page.write_literal(lines, &[Span::styled(CODE_BAR, self.theme.dim())]);
    }

    fn end_cell(&mut self) {
        let cell = self.inline.finish_cell();
        if let Some(table) = &mut self.table {
            table.push_cell(cell);
        }
    }

    fn end_row(&mut self) {
        if let Some(table) = &mut self.table {
            table.end_row();
        }
    }

    fn write_table(&mut self) {
        if let Some(table) = self.table.take() {
            let rows = table.rows(self.page.room(), self.theme);
            self.page.write_literal(rows, &[]);
        }
    }
}

impl Literal {
    fn code(kind: &CodeBlockKind<'_>) -> Self {
        let language = match kind {
            CodeBlockKind::Fenced(info) => info.to_string(),
            CodeBlockKind::Indented => String::new(),
        };
        Self { language: Some(language), text: String::new() }
    }
}

fn heading(level: HeadingLevel, theme: Theme) -> Style {
    match level {
        HeadingLevel::H1 => theme.heading().add_modifier(Modifier::UNDERLINED),
        HeadingLevel::H2 => theme.heading(),
        HeadingLevel::H3 => theme.strong(),
        _ => theme.strong().add_modifier(Modifier::ITALIC),
    }
}

fn is_block(tag: &Tag<'_>) -> bool {
    is_block_end(tag.to_end())
}

fn is_block_end(tag: TagEnd) -> bool {
    !matches!(tag, TagEnd::Emphasis | TagEnd::Strong | TagEnd::Strikethrough | TagEnd::Link | TagEnd::Image)
}
