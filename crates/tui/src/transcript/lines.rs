//! The lines of which the transcript is made.

use std::time::Duration;

use llm_do_core::{
    Attachment, CallKind, CallResult, Decision, Status, Usage, counted, visible, visible_line,
};
use ratatui::style::Style;
use ratatui::text::{Line, Span};

use crate::call_tree::{Call, CallState};
use crate::theme::Theme;
use crate::wrap::{columns, fitted, plain, prose, wrapped};

/// How many rows of arguments or of a result an unfolded call shows.
const UNFOLDED: usize = 12;
/// How many rows of thoughts are shown while they come.
const THOUGHTS: usize = 3;

/// What the person said.
pub(super) fn message(text: &str, width: u16, theme: Theme) -> Vec<Line<'static>> {
    let mut made = Vec::new();
    for (index, line) in prose(text).lines().enumerate() {
        let mark = if index == 0 { Span::styled("> ", theme.accent()) } else { Span::raw("  ") };
        let line = Line::styled(line.to_owned(), theme.strong());
        made.extend(wrapped(&line, width, &[mark], &[Span::raw("  ")]));
    }
    made
}

/// Words of the UI itself, line by line.
pub(super) fn remark(text: &str, width: u16, theme: Theme) -> Vec<Line<'static>> {
    plain_rows(text, width, theme.dim())
}

fn plain_rows(text: &str, width: u16, style: Style) -> Vec<Line<'static>> {
    let text = plain(text);
    text.lines().flat_map(|line| wrapped(&Line::styled(line.to_owned(), style), width, &[], &[])).collect()
}

/// A word and what it means, in two columns.
pub(super) fn meaning(word: &str, meaning: &'static str, width: u16, theme: Theme) -> Vec<Line<'static>> {
    const WORD: usize = 13;
    let gap = WORD.saturating_sub(columns(word));
    let first = [Span::styled(word.to_owned(), theme.accent()), Span::raw(" ".repeat(gap))];
    let rest = [Span::raw(" ".repeat(WORD.min(usize::from(width) / 3)))];
    wrapped(&Line::raw(meaning), width, &first, &rest)
}

/// A line of somebody's error log, or something that a person should know.
pub(super) fn note(word: &str, path: &str, text: &str, width: u16, theme: Theme) -> Vec<Line<'static>> {
    let who = if path.is_empty() { String::new() } else { format!("{}: ", visible_line(path)) };
    let first = [Span::styled(format!("{word} "), theme.waiting()), Span::styled(who, theme.dim())];
    let rest = [Span::raw("  ")];
    let text = plain(text);
    let mut made = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let first: &[Span<'static>] = if index == 0 { &first } else { &rest };
        made.extend(wrapped(&Line::raw(line.to_owned()), width, first, &rest));
    }
    made
}

/// A message with its kind in front.
pub(super) fn wrapped_message(
    word: &'static str,
    text: &str,
    width: u16,
    theme: Theme,
) -> Vec<Line<'static>> {
    let first = [Span::styled(format!("{word}: "), theme.bad().patch(theme.strong()))];
    let mut made = Vec::new();
    for (index, line) in visible(text).lines().enumerate() {
        let first: &[Span<'static>] = if index == 0 { &first } else { &[] };
        made.extend(wrapped(&Line::raw(line.to_owned()), width, first, &[]));
    }
    made
}

pub(super) fn dim(text: &'static str, theme: Theme) -> Line<'static> {
    Line::styled(text, theme.dim())
}

/// Thoughts, at length or folded to a line.
pub(super) fn thinking(
    text: &str,
    took: Duration,
    unfolded: bool,
    width: u16,
    theme: Theme,
) -> Vec<Line<'static>> {
    if unfolded {
        return thought_rows(text.trim(), width, theme);
    }
    let style = theme.dim().italic();
    let count = text.split_whitespace().count();
    let head = format!("✻ thought for {} ({}): ", seconds(took), counted(count, "word"));
    let room = usize::from(width).saturating_sub(head.chars().count());
    let first = prose(text.trim().lines().next().unwrap_or_default());
    vec![Line::styled(fitted(&format!("{head}{}", fitted(&first, room.max(8))), width.into()), style)]
}

/// Thoughts behind a bar, which tells them from an answer without colors too.
fn thought_rows(text: &str, width: u16, theme: Theme) -> Vec<Line<'static>> {
    let bar = [Span::styled("┆ ", theme.dim())];
    let text = prose(text);
    let line = |line: &str| wrapped(&Line::styled(line.to_owned(), theme.dim().italic()), width, &bar, &bar);
    text.lines().flat_map(line).collect()
}

/// The end of the thoughts that come now.
pub(super) fn thinks(text: &str, width: u16, theme: Theme) -> Vec<Line<'static>> {
    if text.trim().is_empty() {
        return Vec::new();
    }
    let start = text.char_indices().rev().nth(600).map_or(0, |(index, _)| index);
    let rows = thought_rows(text[start..].trim(), width, theme);
    let from = rows.len().saturating_sub(THOUGHTS);
    rows.into_iter().skip(from).collect()
}

