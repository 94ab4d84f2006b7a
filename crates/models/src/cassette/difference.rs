//! Shows how a request differs from a recorded one.

use std::collections::HashMap;

use similar::TextDiff;

use super::asked::Asked;

/// The most lines that are shown.
const LINES: usize = 40;
/// The most characters of a line that are shown.
const WIDTH: usize = 160;

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
    let mut lines: Vec<String> = whole.lines().take(LINES).map(cut).collect();
    let left_out = whole.lines().count().saturating_sub(LINES);
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

fn cut(line: &str) -> String {
    match line.char_indices().nth(WIDTH) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line.to_owned(),
    }
}
