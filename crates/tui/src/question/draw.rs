//! Draws the question that is on the screen.

use llm_do_core::visible_line;
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use ratatui::text::{Line, Span};
use ratatui::widgets::Widget;

use super::answer_editor;
use super::focus::AnswerMode;
use super::scopes::ScopeList;
use super::{Panel, QuestionSubject, Questions};
use crate::call_tree::CallTree;
use crate::theme::Theme;
use crate::wrap::{fitted, rule_width};

impl Questions {
    /// How many rows the question would like to have: title, text, what is typed, choices.
    pub(crate) fn wanted_height(&self, width: u16, max: u16) -> u16 {
        let Some(question) = self.open.get(self.current) else { return 0 };
        let text = match &self.panel {
            Some(panel) => panel.len(),
            None => usize::from(max),
        };
        let editor = self.editor.as_deref();
        let below = answer_editor::rows_below(self.focus.mode(), editor, &question.subject, width, max);
        u16::try_from(text).unwrap_or(u16::MAX).saturating_add(below + 1).min(max)
    }

    /// Draws it; returns where the cursor belongs if something is typed.
    pub(crate) fn draw(
        &self,
        area: Rect,
        buffer: &mut Buffer,
        call_tree: &CallTree,
        theme: Theme,
        has_input: bool,
    ) -> Option<Position> {
        let question = self.open.get(self.current)?;
        let panel = self.panel.as_ref()?;
        let mut rows = Rows { area, next: 0 };
        rows.line(buffer, &self.title(&question.subject, panel, area.width, theme));
        for line in panel.visible() {
            rows.line(buffer, line);
        }
        let cursor = self.draw_answer(&question.subject, &mut rows, buffer, call_tree, theme);
        rows.line(buffer, &self.footer(&question.subject, area.width, theme, has_input));
        cursor.filter(|_| self.has_focus())
    }

    fn title(&self, subject: &QuestionSubject, panel: &Panel, width: u16, theme: Theme) -> Line<'static> {
        let count = self.open.len();
        let kind = match subject {
            QuestionSubject::Approval(_) => "approval",
            QuestionSubject::Extension(_) => "budget",
        };
        let number =
            if count > 1 { format!(" {} of {count} ←→", self.current + 1) } else { String::new() };
        let rows = panel.describe_rows().map(|rows| format!(" · {rows}")).unwrap_or_default();
        let title = format!("━━ {kind}{number}{rows} ");
        let rest = usize::from(rule_width(width)).saturating_sub(title.chars().count());
        Line::styled(fitted(&format!("{title}{}", "━".repeat(rest)), width.into()), theme.waiting())
    }

    fn draw_answer(
        &self,
        subject: &QuestionSubject,
        rows: &mut Rows,
        buffer: &mut Buffer,
        call_tree: &CallTree,
        theme: Theme,
    ) -> Option<Position> {
        match (self.focus.mode(), subject) {
            (AnswerMode::Scopes { selected, .. }, QuestionSubject::Approval(request)) => {
                let list = ScopeList::new(request, rows.area.width);
                let visible = self.visible_scope_rows.clone().unwrap_or_default();
                for line in list.lines(selected, request, call_tree, theme).get(visible).unwrap_or_default() {
                    rows.line(buffer, line);
                }
                None
            }
            (AnswerMode::Editing | AnswerMode::Denying | AnswerMode::Amount, _) => {
                let editor = self.editor.as_deref()?;
                let area = rows.rest_but(1);
                let height = editor.height(area.width, area.height).min(area.height);
                let area = Rect { height, ..area };
                rows.next += height;
                editor.draw(area, buffer, theme)
            }
            _ => None,
        }
    }

    fn footer(&self, subject: &QuestionSubject, width: u16, theme: Theme, has_input: bool) -> Line<'static> {
        if let Some(hint) = &self.hint {
            return Line::styled(fitted(&visible_line(hint), width.into()), theme.waiting());
        }
        if !self.has_focus() {
            let message = match has_input {
                true => "Tab answers; typing goes to the input",
                false => "read it first; then one key answers",
            };
            return Line::styled(fitted(message, width.into()), theme.dim());
        }
        match (self.focus.mode(), subject) {
            (AnswerMode::Choosing, QuestionSubject::Approval(request)) => {
                choices(!request.scopes.is_empty(), width, theme)
            }
            (AnswerMode::Choosing | AnswerMode::Amount, _) => {
                key_line(&[("Enter", "answers"), ("Tab", "later")], width, theme)
            }
            (AnswerMode::Scopes { is_readable: false, .. }, _) => {
                Line::styled(fitted("read them first; then a number allows one", width.into()), theme.dim())
            }
            (AnswerMode::Scopes { .. }, _) => {
                key_line(&[("1-9", "allows"), ("↑↓ Enter", "too"), ("Esc", "back")], width, theme)
            }
            (AnswerMode::Editing, _) => key_line(
                &[("Ctrl-S", "asks again with it"), ("Ctrl-X", "$EDITOR"), ("Esc", "back")],
                width,
                theme,
            ),
            (AnswerMode::Denying, _) => key_line(&[("Enter", "denies"), ("Esc", "back")], width, theme),
        }
    }
}

/// The answers and their keys, as many as fit; the first ones matter most.
fn choices(has_scopes: bool, width: u16, theme: Theme) -> Line<'static> {
    let mut keys = vec![("y", "once"), ("n", "deny"), ("q", "stop"), ("e", "edit")];
    if has_scopes {
        keys.insert(1, ("a", "always…"));
    }
    key_line(&keys, width, theme)
}

/// Keys with what they do, as many as fit: with brackets, closer together or closest, if that shows all of them.
pub(crate) fn key_line(keys: &[(&'static str, &'static str)], width: u16, theme: Theme) -> Line<'static> {
    let length = |(key, label): &(&str, &str)| key.chars().count() + 1 + label.chars().count();
    let whole: usize = keys.iter().map(length).sum();
    let (room, gaps) = (usize::from(width), keys.len().saturating_sub(1));
    let has_brackets = whole + 2 * keys.len() + 2 * gaps <= room;
    let gap = if whole + 2 * gaps <= room { "  " } else { "·" };
    let mut spans = Vec::new();
    let mut taken = 0;
    for (key, label) in keys {
        let gap = if spans.is_empty() { "" } else { gap };
        taken += gap.chars().count() + length(&(key, label));
        if !has_brackets && taken > room {
            break;
        }
        let key = if has_brackets { format!("[{key}]") } else { (*key).to_owned() };
        spans.push(Span::raw(gap));
        spans.push(Span::styled(key, theme.accent()));
        spans.push(Span::raw(format!(" {label}")));
    }
    Line::from(spans)
}

/// Rows of an area, from the top down.
struct Rows {
    area: Rect,
    next: u16,
}

impl Rows {
    fn line(&mut self, buffer: &mut Buffer, line: &Line<'_>) {
        if self.next < self.area.height {
            let row = Rect { y: self.area.y + self.next, height: 1, ..self.area };
            line.render(row, buffer);
        }
        self.next += 1;
    }

    /// What is left, but for some rows.
    fn rest_but(&self, rows: u16) -> Rect {
        let height = self.area.height.saturating_sub(self.next + rows);
        Rect { y: self.area.y + self.next.min(self.area.height), height, ..self.area }
    }
}
