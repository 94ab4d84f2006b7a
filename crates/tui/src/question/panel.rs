//! The question as it is on the screen: literal and complete.

use crossterm::event::KeyCode;
use llm_do_core::{
    ApprovalRequest, ExtensionRequest, counted, lookalikes, visible, visible_json, visible_line,
};
use ratatui::text::{Line, Span};
use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

use super::QuestionSubject;
use crate::scroll::Scroll;
use crate::theme::Theme;
use crate::wrap::{columns_of, fitted, literal_rows, rule_width, wrapped};

/// The prefix of rows that continue the row above.
const CONTINUATION: &str = "↪ ";
/// A wider cluster is escaped.
const MAX_CLUSTER_WIDTH: usize = 4;
/// A cluster of more characters is escaped.
const MAX_CLUSTER_CHARS: usize = 12;

/// The rows of a question, and how much of them has been seen.
#[derive(Default)]
pub(crate) struct Panel {
    rows: Vec<Line<'static>>,
    width: u16,
    scroll: Scroll,
    /// So many rows from the first one on have been on the screen, without a gap.
    seen: usize,
    /// Whether the terminal is so narrow that it cuts a row.
    is_cut: bool,
}

impl Panel {
    /// Makes the rows for a width.
    pub(super) fn lay_out(
        &mut self,
        subject: &QuestionSubject,
        task: Option<&str>,
        width: u16,
        theme: Theme,
    ) {
        if width == self.width && !self.rows.is_empty() {
            return;
        }
        let was_whole = self.unseen() == 0 && !self.rows.is_empty();
        self.width = width;
        self.rows = match subject {
            QuestionSubject::Approval(request) => approval_rows(request, task, width, theme),
            QuestionSubject::Extension(request) => extension_rows(request, width, theme),
        };
        self.is_cut = self.rows.iter().any(|row| columns_of(&row.spans) > usize::from(width));
        self.seen = if was_whole { self.rows.len() } else { 0 };
    }

    /// Takes note of the rows that are on the screen.
    pub(super) fn show(&mut self, height: u16) {
        self.scroll.fit(height, self.rows.len());
        let shown = self.scroll.range(self.rows.len());
        if !shown.is_empty() && !self.is_cut && shown.start <= self.seen {
            self.seen = self.seen.max(shown.end);
        }
    }

    pub(super) fn unseen(&self) -> usize {
        self.rows.len().saturating_sub(self.seen)
    }

    pub(super) fn width(&self) -> u16 {
        self.width
    }

    pub(super) fn is_cut(&self) -> bool {
        self.is_cut
    }

    /// Scrolls the text; returns whether the key does that. Only End goes past rows that were not shown: of keys that come
    /// faster than frames, each is one step.
    pub(super) fn scroll(&mut self, code: KeyCode) -> bool {
        let was_within = self.scroll.top() <= self.seen;
        let is_taken = self.scroll.key(code, self.rows.len());
        if was_within && code != KeyCode::End {
            self.scroll.stay_above(self.seen);
        }
        is_taken
    }

    /// Goes back to the first row that was not on the screen, if later ones are on it.
    pub(super) fn go_back_to_unseen(&mut self) {
        self.scroll.stay_above(self.seen);
    }

    /// How many rows it has.
    pub(super) fn len(&self) -> usize {
        self.rows.len()
    }

    /// The rows that are on the screen.
    pub(super) fn visible(&self) -> &[Line<'static>] {
        &self.rows[self.scroll.range(self.rows.len())]
    }

    /// Describes which rows are on the screen; none if all are.
    pub(super) fn describe_rows(&self) -> Option<String> {
        let count = self.rows.len();
        let shown = self.scroll.range(count);
        (shown.len() < count).then(|| format!("rows {}–{} of {count}", shown.start + 1, shown.end))
    }
}

/// Who wants to do what, why it asks, with which arguments, and what it would change.
fn approval_rows(
    request: &ApprovalRequest,
    task: Option<&str>,
    width: u16,
    theme: Theme,
) -> Vec<Line<'static>> {
    let mut rows = text_rows(&request.path, width, theme.strong());
    if let Some(task) = task {
        let line = format!("{} was asked: {task}", request.agent);
        rows.push(Line::styled(fitted(&visible_line(&line), width.into()), theme.dim()));
    }
    rows.extend(text_rows(&request.description, width, ratatui::style::Style::new()));
    rows.extend(text_rows(&request.reason, width, theme.dim()));
    if let Some(problem) = &request.edit_problem {
        rows.extend(text_rows(&format!("the edited arguments do not fit: {problem}"), width, theme.bad()));
    }
    rows.push(rule("arguments", width, theme));
    rows.extend(arguments(request, width));
    rows.extend(warnings(request, width, theme));
    rows.extend(attachments(request, width, theme));
    if let Some(preview) = &request.preview {
        rows.push(rule("preview", width, theme));
        // Not by `lines`, which takes a carriage return for part of the end.
        rows.extend(preview.split_terminator('\n').flat_map(|line| diff_rows(line, width, theme)));
    }
    rows
}

