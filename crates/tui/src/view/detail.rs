//! One call in full: its input, its output, its messages and its log.

use std::sync::Arc;

use crossterm::event::KeyCode;
use llm_do_core::{CallKind, CallResult, Content, Message, Output, Part, Role, visible_line};
use ratatui::buffer::Buffer;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::Style;
use ratatui::text::{Line, Span};
use ratatui::widgets::Widget;

use crate::call_tree::{Call, CallIndex};
use crate::markdown::markdown;
use crate::scroll::Scroll;
use crate::theme::Theme;
use crate::wrap::{fitted, plain, prose, wrapped};

/// Longer texts are cut, with a note that they are.
const MAX_TEXT_BYTES: usize = 400_000;

/// What is shown of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Tab {
    Input,
    Output,
    #[default]
    Messages,
    Log,
}

impl Tab {
    /// The one with a number.
    pub(super) fn from_digit(digit: char) -> Self {
        match digit {
            '1' => Self::Input,
            '2' => Self::Output,
            '3' => Self::Messages,
            _ => Self::Log,
        }
    }

    fn all() -> [(Self, &'static str); 4] {
        [
            (Self::Input, "1 input"),
            (Self::Output, "2 output"),
            (Self::Messages, "3 messages"),
            (Self::Log, "4 log"),
        ]
    }
}

/// The text of a call and the part of it that is on the screen.
#[derive(Default)]
pub(crate) struct Detail {
    tab: Tab,
    scroll: Scroll,
    laid: Option<Laid>,
}

/// Rows that stay good until something changes.
struct Laid {
    of: (CallIndex, Tab, u16, u64),
    rows: Vec<Line<'static>>,
    /// The messages among the rows, and where each of them ends: a conversation only grows at its end.
    messages: Vec<(Arc<Message>, usize)>,
}

impl Laid {
    /// Whether its rows are those of an earlier state of the same text.
    fn precedes(&self, of: (CallIndex, Tab, u16, u64)) -> bool {
        (self.of.0, self.of.1, self.of.2) == (of.0, of.1, of.2)
    }
}

impl Detail {
    pub(super) fn turn_to(&mut self, tab: Tab) {
        self.tab = tab;
        self.rewind();
    }

    pub(super) fn rewind(&mut self) {
        self.scroll.rewind();
    }

    /// Scrolls the text; returns whether the key does that.
    pub(super) fn scroll(&mut self, code: KeyCode) -> bool {
        let rows = self.laid.as_ref().map_or(0, |laid| laid.rows.len());
        self.scroll.key(code, rows)
    }

    pub(super) fn draw(
        &mut self,
        area: Rect,
        buffer: &mut Buffer,
        index: CallIndex,
        call: &Call,
        is_read: bool,
        theme: Theme,
    ) {
        let [head, body] = Layout::vertical([Constraint::Length(2), Constraint::Fill(1)]).areas(area);
        self.head(call, head.width, is_read, theme).into_iter().zip(head.y..).for_each(|(line, y)| {
            if y < head.bottom() {
                line.render(Rect { y, height: 1, ..head }, buffer);
            }
        });
        self.lay_out(index, call, body.width, theme);
        let rows = self.laid.as_ref().map_or(&[][..], |laid| &laid.rows[..]);
        self.scroll.fit(body.height, rows.len());
        for (y, line) in (body.y..body.bottom()).zip(&rows[self.scroll.range(rows.len())]) {
            line.render(Rect { y, height: 1, ..body }, buffer);
        }
    }

    fn head(&self, call: &Call, width: u16, is_read: bool, theme: Theme) -> [Line<'static>; 2] {
        let path = fitted(&visible_line(&call.path), width.into());
        let style = if is_read { theme.accent() } else { theme.strong() };
        let tabs = Tab::all().into_iter().flat_map(|(tab, title)| {
            let style = if tab == self.tab { theme.selected() } else { theme.dim() };
            [Span::styled(title, style), Span::raw("  ")]
        });
        [Line::styled(path, style), Line::from(tabs.collect::<Vec<_>>())]
    }

    fn lay_out(&mut self, index: CallIndex, call: &Call, width: u16, theme: Theme) {
        let of = (index, self.tab, width, call.version);
        if self.laid.as_ref().is_some_and(|laid| laid.of == of) {
            return;
        }
        let earlier = self.laid.take().filter(|laid| laid.precedes(of));
        let mut laid = Laid { of, rows: Vec::new(), messages: Vec::new() };
        match self.tab {
            Tab::Input => laid.rows = json_rows(call.input.value(), width, theme),
            Tab::Output => laid.rows = output_rows(call, width, theme),
            Tab::Messages if call.kind != CallKind::Agent => laid.rows = exchange_rows(call, width, theme),
            Tab::Messages => {
                (laid.rows, laid.messages) =
                    earlier.map(|laid| (laid.rows, laid.messages)).unwrap_or_default();
                lay_out_messages(&mut laid, call, width, theme);
            }
            Tab::Log => laid.rows = text_rows(&call.stderr.join("\n"), width, Style::new()),
        }
        if laid.rows.is_empty() {
            laid.rows.push(Line::styled("nothing yet", theme.dim()));
        }
        self.laid = Some(laid);
    }
}

fn json_rows(value: &serde_json::Value, width: u16, theme: Theme) -> Vec<Line<'static>> {
    let text = cut(&serde_json::to_string_pretty(value).unwrap_or_default());
    markdown(&format!("~~~~~json\n{text}\n~~~~~"), width, theme)
}

