//! The scopes that an answer can have, as they stand on the screen: each of them whole.

use std::ops::Range;

use llm_do_core::{ApprovalRequest, Scope, visible_line};
use ratatui::text::{Line, Span};

use super::panel::in_columns;
use crate::story::Story;
use crate::theme::Theme;
use crate::wrap::{columns, fitted, literal_rows};

/// How many columns stand before a scope: its number.
const NUMBER: u16 = 4;

/// The scopes that can be chosen, the narrowest first, each on as many rows as it needs. One more row says what it would
/// have covered; a title stands above them all.
pub(super) struct ScopeList {
    scopes: Vec<(Scope, Vec<String>)>,
    width: u16,
}

impl ScopeList {
    pub(super) fn new(request: &ApprovalRequest, width: u16) -> Self {
        let room = width.saturating_sub(NUMBER).max(1);
        let rows = |scope: &Scope| {
            let text = visible_line(&scope.to_string());
            literal_rows(&in_columns(&text, |sign| sign.escape_unicode().to_string()), room)
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
    fn start_of(&self, place: usize) -> usize {
        1 + self.scopes.iter().take(place).map(|(_, rows)| rows.len() + 1).sum::<usize>()
    }

    /// The rows that are shown in so much room: the chosen scope is among them.
    pub(super) fn visible_rows(&self, chosen: usize, room: usize) -> Range<usize> {
        let start = if self.height() <= room { 0 } else { self.start_of(chosen + 1).saturating_sub(room) };
        start..(start + room).min(self.height())
    }

    /// Whether all of a scope is among some rows, and no row of it is cut.
    pub(super) fn is_whole(&self, place: usize, shown: &Range<usize>) -> bool {
        let Some((_, rows)) = self.scopes.get(place) else { return false };
        let start = self.start_of(place);
        let fits = |row: &String| columns(row) + usize::from(NUMBER) <= usize::from(self.width);
        shown.start <= start && start + rows.len() <= shown.end && rows.iter().all(fits)
    }

    /// All rows.
    pub(super) fn lines(
        &self,
        chosen: Option<usize>,
        request: &ApprovalRequest,
        story: &Story,
        theme: Theme,
    ) -> Vec<Line<'static>> {
        let width = usize::from(self.width);
        let title = format!("until this session ends, allow {}", visible_line(&request.agent));
        let mut lines = vec![Line::styled(fitted(&title, width), theme.strong())];
        for (place, (scope, rows)) in self.scopes.iter().enumerate() {
            let style = if Some(place) == chosen { theme.selected() } else { ratatui::style::Style::new() };
            for (number, row) in rows.iter().enumerate() {
                let mark = if number == 0 { format!(" {}  ", place + 1) } else { "    ".to_owned() };
                lines.push(Line::from(Span::styled(format!("{mark}{row} "), style)));
            }
            let past = format!("    {}", past_words(scope, request, story));
            lines.push(Line::styled(fitted(&past, width), theme.dim()));
        }
        lines
    }
}

/// Which questions so far a scope would have answered.
fn past_words(scope: &Scope, request: &ApprovalRequest, story: &Story) -> String {
    let earlier: Vec<_> = story.asked_before(request).collect();
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
