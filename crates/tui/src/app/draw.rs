//! Draws the live rows, or the tree.

use std::time::Instant;

use llm_do_core::visible_line;
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect, Size};
use ratatui::text::Line;

use super::App;
use crate::protocol::UiCommand;
use crate::theme::Theme;
use crate::view::{Live, Section, Status, activity};
use crate::wrap::{fitted, rule_width};

/// The most rows of the input.
const MAX_INPUT_ROWS: u16 = 10;
/// The most rows of messages that wait.
const MAX_QUEUED_ROWS: usize = 3;
/// If a question has fewer rows than this, the input makes room for it.
const MIN_QUESTION_ROWS: u16 = 5;

impl App {
    /// Draws the live rows, and takes the lines that became final.
    pub(crate) fn draw(
        &mut self,
        size: Size,
        now: Instant,
    ) -> (Vec<Line<'static>>, Buffer, Option<Position>) {
        self.transcript.set_width(size.width);
        self.transcript.settle(&self.call_tree);
        let finished = self.transcript.take();
        let (buffer, cursor) = self.draw_live(size, now);
        (finished, buffer, cursor)
    }

    fn draw_live(&mut self, size: Size, now: Instant) -> (Buffer, Option<Position>) {
        let (width, theme) = (size.width, self.theme);
        let asked = self.lay_out_question(size, now);
        let keys = self.key_hints();
        let (tail, calls) = activity(&self.call_tree, &mut self.transcript, now, width, theme);
        let this = &*self;
        let gap = if calls.is_empty() { Vec::new() } else { vec![Line::default()] };
        let mut sections = vec![Section::Lines(tail), Section::Lines(gap), Section::Lines(calls)];
        if asked > 0 {
            let draw = move |area: Rect, buffer: &mut Buffer| {
                this.questions.draw(area, buffer, &this.call_tree, theme, this.has_input())
            };
            sections.push(Section::Drawn(asked, Box::new(draw)));
        }
        if !this.gives_way(size) {
            this.input_sections(&mut sections, width, size.height);
        }
        let status = match this.questions.hint().filter(|_| size.height < MIN_QUESTION_ROWS) {
            Some(hint) => Line::styled(fitted(&visible_line(hint), width.into()), theme.waiting()),
            None => this.status("", keys, now, width),
        };
        sections.push(Section::Lines(vec![status]));
        let (buffer, cursor) = Live::new(width, size.height).draw(sections);
        (buffer, cursor.filter(|_| !self.in_tree))
    }

    /// Gives the question the room that is left; what is drawn of it counts as seen from then on.
    fn lay_out_question(&mut self, size: Size, now: Instant) -> u16 {
        if self.questions.is_empty() || self.in_tree {
            return 0;
        }
        let input = if self.gives_way(size) { 0 } else { self.input_height(size) };
        let most = size.height.saturating_sub(input.saturating_add(1));
        self.questions.lay_out(size.width, most.saturating_sub(1), &self.call_tree, self.theme, now);
        let wanted = self.questions.wanted_height(size.width, most);
        self.questions.lay_out(size.width, wanted.saturating_sub(1), &self.call_tree, self.theme, now);
        wanted
    }

    /// How many rows the input has, with the rows around it.
    fn input_height(&self, size: Size) -> u16 {
        if let Some(purpose) = &self.form {
            return purpose.form.height(size.width).min(size.height.saturating_sub(2));
        }
        if !self.has_input() {
            return 0;
        }
        let queued = u16::try_from(self.queued.len().min(MAX_QUEUED_ROWS + 1)).unwrap_or(u16::MAX);
        let completion = if self.completion.is_open() { self.completion.height() } else { 0 };
        queued + 1 + self.editor.height(size.width, MAX_INPUT_ROWS) + completion
    }

    /// Whether the input is not shown, as a question that takes the keys needs its room.
    fn gives_way(&self, size: Size) -> bool {
        let left = size.height.saturating_sub(self.input_height(size).saturating_add(1));
        self.questions.has_focus() && left < MIN_QUESTION_ROWS
    }

