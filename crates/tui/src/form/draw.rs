//! Draws a form: a title, the fields below each other, and the keys.

use llm_do_core::visible_line;
use ratatui::buffer::{Buffer, CellWidth};
use ratatui::layout::{Position, Rect};
use serde_json::Value;

use super::Form;
use super::field::{FieldInput, FormField, label_of};
use crate::Theme;
use crate::editor::wrapped;
use crate::wrap::columns;

/// How many rows the text of one field has at most; longer text is scrolled.
const MAX_FIELD_ROWS: u16 = 6;
/// How many rows of a description or problem are shown.
const MAX_NOTE_ROWS: usize = 4;
/// How many choices are listed below their field.
const MAX_CHOICES: usize = 12;
const KEYS: &str = "Tab next · Ctrl-S send · Esc cancel";

impl Form {
    /// Returns how many rows the whole form needs.
    pub(crate) fn height(&self, width: u16) -> u16 {
        let fields: usize =
            (0..self.fields.len()).map(|index| usize::from(self.field_height(index, width))).sum();
        u16::try_from(fields + 2).unwrap_or(u16::MAX)
    }

    /// Draws the form, scrolled to the field with the cursor, and returns where the terminal's cursor belongs.
    pub(crate) fn draw(&self, area: Rect, buffer: &mut Buffer, theme: Theme) -> Option<Position> {
        let area = area.intersection(buffer.area);
        if area.is_empty() {
            return None;
        }
        let fields = self.draw_frame(area, buffer, theme);
        let top = self.top(fields);
        let mut cursor = None;
        let mut y = 0;
        for index in 0..self.fields.len() {
            let height = usize::from(self.field_height(index, fields.width));
            if y + height > top && y < top + usize::from(fields.height) {
                cursor =
                    self.draw_field_at(index, y as isize - top as isize, fields, buffer, theme).or(cursor);
            }
            y += height;
        }
        cursor
    }

    /// Title above and keys below, where there is room for more than a field; returns what is left.
    fn draw_frame(&self, area: Rect, buffer: &mut Buffer, theme: Theme) -> Rect {
        if area.height < 5 {
            return area;
        }
        let width = usize::from(area.width);
        buffer.set_stringn(area.x, area.y, visible_line(&self.title), width, theme.strong());
        buffer.set_stringn(area.x, area.bottom() - 1, KEYS, width, theme.dim());
        Rect { y: area.y + 1, height: area.height - 2, ..area }
    }

    /// The first row that is shown: the least with which the focused field is seen, from its beginning.
    fn top(&self, area: Rect) -> usize {
        let before: usize =
            (0..self.focused).map(|index| usize::from(self.field_height(index, area.width))).sum();
        let end = before + usize::from(self.field_height(self.focused, area.width));
        end.saturating_sub(usize::from(area.height)).min(before)
    }

    /// Draws a field aside and copies the rows of it that are in the area.
    fn draw_field_at(
        &self,
        index: usize,
        offset: isize,
        area: Rect,
        buffer: &mut Buffer,
        theme: Theme,
    ) -> Option<Position> {
        let mut aside = Buffer::empty(Rect::new(0, 0, area.width, self.field_height(index, area.width)));
        let cursor = self.draw_field(index, &mut aside, theme);
        let to_area = |position: Position| {
            let y = u16::try_from(offset + isize::try_from(position.y).ok()?).ok()?;
            (y < area.height).then(|| Position::new(area.x + position.x, area.y + y))
        };
        for position in aside.area.positions() {
            if let Some(target) = to_area(position) {
                buffer[target] = aside[position].clone();
            }
        }
        cursor.and_then(to_area)
    }

    fn field_height(&self, index: usize, width: u16) -> u16 {
        let field = &self.fields[index];
        let text = field.editor().map_or(0, |editor| editor.height(width, MAX_FIELD_ROWS));
        1 + text + u16::try_from(self.notes(index, width).len()).unwrap_or_default()
    }

    /// The rows below a field: its problem, and while it has the cursor its description and help.
    fn notes(&self, index: usize, width: u16) -> Vec<(String, bool)> {
        let field = &self.fields[index];
        let room = usize::from(width.saturating_sub(2));
        let rows = |text: &str, is_problem: bool| -> Vec<_> {
            wrapped(text, room)
                .iter()
                .take(MAX_NOTE_ROWS)
                .map(|row| ((*row).to_owned(), is_problem))
                .collect()
        };
        let advice = [one_line(&field.description), advice(field, width)];
        let advice = advice.iter().filter(|text| index == self.focused && !text.is_empty());
        // The problem comes first: where there is little room, the end is not seen.
        let problem = field.problem.iter().flat_map(|problem| rows(&visible_line(problem), true));
        problem.chain(advice.flat_map(|text| rows(text, false))).collect()
    }

