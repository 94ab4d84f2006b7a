//! The status line: what runs, for how long, what it took, what is left.

use std::time::Instant;

use llm_do::{Limits, Money, Usage};
use ratatui::text::{Line, Span};

use crate::story::{Run, Story};
use crate::theme::Theme;
use crate::transcript::{amount_words, usage_words};
use crate::wrap::{columns, fitted};

const FRAMES: [&str; 10] = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];
/// How long a sign of the spinner stands.
const FRAME: u128 = 100;

/// The sign that turns while something runs.
pub(crate) fn spinner(run: &Run, now: Instant) -> &'static str {
    let frame = now.saturating_duration_since(run.started).as_millis() / FRAME;
    FRAMES[usize::try_from(frame).unwrap_or(0) % FRAMES.len()]
}

/// The status line: as many parts as fit, the most useful ones first.
pub(crate) fn status_line(
    story: &Story,
    waiting: usize,
    hint: &str,
    now: Instant,
    width: u16,
    theme: Theme,
) -> Line<'static> {
    let mut parts: Vec<Span<'static>> = Vec::new();
    match story.run().filter(|run| run.status.is_none()) {
        Some(run) => {
            parts.push(Span::styled(format!("{} ", spinner(run, now)), theme.accent()));
            if waiting > 0 {
                parts.push(Span::styled(format!("{waiting} waiting for you · "), theme.waiting()));
            }
            parts.push(Span::raw(elapsed(run, now)));
            parts.push(Span::raw(format!(" · {}", usage_words(&run.usage))));
            for left in left_words(&run.limits, &run.usage, run.calls) {
                parts.push(Span::styled(format!(" · {left}"), theme.dim()));
            }
        }
        None => {
            let total = story.total();
            if total.requests > 0 {
                parts.push(Span::styled(usage_words(&total), theme.dim()));
            }
        }
    }
    if !hint.is_empty() {
        let gap = if parts.is_empty() { "" } else { " · " };
        parts.push(Span::styled(format!("{gap}{hint}"), theme.dim()));
    }
    fit(parts, width.into())
}

/// Leaves out the parts that do not fit; the first one always stands.
fn fit(parts: Vec<Span<'static>>, width: usize) -> Line<'static> {
    let mut kept = Vec::new();
    let mut taken = 0;
    for part in parts {
        let length = columns(&part.content);
        if taken + length <= width {
            taken += length;
            kept.push(part);
        } else if kept.is_empty() {
            kept.push(Span::styled(fitted(&part.content, width), part.style));
            break;
        } else {
            break;
        }
    }
    Line::from(kept)
}

/// Whole seconds, so that the line changes once a second at most.
fn elapsed(run: &Run, now: Instant) -> String {
    let seconds = now.saturating_duration_since(run.started).as_secs();
    match seconds {
        0..60 => format!("{seconds} s"),
        _ => format!("{}:{:02} min", seconds / 60, seconds % 60),
    }
}

/// What is left of the budgets of a run.
fn left_words(limits: &Limits, usage: &Usage, calls: u64) -> Vec<String> {
    let mut left = Vec::new();
    if let Some(cost) = limits.cost {
        left.push(format!("{} left", Money(cost.0.saturating_sub(usage.cost.known.0))));
    }
    if let Some(tokens) = limits.tokens {
        left.push(format!("{} tokens left", amount_words(tokens.saturating_sub(usage.tokens()))));
    }
    if let Some(most) = limits.tool_calls {
        left.push(format!("{} calls left", most.saturating_sub(calls)));
    }
    left
}