    fn input_sections<'a>(&'a self, sections: &mut Vec<Section<'a>>, width: u16, height: u16) {
        let theme = self.theme;
        if let Some(purpose) = &self.form {
            let wanted = purpose.form.height(width).min(height.saturating_sub(2));
            let draw = move |area: Rect, buffer: &mut Buffer| purpose.form.draw(area, buffer, theme);
            return sections.push(Section::Drawn(wanted, Box::new(draw)));
        }
        if !self.has_input() {
            return;
        }
        let rule = Line::styled("─".repeat(rule_width(width).into()), theme.dim());
        sections.push(Section::Lines(self.queued_lines(width)));
        sections.push(Section::Lines(vec![rule]));
        let has_focus = self.questions.has_focus();
        let draw = move |area: Rect, buffer: &mut Buffer| {
            self.editor.draw(area, buffer, theme).filter(|_| !has_focus)
        };
        sections.push(Section::Drawn(self.editor.height(width, MAX_INPUT_ROWS), Box::new(draw)));
        if self.completion.is_open() {
            let draw = move |area: Rect, buffer: &mut Buffer| {
                self.completion.draw(area, buffer, theme);
                None
            };
            sections.push(Section::Drawn(self.completion.height(), Box::new(draw)));
        }
    }

    /// The last row: a hint about the last key while there is one, else the state of the run.
    fn status(&self, said: &str, keys: &'static str, now: Instant, width: u16) -> Line<'static> {
        match &self.hint {
            Some((text, _)) => Line::styled(fitted(&visible_line(text), width.into()), self.theme.waiting()),
            None => {
                let status = Status {
                    waiting: self.questions.count(),
                    said,
                    model: self.options.model.as_deref(),
                    keys,
                };
                status.line(&self.call_tree, now, width, self.theme)
            }
        }
    }

    /// The messages that wait; many are counted.
    fn queued_lines(&self, width: u16) -> Vec<Line<'static>> {
        let shown = self.queued.iter().take(MAX_QUEUED_ROWS).map(|outgoing| &outgoing.command);
        let mut lines: Vec<_> = shown.map(|command| queued_line(command, width, self.theme)).collect();
        let hidden = self.queued.len().saturating_sub(MAX_QUEUED_ROWS);
        if hidden > 0 {
            lines.push(Line::styled(format!("and {hidden} more"), self.theme.dim()));
        }
        lines
    }

    /// Returns the keys that can be used now.
    fn key_hints(&self) -> &'static str {
        match (self.busy, self.has_input()) {
            _ if self.questions.has_focus() => "Ctrl-C stops · Ctrl-T tree",
            (true, _) if self.form.is_some() => "Ctrl-C stops · Ctrl-T tree",
            (false, _) if self.form.is_some() => "Ctrl-C twice leaves · Ctrl-T tree",
            (true, _) => "Esc stops · Ctrl-T tree",
            (false, true) => "/help · Ctrl-T tree",
            (false, false) => "",
        }
    }

    /// Draws the tree on the whole screen, and whether questions wait.
    pub(crate) fn draw_tree(&mut self, area: Rect, buffer: &mut Buffer, now: Instant) {
        let [top, body] = ratatui::layout::Layout::vertical([
            ratatui::layout::Constraint::Length(1),
            ratatui::layout::Constraint::Fill(1),
        ])
        .areas(area);
        let said = if self.questions.is_empty() { "" } else { "Esc goes to it" };
        let status = self.status(said, "", now, top.width);
        ratatui::widgets::Widget::render(status, top, buffer);
        self.tree.draw(body, buffer, &self.call_tree, now, self.theme);
    }
}

fn queued_line(command: &UiCommand, width: u16, theme: Theme) -> Line<'static> {
    let text = command.to_text().unwrap_or_default();
    let text = visible_line(&text);
    Line::styled(fitted(&format!("then: {text}"), width.into()), theme.dim())
}