/// Whose words follow.
pub(super) fn speaker(call: &Call, width: u16, theme: Theme) -> Line<'static> {
    named("◆", call, width, theme)
}

/// An agent begins.
pub(super) fn agent_called(call: &Call, width: u16, theme: Theme) -> Line<'static> {
    named("▸", call, width, theme)
}

/// An agent by its name and its input, as there may be several of that name.
fn named(mark: &str, call: &Call, width: u16, theme: Theme) -> Line<'static> {
    let name = format!("{mark} {}", visible_line(&call.name));
    let room = usize::from(width).saturating_sub(columns(&name) + 1);
    Line::from(vec![
        Span::styled(name, theme.accent()),
        Span::styled(format!(" {}", fitted(&describe_input(call), room)), theme.dim()),
    ])
}

/// The beginning of a call's input on one line: a lone text as it is, everything else as JSON.
pub(crate) fn describe_input(call: &Call) -> String {
    shortened(call.input.lone_text().unwrap_or(call.input.text()))
}

/// The beginning of a text on one line, with control characters escaped. No row holds more, and rows are drawn
/// again and again.
fn shortened(text: &str) -> String {
    let most = text.char_indices().nth(2_000).map_or(text.len(), |(index, _)| index);
    visible_line(&text[..most])
}

/// A person allowed a call.
pub(super) fn allowed(call: &Call, decision: &Decision, width: u16, theme: Theme) -> Line<'static> {
    let how = match decision {
        Decision::Allow(permit) => match (&permit.grant, permit.edited) {
            (Some(grant), _) => {
                format!("you allowed {} until this session ends", visible_line(&grant.scope.to_string()))
            }
            (None, true) => "you allowed it with changed arguments".to_owned(),
            (None, false) => "you allowed it once".to_owned(),
        },
        Decision::Refuse(_) => String::new(),
    };
    let text = fitted(&format!("✓ {}: {how}", visible_line(&call.name)), width.into());
    Line::styled(text, theme.good())
}

/// A call ended: a line, or at length.
pub(super) fn returned(
    call: &Call,
    result: &CallResult,
    unfolded: bool,
    width: u16,
    theme: Theme,
) -> Vec<Line<'static>> {
    let head = head_of_end(call, result, width, theme);
    if !unfolded {
        return vec![head];
    }
    let mut made = vec![head];
    let bar = [Span::styled("┆ ", theme.dim())];
    let pretty = serde_json::to_string_pretty(call.input.value()).unwrap_or_default();
    if call.kind != CallKind::Agent && pretty != "{}" {
        made.extend(cut_rows(&pretty, width, &bar, theme.dim()));
    }
    let text = match result {
        CallResult::Output(output) => output.to_text(),
        CallResult::Error(failure) => failure.message.as_str().into(),
    };
    made.extend(cut_rows(&text, width, &bar, Style::new()));
    made
}

