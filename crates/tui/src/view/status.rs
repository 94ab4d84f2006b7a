//! The status line: what runs, for how long, what it took, what is left.

use std::time::Instant;

use llm_do_core::{Limits, Money, Usage, counted, visible_line};
use ratatui::text::{Line, Span};

use crate::call_tree::{CallTree, RunState, WindowUse};
use crate::theme::Theme;
use crate::transcript::format_count;
use crate::wrap::{columns, fitted};

const FRAMES: [&str; 10] = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];
/// How long each frame of the spinner is shown, in milliseconds.
const FRAME: u128 = 100;

/// Returns the frame of the spinner.
pub(crate) fn spinner(run: &RunState, now: Instant) -> &'static str {
    let frame = now.saturating_duration_since(run.started).as_millis() / FRAME;
    FRAMES[usize::try_from(frame).unwrap_or(0) % FRAMES.len()]
}

/// What the status line says besides the run.
pub(crate) struct Status<'a> {
    /// How many questions wait.
    pub(crate) waiting: usize,
    /// What was just said to the person.
    pub(crate) said: &'a str,
    /// The model that answers.
    pub(crate) model: Option<&'a str>,
    /// The keys that are of use now.
    pub(crate) keys: &'static str,
}

impl Status<'_> {
    /// The line: as many parts as fit, the most useful ones first. What was just said to the person comes before
    /// what is known anyway.
    pub(crate) fn line(&self, call_tree: &CallTree, now: Instant, width: u16, theme: Theme) -> Line<'static> {
        let run = call_tree.run().filter(|run| run.status.is_none());
        let mut parts: Vec<Span<'static>> = Vec::new();
        if self.waiting > 0 {
            parts.push(Span::styled(format!("{} waiting for you", self.waiting), theme.waiting()));
        }
        if !self.said.is_empty() {
            parts.push(Span::styled(self.said.to_owned(), theme.strong()));
        }
        match run {
            Some(run) => parts.extend(run_parts(run, call_tree.has_earlier_runs(), now, theme)),
            None => {
                parts.extend(describe_used(&call_tree.total()).map(|part| Span::styled(part, theme.dim())))
            }
        }
        parts.extend(call_tree.context().map(|context| window_part(context, theme)));
        if !self.keys.is_empty() {
            parts.push(Span::styled(self.keys, theme.dim()));
        }
        parts.extend(self.model.map(|model| Span::styled(visible_line(model), theme.dim())));
        let mark = run.map(|run| Span::styled(format!("{} ", spinner(run, now)), theme.accent()));
        fit(mark, parts, width.into())
    }
}

fn run_parts(run: &RunState, is_later: bool, now: Instant, theme: Theme) -> Vec<Span<'static>> {
    let mut parts = vec![Span::raw(elapsed(run, now))];
    parts.extend(describe_used(&run.usage).map(Span::raw));
    let mut left = describe_left(&run.limits, &run.usage, run.calls);
    // Each turn of a chat has the limits anew, which looks as if the turns before had cost nothing.
    if let Some(first) = left.first_mut().filter(|_| is_later) {
        first.push_str(" for this turn");
    }
    parts.extend(left.into_iter().map(|part| Span::styled(part, theme.dim())));
    parts
}

/// From this share of the window on, a person should know that it will be full.
const NEARLY_FULL_PERCENT: u64 = 70;
/// From this share on, the next turn may not fit any more.
const FULL_PERCENT: u64 = 80;

/// How full the context window of the model is. Rounded down, but never to nothing.
fn window_part(context: WindowUse, theme: Theme) -> Span<'static> {
    let percent = (context.used.saturating_mul(100) / context.window.max(1)).max(1);
    let mark = if context.is_estimate { "~" } else { "" };
    let style = match percent {
        FULL_PERCENT.. => theme.bad(),
        NEARLY_FULL_PERCENT.. => theme.waiting(),
        _ => theme.dim(),
    };
    Span::styled(format!("ctx {mark}{percent} %"), style)
}

/// Returns tokens and cost, each of which can be left out.
fn describe_used(usage: &Usage) -> impl Iterator<Item = String> {
    let tokens = (usage.tokens() > 0).then(|| format!("{} tokens", format_count(usage.tokens())));
    tokens.into_iter().chain(usage.cost.describe())
}

/// Leaves out the parts that do not fit; the first one always stays.
fn fit(mark: Option<Span<'static>>, parts: Vec<Span<'static>>, width: usize) -> Line<'static> {
    const GAP: &str = " · ";
    let mut kept: Vec<Span<'static>> = mark.into_iter().collect();
    let mut taken = kept.iter().map(|span| columns(&span.content)).sum::<usize>();
    let mut is_first = true;
    for part in parts {
        let gap = if is_first { "" } else { GAP };
        let room = width.saturating_sub(taken + columns(gap));
        if columns(&part.content) <= room {
            taken += columns(gap) + columns(&part.content);
            kept.extend([Span::styled(gap, part.style), part]);
        } else if is_first {
            kept.push(Span::styled(fitted(&part.content, room), part.style));
            break;
        }
        is_first = false;
    }
    Line::from(kept)
}

/// Whole seconds, so that the line changes once a second at most.
fn elapsed(run: &RunState, now: Instant) -> String {
    let seconds = now.saturating_duration_since(run.started).as_secs();
    match seconds {
        0..60 => format!("{seconds} s"),
        _ => format!("{}:{:02} min", seconds / 60, seconds % 60),
    }
}

/// What is left of the budgets of a run.
fn describe_left(limits: &Limits, usage: &Usage, calls: u64) -> Vec<String> {
    let mut left = Vec::new();
    if let Some(cost) = limits.cost {
        left.push(format!("{} left", Money(cost.0.saturating_sub(usage.cost.known.0))));
    }
    if let Some(tokens) = limits.tokens {
        left.push(format!("{} tokens left", format_count(tokens.saturating_sub(usage.tokens()))));
    }
    if let Some(most) = limits.tool_calls {
        left.push(format!("{} left", counted(most.saturating_sub(calls), "call")));
    }
    left
}
