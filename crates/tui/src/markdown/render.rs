//! Turns the events of the parser into blocks on a page.
//!
//! Blocks are drawn one after the other from a flat stream of events, so no nesting of the text can exhaust the stack.

use std::ops::Range;

use pulldown_cmark::{CodeBlockKind, Event, HeadingLevel, Tag, TagEnd};
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};

use super::escape::escaped;
use super::highlight::Highlights;
use super::inline::Inline;
use super::page::{Before, BlockContext, Page};
use super::source::{LineIndex, SourcePart};
use super::table::MarkdownTable;
use crate::Theme;

const CODE_BAR: &str = "│ ";

/// Draws one part of a text.
pub(super) struct Renderer<'a> {
    part: SourcePart<'a>,
    lines: LineIndex<'a>,
    theme: Theme,
    page: Page,
    inline: Inline,
    /// Where the text of the block that is being read begins.
    text_start: Option<usize>,
    highlights: &'a mut Highlights,
    literal: Option<Literal>,
    table: Option<MarkdownTable>,
    /// How many blocks of code have been drawn.
    code_blocks: usize,
}

/// A block whose text is collected literally.
struct Literal {
    /// The language of code; nothing for HTML.
    language: Option<String>,
    text: String,
    context: BlockContext,
    /// How many of its lines were drawn before.
    drawn: usize,
}

impl<'a> Renderer<'a> {
    pub(super) fn new(
        part: SourcePart<'a>,
        before: Before,
        width: u16,
        theme: Theme,
        highlights: &'a mut Highlights,
    ) -> Self {
        Self {
            part,
            lines: LineIndex::new(part.text),
            theme,
            page: Page::new(before, width, theme),
            inline: Inline::new(theme),
            text_start: None,
            highlights,
            literal: None,
            table: None,
            code_blocks: 0,
        }
    }

    /// Takes an event and its range in the text.
    pub(super) fn take(&mut self, event: Event<'_>, range: Range<usize>) {
        match event {
            Event::Start(tag) if is_block(&tag) => self.open(tag, range.start),
            Event::End(tag) if is_block_end(tag) => self.close(tag),
            Event::Text(text) | Event::Html(text) if self.literal.is_some() => {
                self.add_literal(&text, &range);
            }
            Event::Rule => self.write_rule(range.start),
            Event::TaskListMarker(done) => self.page.mark_task(done),
            event => {
                self.text_start.get_or_insert(range.start);
                self.inline.take(event);
            }
        }
    }

    pub(super) fn is_in_table(&self) -> bool {
        self.table.is_some()
    }

    /// Returns the rows, and the state for a text that continues where this part ends.
    pub(super) fn finish(mut self) -> (Vec<Line<'static>>, Before) {
        self.write_text();
        self.write_literal();
        self.page.finish()
    }

    fn open(&mut self, tag: Tag<'_>, start: usize) {
        // The text of a tight item ends where a block within the item begins.
        if !matches!(tag, Tag::TableHead | Tag::TableRow | Tag::TableCell) {
            self.write_text();
        }
        if matches!(tag, Tag::Paragraph | Tag::Heading { .. } | Tag::Table(_)) {
            self.text_start = Some(start);
        }
        let context = self.context(start);
        match tag {
            Tag::Heading { level, .. } => self.inline.push_style(heading(level, self.theme)),
            Tag::BlockQuote(_) => self.page.open_quote(context),
            Tag::List(first) => self.page.open_list(first, context),
            Tag::Item => self.page.open_item(context),
            Tag::CodeBlock(kind) => self.literal = Some(Literal::code(&kind, context)),
            Tag::HtmlBlock => self.literal = Some(Literal::html(context)),
            Tag::Table(alignments) => self.table = Some(MarkdownTable::new(alignments)),
            Tag::TableHead => self.inline.push_style(self.theme.strong()),
            _ => {}
        }
    }

    fn context(&mut self, start: usize) -> BlockContext {
        let blank = self.lines.blank_before(start);
        let spaced = blank.is_some_and(|line| line.marks == 0 || line.marks <= self.page.quotes());
        BlockContext { spaced, drawn: start < self.part.from }
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
        let start = self.text_start.take();
        if let Some(lines) = self.inline.finish() {
            let context = self.context(start.unwrap_or(self.part.from));
            self.page.write(lines, context);
        }
    }

    fn write_rule(&mut self, start: usize) {
        self.write_text();
        let rule = "─".repeat(usize::from(self.page.room()));
        let context = self.context(start);
        self.page.write([Line::styled(rule, self.theme.dim())], context);
    }

    fn add_literal(&mut self, text: &str, range: &Range<usize>) {
        if let Some(literal) = &mut self.literal {
            let (drawn, new) = self.part.split(text, range);
            literal.drawn += drawn.matches('\n').count();
            literal.text.push_str(drawn);
            literal.text.push_str(new);
        }
    }

    fn write_literal(&mut self) {
        match self.literal.take() {
            Some(Literal { language: Some(language), text, context, drawn }) => {
                self.write_code(&language, &text, context, drawn);
            }
            Some(Literal { text, context, .. }) if !text.trim().is_empty() => {
                let lines = text.trim_end().lines().map(|line| Line::styled(escaped(line), self.theme.dim()));
                let lines = lines.skip(if context.drawn { usize::MAX } else { 0 });
                self.page.write_literal(lines, context, &[]);
            }
            _ => {}
        }
    }

    fn write_code(&mut self, language: &str, code: &str, context: BlockContext, drawn: usize) {
        let mut lines = self.highlights.lines(self.code_blocks, language, code, self.theme);
        self.code_blocks += 1;
        if lines.is_empty() && !context.drawn {
            lines.push(Line::default());
        }
        let lines = lines.into_iter().skip(drawn);
        self.page.write_literal(lines, context, &[Span::styled(CODE_BAR, self.theme.dim())]);
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
        let start = self.text_start.take();
        if let Some(table) = self.table.take() {
            let context = self.context(start.unwrap_or(self.part.from));
            let rows = if context.drawn { Vec::new() } else { table.rows(self.page.room(), self.theme) };
            self.page.write_literal(rows, context, &[]);
        }
    }
}

impl Literal {
    fn code(kind: &CodeBlockKind<'_>, context: BlockContext) -> Self {
        let language = match kind {
            CodeBlockKind::Fenced(info) => info.to_string(),
            CodeBlockKind::Indented => String::new(),
        };
        Self { language: Some(language), text: String::new(), context, drawn: 0 }
    }

    fn html(context: BlockContext) -> Self {
        Self { language: None, text: String::new(), context, drawn: 0 }
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

pub(super) fn is_block(tag: &Tag<'_>) -> bool {
    is_block_end(tag.to_end())
}

pub(super) fn is_block_end(tag: TagEnd) -> bool {
    !matches!(tag, TagEnd::Emphasis | TagEnd::Strong | TagEnd::Strikethrough | TagEnd::Link | TagEnd::Image)
}