    fn draw_field(&self, index: usize, buffer: &mut Buffer, theme: Theme) -> Option<Position> {
        let field = &self.fields[index];
        let focused = index == self.focused;
        let Rect { width, .. } = buffer.area;
        let end = draw_label(field, focused, buffer, theme);
        let mut cursor = draw_value(field, end, buffer);
        let mut y = 1;
        if let Some(editor) = field.editor() {
            let area = Rect::new(0, y, width, editor.height(width, MAX_FIELD_ROWS));
            cursor = editor.draw(area, buffer, theme);
            y = area.bottom();
        }
        for (y, (text, is_problem)) in (y..).zip(self.notes(index, width)) {
            let style = if is_problem { theme.bad() } else { theme.dim() };
            buffer.set_stringn(0, y, format!("  {text}"), usize::from(width), style);
        }
        cursor.filter(|_| focused)
    }
}

/// The name, a star where something is needed, and what the value may be; returns the column behind them.
fn draw_label(field: &FormField, focused: bool, buffer: &mut Buffer, theme: Theme) -> u16 {
    let width = buffer.area.width;
    let style = if focused { theme.accent() } else { theme.strong() };
    let details =
        if has_bounds_in_label(field, width) { kind_and_bounds(field) } else { in_brackets(kind(field)) };
    let mut x = 0;
    for (text, style) in
        [(visible_line(&field.label), style), (star(field).into(), theme.waiting()), (details, theme.dim())]
    {
        x = buffer.set_stringn(x, 0, text, usize::from(width.saturating_sub(x)), style).0;
    }
    x
}

fn star(field: &FormField) -> &'static str {
    if field.required { " *" } else { "" }
}

/// Whether the row of the label has room for the limits of a value.
fn has_bounds_in_label(field: &FormField, width: u16) -> bool {
    let label = columns(&visible_line(&field.label)) + columns(star(field));
    label + columns(&kind_and_bounds(field)) <= usize::from(width)
}

fn kind_and_bounds(field: &FormField) -> String {
    let parts = [kind(field), &field.bounds];
    let text = parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(", ");
    in_brackets(&text)
}

fn in_brackets(text: &str) -> String {
    if text.is_empty() { String::new() } else { format!(" ({text})") }
}

fn kind(field: &FormField) -> &'static str {
    match field.input {
        FieldInput::Integer(_) => "whole number",
        FieldInput::Number(_) => "number",
        FieldInput::Json(_) => "JSON",
        FieldInput::Text(_) | FieldInput::Flag(_) | FieldInput::Choice { .. } => "",
    }
}

/// Help for the field that has the cursor: its keys, and limits that are not in its label.
fn advice(field: &FormField, width: u16) -> String {
    match &field.input {
        FieldInput::Flag(_) if field.is_optional() => "Space: yes, no or left out".to_owned(),
        FieldInput::Flag(_) => "Space: yes or no".to_owned(),
        FieldInput::Choice { values, .. } if values.len() == 1 && !field.is_optional() => String::new(),
        FieldInput::Choice { values, .. } => describe_choices(values, field.is_optional()),
        _ if has_bounds_in_label(field, width) => String::new(),
        _ => field.bounds.clone(),
    }
}

fn describe_choices(values: &[Value], optional: bool) -> String {
    let mut labels: Vec<String> =
        values.iter().take(MAX_CHOICES).map(|value| one_line(&label_of(value))).collect();
    let hidden = values.len().saturating_sub(MAX_CHOICES);
    labels.extend((hidden > 0).then(|| format!("{hidden} more")));
    labels.extend(optional.then(|| "or none".to_owned()));
    format!("← → choose one of {}", labels.join(", "))
}

/// Draws a switch or choice behind the label, with the cursor on it.
fn draw_value(field: &FormField, x: u16, buffer: &mut Buffer) -> Option<Position> {
    let text = match &field.input {
        FieldInput::Flag(None) => "[-]".to_owned(),
        FieldInput::Flag(Some(true)) => "[x]".to_owned(),
        FieldInput::Flag(Some(false)) => "[ ]".to_owned(),
        FieldInput::Choice { values, chosen } => chosen_text(values, *chosen),
        _ => return None,
    };
    let width = buffer.area.width;
    // Where the label leaves no room, what can be changed is worth more.
    let x = (x + 2).min(width.saturating_sub(text.cell_width()));
    buffer.set_stringn(x, 0, &text, usize::from(width - x), ratatui::style::Style::new());
    Some(Position::new((x + 1).min(width - 1), 0))
}

fn chosen_text(values: &[Value], chosen: Option<usize>) -> String {
    let count = values.len();
    match chosen.and_then(|chosen| Some((chosen, values.get(chosen)?))) {
        Some((chosen, value)) => format!("‹ {} › {}/{count}", visible_line(&label_of(value)), chosen + 1),
        None => format!("‹ › -/{count}"),
    }
}

fn one_line(text: &str) -> String {
    visible_line(&text.split_whitespace().collect::<Vec<_>>().join(" "))
}