/// The first rows of a text, and how many there are.
fn cut_rows(text: &str, width: u16, bar: &[Span<'static>], style: Style) -> Vec<Line<'static>> {
    let start: String = text.chars().take(usize::from(width) * UNFOLDED * 2).collect();
    let text_lines = text.lines().count();
    let start = plain(&start);
    let mut made: Vec<Line<'static>> = start
        .lines()
        .flat_map(|line| wrapped(&Line::styled(line.to_owned(), style), width, bar, bar))
        .collect();
    if made.len() > UNFOLDED {
        made.truncate(UNFOLDED);
        let mut more = bar.to_vec();
        more.push(Span::styled(format!("… {} in all", counted(text_lines, "line")), style));
        made.push(Line::from(more));
    }
    made
}

/// Name, arguments, result and time of a call that ended, on one row.
fn head_of_end(call: &Call, result: &CallResult, width: u16, theme: Theme) -> Line<'static> {
    let (mark, style) = mark_of(call.state, theme);
    let name = whose(call);
    let took = format!("  {}", seconds(call.duration.unwrap_or_default()));
    let room = usize::from(width).saturating_sub(2 + name.chars().count() + took.chars().count());
    let (arguments, result) = shares(call, result, room);
    let mut spans = vec![Span::styled(format!("{mark} "), style), Span::styled(name, theme.strong())];
    if !arguments.is_empty() {
        spans.push(Span::styled(format!(" {arguments}"), theme.dim()));
    }
    if !result.is_empty() {
        spans.push(Span::raw(format!(" → {result}")));
    }
    spans.push(Span::styled(took, theme.dim()));
    Line::from(spans)
}

/// The name of a call, with its caller's if lines of other calls may be between them.
fn whose(call: &Call) -> String {
    let callers = call.path.rsplit(" > ").nth(1).filter(|_| call.level > 1);
    match callers {
        Some(caller) => visible_line(&format!("{caller} › {}", call.name)),
        None => visible_line(&call.name),
    }
}

/// Divides the room of a row between arguments and result; the result gets what the arguments leave.
fn shares(call: &Call, result: &CallResult, room: usize) -> (String, String) {
    let arguments = if call.kind == CallKind::Agent { String::new() } else { describe_input(call) };
    let arguments = if arguments == "{}" { String::new() } else { arguments };
    let result = describe_result(call, result);
    let wanted = columns(&result) + 3;
    let for_arguments = room.saturating_sub(wanted.min(room / 2) + 1);
    let arguments = if for_arguments < 6 { String::new() } else { fitted(&arguments, for_arguments) };
    let taken = columns(&arguments) + usize::from(!arguments.is_empty());
    let for_result = room.saturating_sub(taken + 3);
    let is_short = columns(&result) <= for_result;
    let result = if for_result < 4 && !is_short { String::new() } else { fitted(&result, for_result) };
    (arguments, result)
}

fn describe_result(call: &Call, result: &CallResult) -> String {
    match result {
        CallResult::Error(failure) => visible_line(failure.message.lines().next().unwrap_or_default()),
        CallResult::Output(_) if call.kind == CallKind::Agent => describe_usage(&call.usage),
        CallResult::Output(output) => {
            let text = output.to_text();
            let lines = text.lines().count();
            let first = text.lines().next().unwrap_or_default();
            let first: String = first.chars().take(400).collect();
            match lines {
                0 => "nothing".to_owned(),
                1 => visible_line(&first),
                _ => format!("{} (+{})", visible_line(&first), counted(lines - 1, "line")),
            }
        }
    }
}

/// The symbol of a state and its style.
pub(crate) fn mark_of(state: CallState, theme: Theme) -> (&'static str, Style) {
    match state {
        CallState::Running => ("●", theme.accent()),
        CallState::Asking => ("?", theme.waiting()),
        CallState::Done => ("✓", theme.good()),
        CallState::Denied => ("⊘", theme.bad()),
        CallState::Failed => ("✗", theme.bad()),
        CallState::BrokenOff => ("–", theme.dim()),
    }
}

/// A file of the answer.
pub(super) fn attachment(attachment: &Attachment, theme: Theme) -> Line<'static> {
    let kind = attachment.media_type.as_deref().unwrap_or("a file");
    let line = format!("the answer also holds `{}` ({kind})", attachment.name);
    Line::styled(visible_line(&line), theme.dim())
}

/// The last line of a run.
pub(super) fn ended(
    status: Status,
    usage: &Usage,
    took: Duration,
    width: u16,
    theme: Theme,
) -> Vec<Line<'static>> {
    let text = format!("{} {} · {}", describe_status(status), seconds(took), describe_usage(usage));
    let style = if status == Status::Done { theme.dim() } else { theme.bad() };
    wrapped(&Line::styled(text, style), width, &[], &[Span::raw("  ")])
}

fn describe_status(status: Status) -> &'static str {
    match status {
        Status::Done => "done in",
        Status::Failed => "failed after",
        Status::Provider => "failed at the provider after",
        Status::Limit => "ended by a limit after",
        Status::Denied => "denied after",
        Status::Output => "failed for its output after",
        Status::TimedOut => "timed out after",
        Status::Interrupted => "interrupted after",
        Status::Parked => "waits for answers after",
        Status::Unknown => "left open after",
        Status::Record => "failed for its record after",
    }
}

/// Moves a line to the right.
pub(crate) fn indented(mut line: Line<'static>, by: u16) -> Line<'static> {
    if by > 0 {
        line.spans.insert(0, Span::raw(" ".repeat(by.into())));
    }
    line
}

/// Formats a duration.
pub(crate) fn seconds(time: Duration) -> String {
    let milliseconds = time.as_millis();
    match milliseconds {
        0..1_000 => format!("{milliseconds} ms"),
        1_000..60_000 => format!("{:.1} s", time.as_secs_f64()),
        _ => format!("{}:{:02} min", time.as_secs() / 60, time.as_secs() % 60),
    }
}

/// Formats a count in at most five characters.
pub(crate) fn format_count(amount: u64) -> String {
    match amount {
        0..10_000 => amount.to_string(),
        10_000..1_000_000 => format!("{}k", amount / 1_000),
        _ => format!("{:.1}M", amount as f64 / 1e6),
    }
}

/// Describes requests, tokens and cost.
pub(crate) fn describe_usage(usage: &Usage) -> String {
    let requests = if usage.requests == 1 { "request" } else { "requests" };
    let cost = usage.cost.describe().map(|cost| format!(", {cost}")).unwrap_or_default();
    format!("{} {requests}, {} tokens{cost}", usage.requests, format_count(usage.tokens()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_beginning_of_a_long_input_is_looked_at() {
        assert_eq!(shortened(&"漢\n".repeat(500_000)), "漢\\n".repeat(1_000));
    }
}