/// A text on as many rows as it needs; line ends in it are escaped.
fn text_rows(text: &str, width: u16, style: ratatui::style::Style) -> Vec<Line<'static>> {
    let text = in_columns(&visible_line(text), |c| c.escape_unicode().to_string());
    wrapped(&Line::styled(text, style), width, &[], &[Span::raw("  ")])
}

fn rule(title: &str, width: u16, theme: Theme) -> Line<'static> {
    let title = format!("── {title} ");
    let rest = usize::from(rule_width(width)).saturating_sub(title.chars().count());
    Line::styled(fitted(&format!("{title}{}", "─".repeat(rest)), width.into()), theme.dim())
}

/// The arguments: JSON that means exactly what would run, with every character visible.
pub(super) fn arguments(request: &ApprovalRequest, width: u16) -> Vec<Line<'static>> {
    let escape = |unit: &u16| format!("\\u{unit:04x}");
    let text = in_columns(&visible_json(request.arguments.value()), |c| {
        c.encode_utf16(&mut [0; 2]).iter().map(escape).collect()
    });
    counted_blanks(&text)
        .lines()
        .flat_map(|line| literal(line, width, ratatui::style::Style::new()))
        .collect()
}

/// Escapes characters that take no column of their own and would be drawn on the character before them, or not at all.
/// The same goes for clusters of so many characters that no row could hold them or no eye
/// could take apart.
pub(super) fn in_columns(text: &str, written_out: impl Fn(char) -> String) -> String {
    if text.is_ascii() {
        return text.to_owned();
    }
    let mut shown = String::with_capacity(text.len());
    for cluster in text.graphemes(true) {
        let is_pile = cluster.width() > MAX_CLUSTER_WIDTH || cluster.chars().count() > MAX_CLUSTER_CHARS;
        if cluster == "\n" || cluster.width() > 0 && !is_pile {
            shown.push_str(cluster);
        } else {
            shown.extend(cluster.chars().map(&written_out));
        }
    }
    shown
}

/// Escapes the last of many blanks before a wide character: if they fill a row and that character does not fit any more,
/// nobody could tell how many they are.
fn counted_blanks(json: &str) -> String {
    const MANY: usize = 16;
    if json.is_ascii() {
        return json.to_owned();
    }
    let mut shown = String::with_capacity(json.len());
    let mut blanks = 0;
    for cluster in json.graphemes(true) {
        if blanks >= MANY && cluster.width() > 1 {
            shown.pop();
            shown.push_str("\\u0020");
        }
        blanks = if cluster == " " { blanks + 1 } else { 0 };
        shown.push_str(cluster);
    }
    shown
}

/// A line as it is, over as many rows as it needs.
fn literal(line: &str, width: u16, style: ratatui::style::Style) -> Vec<Line<'static>> {
    let mark = u16::try_from(CONTINUATION.chars().count()).unwrap_or(0);
    let rows = literal_rows(line, width.saturating_sub(mark).max(1));
    let row = |(index, row): (usize, String)| {
        let mark = if index == 0 { "  " } else { CONTINUATION };
        Line::from(vec![Span::raw(mark), Span::styled(row, style)])
    };
    rows.into_iter().enumerate().map(row).collect()
}

fn diff_rows(line: &str, width: u16, theme: Theme) -> Vec<Line<'static>> {
    let style = match line.as_bytes().first() {
        Some(b'+') => theme.good(),
        Some(b'-') => theme.bad(),
        Some(b'@') => theme.code(),
        _ => ratatui::style::Style::new(),
    };
    // A tab must not look like the blanks that could replace it.
    let text = visible(&line.replace('\t', "→   "));
    literal(&in_columns(&text, |c| c.escape_unicode().to_string()), width, style)
}

/// Characters that look like others.
fn warnings(request: &ApprovalRequest, width: u16, theme: Theme) -> Vec<Line<'static>> {
    let found = lookalikes(request.arguments.text());
    let line = |lookalike: String| {
        text_rows(&format!("looks like something else: {lookalike}"), width, theme.waiting())
    };
    found.into_iter().flat_map(line).collect()
}

fn attachments(request: &ApprovalRequest, width: u16, theme: Theme) -> Vec<Line<'static>> {
    let mut rows = Vec::new();
    for attachment in &request.attachments {
        let kind = attachment.media_type.as_deref().unwrap_or("unknown kind");
        let line = format!("{} ({kind}, {})", attachment.name, counted(attachment.bytes, "byte"));
        rows.extend(text_rows(&line, width, ratatui::style::Style::new()));
    }
    if !rows.is_empty() {
        rows.insert(0, rule("attachments", width, theme));
    }
    rows
}

fn extension_rows(request: &ExtensionRequest, width: u16, theme: Theme) -> Vec<Line<'static>> {
    let unit = request.exhausted.what.unit();
    let mut rows = text_rows(&request.path, width, theme.strong());
    rows.extend(text_rows(&request.exhausted.to_string(), width, ratatui::style::Style::new()));
    rows.extend(text_rows(&format!("extend by how many {unit}?"), width, theme.waiting()));
    rows
}
