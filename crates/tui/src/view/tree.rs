//! The tree of calls on the whole screen: what runs and ran, with one of them at length.

use std::collections::HashSet;
use std::time::Instant;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use llm_do_core::visible_line;
use ratatui::buffer::Buffer;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::Style;
use ratatui::text::{Line, Span};
use ratatui::widgets::Widget;

use super::detail::{Detail, Tab};
use crate::call_tree::{Call, CallIndex, CallState, CallTree};
use crate::question::key_line;
use crate::theme::Theme;
use crate::transcript::{describe_input, format_count, mark_of, seconds};
use crate::wrap::{columns, fitted};

/// From this width on, tree and call are side by side.
const SIDE_BY_SIDE: u16 = 130;
/// The columns between them.
const GAP: u16 = 3;

/// What the person looks at in the tree.
#[derive(Default)]
pub(crate) struct TreeView {
    /// The chosen call; none means the newest one, whichever that is.
    chosen: Option<CallIndex>,
    /// Calls whose own calls are not shown.
    folded: HashSet<CallIndex>,
    /// Whether keys scroll the call and not the tree.
    reads: bool,
    detail: Detail,
    /// The first row of the tree on the screen, and how many there are.
    top: usize,
    height: usize,
}

/// What a key did.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum TreeStep {
    Nothing,
    Taken,
    Close,
    /// This call shall end.
    Cancel(CallIndex),
}

impl TreeView {
    /// Takes a key.
    pub(crate) fn key(&mut self, key: KeyEvent, call_tree: &CallTree) -> TreeStep {
        if key.modifiers.intersects(KeyModifiers::CONTROL | KeyModifiers::ALT) {
            return TreeStep::Nothing;
        }
        match key.code {
            KeyCode::Esc | KeyCode::Char('q') => return TreeStep::Close,
            KeyCode::Tab => self.reads = !self.reads,
            KeyCode::Char(c @ '1'..='4') => self.detail.turn_to(Tab::from_digit(c)),
            KeyCode::Char('c') => return self.cancel(call_tree),
            code if self.reads => return self.detail_key(code),
            code => return self.tree_key(code, call_tree),
        }
        TreeStep::Taken
    }

    fn detail_key(&mut self, code: KeyCode) -> TreeStep {
        if self.detail.scroll(code) { TreeStep::Taken } else { TreeStep::Nothing }
    }

    fn tree_key(&mut self, code: KeyCode, call_tree: &CallTree) -> TreeStep {
        let rows = self.rows(call_tree);
        let Some(selected) = self.selected(call_tree) else { return TreeStep::Nothing };
        let index = rows.iter().position(|row| *row == selected).unwrap_or(0);
        let page = self.height.max(1);
        match code {
            KeyCode::Up | KeyCode::Char('k') => self.choose(&rows, index.saturating_sub(1)),
            KeyCode::Down | KeyCode::Char('j') => self.choose(&rows, index + 1),
            KeyCode::PageUp => self.choose(&rows, index.saturating_sub(page)),
            KeyCode::PageDown => self.choose(&rows, index + page),
            KeyCode::Home => self.choose(&rows, 0),
            KeyCode::End => self.choose(&rows, rows.len()),
            KeyCode::Left | KeyCode::Char('h') => self.fold(selected, call_tree),
            KeyCode::Right | KeyCode::Char('l') => {
                self.folded.remove(&selected);
            }
            KeyCode::Enter => self.reads = true,
            _ => return TreeStep::Nothing,
        }
        TreeStep::Taken
    }

    fn choose(&mut self, rows: &[CallIndex], index: usize) {
        self.chosen = rows.get(index.min(rows.len().saturating_sub(1))).copied();
        self.detail.rewind();
    }

    /// Folds a call, or goes up to its caller where there is nothing to fold.
    fn fold(&mut self, index: CallIndex, call_tree: &CallTree) {
        let Some(call) = call_tree.call(index) else { return };
        if !call.children.is_empty() && self.folded.insert(index) {
            return;
        }
        if call.parent.is_some() {
            self.chosen = call.parent;
        }
    }

    fn cancel(&self, call_tree: &CallTree) -> TreeStep {
        let open = self.selected(call_tree).filter(|index| call_tree.call(*index).is_some_and(Call::is_open));
        open.map_or(TreeStep::Taken, TreeStep::Cancel)
    }