fn output_rows(call: &Call, width: u16, theme: Theme) -> Vec<Line<'static>> {
    match &call.result {
        None => Vec::new(),
        Some(CallResult::Error(failure)) => {
            let hint = failure.hint.iter().map(|hint| format!("\nhint: {hint}"));
            text_rows(&format!("{}{}", failure.message, hint.collect::<String>()), width, theme.bad())
        }
        Some(CallResult::Output(output)) => content_rows(output, width, theme),
    }
}

fn content_rows(output: &Output, width: u16, theme: Theme) -> Vec<Line<'static>> {
    let mut rows = match &output.content {
        Content::Text(text) => text_rows(text, width, Style::new()),
        Content::Json(value) => json_rows(value, width, theme),
    };
    for attachment in &output.attachments {
        let kind = attachment.media_type.as_deref().unwrap_or("a file");
        rows.push(Line::styled(visible_line(&format!("[{}: {kind}]", attachment.name)), theme.dim()));
    }
    rows
}

/// A tool has no messages: what it was given and what it gave.
fn exchange_rows(call: &Call, width: u16, theme: Theme) -> Vec<Line<'static>> {
    let mut rows = vec![Line::styled("given", theme.heading())];
    rows.extend(json_rows(call.input.value(), width, theme));
    if call.result.is_some() {
        rows.extend([Line::default(), Line::styled("gave", theme.heading())]);
        rows.extend(output_rows(call, width, theme));
    }
    rows
}

/// Lays out the messages that are new; the rows of those before them stay.
fn lay_out_messages(laid: &mut Laid, call: &Call, width: u16, theme: Theme) {
    let all = || call.messages.iter().chain(&call.reply);
    let same = laid.messages.iter().zip(all()).take_while(|((old, _), new)| Arc::ptr_eq(old, new)).count();
    laid.messages.truncate(same);
    match laid.messages.last() {
        Some((_, end)) => laid.rows.truncate(*end),
        None => laid.rows = instruction_rows(call, width, theme),
    }
    for message in all().skip(same) {
        if !laid.rows.is_empty() {
            laid.rows.push(Line::default());
        }
        laid.rows.extend(one_message(message, width, theme));
        laid.messages.push((message.clone(), laid.rows.len()));
    }
}

fn instruction_rows(call: &Call, width: u16, theme: Theme) -> Vec<Line<'static>> {
    let Some(instructions) = &call.instructions else { return Vec::new() };
    let mut rows = vec![Line::styled("instructions", theme.heading())];
    rows.extend(text_rows(instructions, width, theme.dim()));
    rows
}

fn one_message(message: &Message, width: u16, theme: Theme) -> Vec<Line<'static>> {
    let who = match message.role {
        Role::User => "to the model",
        Role::Assistant => "the model",
    };
    let mut rows = vec![Line::styled(who, theme.heading())];
    for part in &message.parts {
        rows.extend(part_rows(part, message.role, width, theme));
    }
    rows
}

fn part_rows(part: &Part, role: Role, width: u16, theme: Theme) -> Vec<Line<'static>> {
    match part {
        Part::Text { text, .. } if role == Role::Assistant => markdown(&cut(text), width, theme),
        Part::Text { text, .. } => rows_of(&prose(&cut(text)), width, Style::new()),
        Part::Thinking { text, .. } => rows_of(&prose(&cut(text)), width, theme.dim().italic()),
        Part::ToolCall(call) => {
            text_rows(&format!("→ {} {}", call.name, call.arguments), width, theme.accent())
        }
        Part::ToolResult(result) => {
            let style = if result.is_error { theme.bad() } else { Style::new() };
            text_rows(&format!("← {}: {}", result.name, result.text), width, style)
        }
        Part::Attachment(attachment) => text_rows(&format!("[{}]", attachment.name), width, theme.dim()),
        Part::Opaque(block) => text_rows(&format!("[a block of {}]", block.provider), width, theme.dim()),
    }
}

fn text_rows(text: &str, width: u16, style: Style) -> Vec<Line<'static>> {
    rows_of(&plain(&cut(text)), width, style)
}

fn rows_of(text: &str, width: u16, style: Style) -> Vec<Line<'static>> {
    text.lines().flat_map(|line| wrapped(&Line::styled(line.to_owned(), style), width, &[], &[])).collect()
}

/// The start of a text that is too long to be laid out whole.
fn cut(text: &str) -> String {
    if text.len() <= MAX_TEXT_BYTES {
        return text.to_owned();
    }
    let end = (0..=MAX_TEXT_BYTES).rev().find(|index| text.is_char_boundary(*index)).unwrap_or(0);
    format!("{}\n… {} bytes in all", &text[..end], text.len())
}
