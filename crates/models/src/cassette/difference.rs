//! Shows how a request differs from a recorded one.

use std::collections::HashMap;

use similar::TextDiff;

use super::asked::Asked;

/// The most lines that are shown.
const LINES: usize = 40;
/// The most characters of a line that are shown.
const WIDTH: usize = 160;
/// How many of them are shown before the first character that differs.
const BEFORE: usize = 60;

/// Counts the lines that two requests have in common.
pub(super) fn likeness(recorded: &Asked, asked: &Asked) -> usize {
    let (recorded, asked) = (shown(recorded), shown(asked));
    let mut lines: HashMap<&str, usize> = HashMap::new();
    recorded.lines().for_each(|line| *lines.entry(line).or_default() += 1);
    let mut common = 0;
    for line in asked.lines() {
        if let Some(left) = lines.get_mut(line).filter(|left| **left > 0) {
            *left -= 1;
            common += 1;
        }
    }
    common
}

/// Shows the lines that differ: `-` was recorded, `+` is asked for now.
pub(super) fn difference(recorded: &Asked, asked: &Asked) -> String {
    let (recorded, asked) = (shown(recorded), shown(asked));
    let diff = TextDiff::from_lines(&recorded, &asked);
    let whole = diff.unified_diff().context_radius(2).to_string();
    let whole: Vec<&str> = whole.lines().collect();
    let mut lines = cut(&whole[..whole.len().min(LINES)]);
    let left_out = whole.len().saturating_sub(LINES);
    if left_out > 0 {
        lines.pop();
        lines.push(format!("… and {} more lines", left_out + 1));
    }
    lines.join("\n")
}

fn shown(asked: &Asked) -> String {
    let mut body = asked.body.clone();
    body.sort_all_objects();
    format!("{} {}\n{body:#}\n", asked.method, asked.target())
}

/// Cuts long lines: those that were changed around what changed in them, others at their end.
fn cut(lines: &[&str]) -> Vec<String> {
    let mut shown = Vec::new();
    let mut rest = lines;
    while let [first, others @ ..] = rest {
        let (removed, after) = split_changed(rest, '-');
        let (added, after) = split_changed(after, '+');
        if removed.is_empty() && added.is_empty() {
            shown.push(window(first, 0));
            rest = others;
            continue;
        }
        // The lines of a change belong together by their order.
        let against = |line: &&str, other: Option<&&str>| window(line, first_difference(line, other));
        shown.extend(removed.iter().zip(0..).map(|(line, index)| against(line, added.get(index))));
        shown.extend(added.iter().zip(0..).map(|(line, index)| against(line, removed.get(index))));
        rest = after;
    }
    shown
}

/// Splits off the first lines that begin with `-` or `+`.
fn split_changed<'a, 'b>(lines: &'a [&'b str], prefix: char) -> (&'a [&'b str], &'a [&'b str]) {
    let end = lines.iter().position(|line| !line.starts_with(prefix)).unwrap_or(lines.len());
    lines.split_at(end)
}

/// Counts the characters, after the `-` or `+`, up to the first that differs.
fn first_difference(line: &str, other: Option<&&str>) -> usize {
    let Some(other) = other else { return 0 };
    line.chars().skip(1).zip(other.chars().skip(1)).take_while(|(one, other)| one == other).count()
}

/// Returns the part of a line around one of its characters, with the `-` or `+` before it.
fn window(line: &str, at: usize) -> String {
    let mut characters = line.chars();
    let prefix = characters.next();
    let count = characters.clone().count();
    if count < WIDTH {
        return line.to_owned();
    }
    let start = at.saturating_sub(BEFORE).min(count - WIDTH.min(count));
    let part: String = characters.skip(start).take(WIDTH).collect();
    let opening = if start > 0 { "…" } else { "" };
    let ending = if start + WIDTH < count { "…" } else { "" };
    prefix.into_iter().chain(opening.chars()).chain(part.chars()).chain(ending.chars()).collect()
}