    /// The chosen call: the newest top one where none was chosen.
    fn selected(&self, call_tree: &CallTree) -> Option<CallIndex> {
        self.chosen.or_else(|| call_tree.roots().last().copied())
    }

    /// The calls that are shown, callers before what they called.
    fn rows(&self, call_tree: &CallTree) -> Vec<CallIndex> {
        let mut rows = Vec::new();
        let mut open: Vec<CallIndex> = call_tree.roots().iter().rev().copied().collect();
        while let Some(index) = open.pop() {
            rows.push(index);
            if !self.folded.contains(&index) {
                open.extend(call_tree.call(index).into_iter().flat_map(|call| call.children.iter().rev()));
            }
        }
        rows
    }

    /// Draws tree and call, side by side or one above the other.
    pub(crate) fn draw(
        &mut self,
        area: Rect,
        buffer: &mut Buffer,
        call_tree: &CallTree,
        now: Instant,
        theme: Theme,
    ) {
        let [body, footer] = Layout::vertical([Constraint::Fill(1), Constraint::Length(1)]).areas(area);
        let (tree, detail) = self.split(body);
        draw_border(tree, detail, buffer, theme);
        self.draw_tree(tree, buffer, call_tree, now, theme);
        if let Some(call) = self.selected(call_tree).and_then(|index| Some((index, call_tree.call(index)?))) {
            self.detail.draw(detail, buffer, call.0, call.1, self.reads, theme);
        }
        self.footer(footer.width, call_tree, theme).render(footer, buffer);
    }

    fn split(&self, body: Rect) -> (Rect, Rect) {
        if body.width >= SIDE_BY_SIDE {
            let [tree, detail] = Layout::horizontal([Constraint::Percentage(50), Constraint::Fill(1)])
                .spacing(GAP)
                .areas(body);
            return (tree, detail);
        }
        let share = if self.reads { Constraint::Percentage(25) } else { Constraint::Percentage(55) };
        let [tree, detail] = Layout::vertical([share, Constraint::Fill(1)]).areas(body);
        (tree, detail)
    }

    fn footer(&self, width: u16, call_tree: &CallTree, theme: Theme) -> Line<'static> {
        let selected = self.selected(call_tree);
        let is_open = selected.and_then(|index| call_tree.call(index)).is_some_and(Call::is_open);
        let mut keys =
            vec![("Esc", "back"), ("↑↓", "choose"), ("Tab", "read"), ("1-4", "tabs"), ("←→", "fold")];
        if is_open {
            keys.insert(1, ("c", "cancel it"));
        }
        if self.reads {
            keys = vec![("Tab", "tree"), ("↑↓", "scroll"), ("1-4", "tabs"), ("Esc", "back")];
        }
        key_line(&keys, width, theme)
    }

    fn draw_tree(
        &mut self,
        area: Rect,
        buffer: &mut Buffer,
        call_tree: &CallTree,
        now: Instant,
        theme: Theme,
    ) {
        let rows = self.rows(call_tree);
        let [head, body] = Layout::vertical([Constraint::Length(1), Constraint::Fill(1)]).areas(area);
        let columns = Columns::for_width(area.width);
        columns.header(rows.len(), area.width, theme).render(head, buffer);
        let selected = self.selected(call_tree);
        let index = rows.iter().position(|row| Some(*row) == selected).unwrap_or(0);
        self.height = body.height.into();
        self.follow(index, rows.len());
        for (y, row) in (body.y..body.bottom()).zip(&rows[self.top.min(rows.len())..]) {
            let Some(call) = call_tree.call(*row) else { continue };
            let is_folded = self.folded.contains(row);
            let line = columns.row(call, is_folded, call_tree.waits_below(*row), now, area.width, theme);
            let row_area = Rect { y, height: 1, ..body };
            line.render(row_area, buffer);
            if Some(*row) == selected {
                let style = if self.reads { theme.strong() } else { theme.selected() };
                buffer.set_style(row_area, style);
            }
        }
    }

    /// Keeps the chosen row on the screen.
    fn follow(&mut self, index: usize, rows: usize) {
        self.top = self.top.min(index).max((index + 1).saturating_sub(self.height));
        self.top = self.top.min(rows.saturating_sub(self.height.max(1)));
    }
}

