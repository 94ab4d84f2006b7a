//! The scopes that an answer can have, as they are on the screen: each of them whole.

use std::ops::Range;

use llm_do_core::{ApprovalRequest, Scope, visible_line};
use ratatui::text::{Line, Span};

use super::panel::in_columns;
use crate::call_tree::CallTree;
use crate::theme::Theme;
use crate::wrap::{columns, fitted, literal_rows};

/// How many columns the number before a scope takes.
const NUMBER: u16 = 4;

/// The scopes that can be chosen, the narrowest first, each on as many rows as it needs. Another row says what it would
/// have covered; the first row is a title.
pub(super) struct ScopeList {
    scopes: Vec<(Scope, Vec<String>)>,
    width: u16,
}

impl ScopeList {
    pub(super) fn new(request: &ApprovalRequest, width: u16) -> Self {
        let room = width.saturating_sub(NUMBER).max(1);
        let rows = |scope: &Scope| {
            let text = visible_line(&scope.to_string());
            literal_rows(&in_columns(&text, |c| c.escape_unicode().to_string()), room)
        };
        let all = [Scope::Exact].into_iter().chain(request.scopes.iter().cloned());
        Self { scopes: all.map(|scope| (scope.clone(), rows(&scope))).collect(), width }
    }

    pub(super) fn len(&self) -> usize {
        self.scopes.len()
    }

    /// How many rows there are.
    pub(super) fn height(&self) -> usize {
        self.start_of(self.len())
    }

    /// The row at which a scope begins.
    fn start_of(&self, index: usize) -> usize {
        1 + self.scopes.iter().take(index).map(|(_, rows)| rows.len() + 1).sum::<usize>()
    }

    /// The rows that are shown in so much room: the chosen scope is among them.
    pub(super) fn visible_rows(&self, chosen: usize, room: usize) -> Range<usize> {
        let start = if self.height() <= room { 0 } else { self.start_of(chosen + 1).saturating_sub(room) };
        start..(start + room).min(self.height())
    }

    /// Returns whether all of a scope is among some rows, and no row of it is cut.
    pub(super) fn is_whole(&self, index: usize, shown: &Range<usize>) -> bool {
        let Some((_, rows)) = self.scopes.get(index) else { return false };
        let start = self.start_of(index);
        let fits = |row: &String| columns(row) + usize::from(NUMBER) <= usize::from(self.width);
        shown.start <= start && start + rows.len() <= shown.end && rows.iter().all(fits)
    }

    /// All rows.
    pub(super) fn lines(
        &self,
        chosen: Option<usize>,
        request: &ApprovalRequest,
        call_tree: &CallTree,
        theme: Theme,
    ) -> Vec<Line<'static>> {
        let width = usize::from(self.width);
        let title = format!("until this session ends, allow {}", visible_line(&request.agent));
        let mut lines = vec![Line::styled(fitted(&title, width), theme.strong())];
        for (index, (scope, rows)) in self.scopes.iter().enumerate() {
            let style = if Some(index) == chosen { theme.selected() } else { ratatui::style::Style::new() };
            for (number, row) in rows.iter().enumerate() {
                let mark = if number == 0 { format!(" {}  ", index + 1) } else { "    ".to_owned() };
                lines.push(Line::from(Span::styled(format!("{mark}{row} "), style)));
            }
            let past = format!("    {}", describe_past(scope, request, call_tree));
            lines.push(Line::styled(fitted(&past, width), theme.dim()));
        }
        lines
    }
}

/// Describes how many questions so far a scope would have answered.
fn describe_past(scope: &Scope, request: &ApprovalRequest, call_tree: &CallTree) -> String {
    let earlier: Vec<_> = call_tree.asked_before(request).collect();
    if earlier.is_empty() {
        return "no earlier question to compare with".to_owned();
    }
    let is_covered = |other: &&&ApprovalRequest| match scope {
        Scope::Exact => other.arguments == request.arguments,
        scope => scope.covers(&other.subjects),
    };
    let covered = earlier.iter().filter(is_covered).count();
    format!("would have covered {covered} of {} so far", earlier.len())
}