/// A line between tree and call if they are side by side.
fn draw_border(tree: Rect, detail: Rect, buffer: &mut Buffer, theme: Theme) {
    if tree.right() < detail.x {
        for y in tree.y..tree.bottom() {
            buffer.set_string(tree.right() + GAP / 2, y, "│", theme.dim());
        }
    }
}

/// The columns of the tree, as many as the width allows.
struct Columns {
    model: bool,
    tokens: bool,
    cost: bool,
}

const MODEL: usize = 18;
const NUMBER: usize = 9;

impl Columns {
    fn for_width(width: u16) -> Self {
        Self { model: width >= 64, tokens: width >= 44, cost: width >= 56 }
    }

    fn right_width(&self) -> usize {
        let optional = |shown: bool, width: usize| if shown { width } else { 0 };
        NUMBER + optional(self.model, MODEL) + optional(self.tokens, NUMBER) + optional(self.cost, NUMBER)
    }

    fn header(&self, count: usize, width: u16, theme: Theme) -> Line<'static> {
        let calls = if count == 1 { "1 call".to_owned() } else { format!("{count} calls") };
        let right = self.right("model", "time", "tokens", "cost");
        let room = usize::from(width).saturating_sub(columns(&right));
        Line::styled(format!("{}{right}", padded(&calls, room)), theme.dim())
    }

    fn right(&self, model: &str, time: &str, tokens: &str, cost: &str) -> String {
        let mut text = String::new();
        if self.model {
            text.push(' ');
            text.push_str(&padded(&fitted(model, MODEL - 1), MODEL - 1));
        }
        text.push_str(&format!("{time:>NUMBER$}"));
        if self.tokens {
            text.push_str(&format!("{tokens:>NUMBER$}"));
        }
        if self.cost {
            text.push_str(&format!("{cost:>NUMBER$}"));
        }
        text
    }

    fn row(
        &self,
        call: &Call,
        is_folded: bool,
        waits: bool,
        now: Instant,
        width: u16,
        theme: Theme,
    ) -> Line<'static> {
        let state = if waits && call.state == CallState::Running { CallState::Asking } else { call.state };
        let (mark, style) = mark_of(state, theme);
        let indent = (call.level * 2).min(usize::from(width) / 4);
        let fold = if is_folded { format!(" +{}", call.children.len()) } else { String::new() };
        let name = format!("{}{fold}", visible_line(&call.name));
        let room = usize::from(width).saturating_sub(self.right_width() + indent + 2);
        let model = call.model.as_deref().map(visible_line).unwrap_or_default();
        let tokens = match call.usage.tokens() {
            0 => String::new(),
            tokens => format_count(tokens),
        };
        let cost =
            if call.usage.cost.known.0 == 0 { String::new() } else { call.usage.cost.known.to_string() };
        let right = self.right(&model, &format_elapsed(call, now), &tokens, &cost);
        let input = room.saturating_sub(columns(&name) + 2);
        let input = if input < 8 { String::new() } else { fitted(&describe_input(call), input) };
        let gap =
            " ".repeat(room.saturating_sub(columns(&name).min(room) + columns(&input)).saturating_sub(2));
        let name_style =
            if call.kind == llm_do_core::CallKind::Agent { theme.strong() } else { Style::new() };
        Line::from(vec![
            Span::raw(" ".repeat(indent)),
            Span::styled(format!("{mark} "), style),
            Span::styled(fitted(&name, room), name_style),
            Span::styled(format!("  {input}{gap}"), theme.dim()),
            Span::styled(right, theme.dim()),
        ])
    }
}

/// The time of a call; of one that runs in whole seconds, so that rows do not flicker.
fn format_elapsed(call: &Call, now: Instant) -> String {
    let elapsed = call.elapsed(now);
    if call.is_open() && elapsed.as_secs() < 60 {
        format!("{} s", elapsed.as_secs())
    } else {
        seconds(elapsed)
    }
}

/// A text with blanks behind it up to a width.
fn padded(text: &str, width: usize) -> String {
    let missing = width.saturating_sub(columns(text));
    format!("{text}{}", " ".repeat(missing))
}
