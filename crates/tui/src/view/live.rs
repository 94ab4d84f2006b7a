//! The live rows below the transcript: what is being said, what runs, what is asked, the input, the status.

use std::time::Instant;

use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use ratatui::text::{Line, Span};
use ratatui::widgets::Widget;
use unicode_segmentation::UnicodeSegmentation;

use super::status::spinner;
use crate::call_tree::{Call, CallIndex, CallState, CallTree};
use crate::theme::Theme;
use crate::transcript::{Transcript, indented, seconds};
use crate::wrap::fitted;

/// The most rows that running calls take.
const MAX_CALL_ROWS: usize = 8;

/// Draws itself, and returns where the cursor belongs.
type Drawing<'a> = Box<dyn FnOnce(Rect, &mut Buffer) -> Option<Position> + 'a>;

/// A part of the live rows with the height that it would like to have.
pub(crate) enum Section<'a> {
    /// Rows, of which the first ones are left out if they do not all fit.
    Lines(Vec<Line<'static>>),
    /// Something that draws itself.
    Drawn(u16, Drawing<'a>),
}

impl Section<'_> {
    fn height(&self) -> u16 {
        match self {
            Self::Lines(lines) => u16::try_from(lines.len()).unwrap_or(u16::MAX),
            Self::Drawn(height, _) => *height,
        }
    }
}

/// The live rows, put together from the top down. Lower sections are more important.
pub(crate) struct Live {
    width: u16,
    most: u16,
}

impl Live {
    pub(crate) fn new(width: u16, most: u16) -> Self {
        Self { width, most: most.max(1) }
    }

    /// Draws the sections, each as high as those below it allow.
    pub(crate) fn draw(self, sections: Vec<Section<'_>>) -> (Buffer, Option<Position>) {
        let mut left = self.most;
        let mut heights: Vec<u16> = Vec::with_capacity(sections.len());
        for section in sections.iter().rev() {
            let height = section.height().min(left);
            left -= height;
            heights.push(height);
        }
        heights.reverse();
        let total: u16 = heights.iter().sum();
        let mut buffer = Buffer::empty(Rect::new(0, 0, self.width, total));
        let (mut y, mut cursor) = (0, None);
        for (section, height) in sections.into_iter().zip(heights) {
            let area = Rect::new(0, y, self.width, height);
            cursor = draw_section(section, area, &mut buffer).or(cursor);
            y += height;
        }
        (buffer, cursor)
    }
}

fn draw_section(section: Section<'_>, area: Rect, buffer: &mut Buffer) -> Option<Position> {
    if area.height == 0 {
        return None;
    }
    match section {
        Section::Lines(lines) => {
            let from = lines.len().saturating_sub(area.height.into());
            for (y, line) in (area.y..area.bottom()).zip(&lines[from..]) {
                line.render(Rect { y, height: 1, ..area }, buffer);
            }
            None
        }
        Section::Drawn(_, draw) => draw(area, buffer),
    }
}

/// What is being said by the agent at the top, and the calls that run.
pub(crate) fn activity(
    call_tree: &CallTree,
    transcript: &mut Transcript,
    now: Instant,
    width: u16,
    theme: Theme,
) -> (Vec<Line<'static>>, Vec<Line<'static>>) {
    let running = call_tree.running();
    let top = running.first().and_then(|index| call_tree.call(*index));
    let tail = top.map(|call| transcript.tail(call)).unwrap_or_default();
    // The agent at the top shows itself by what it says; silent and alone it has a row.
    let is_silent = tail.is_empty() && running.len() == 1;
    let shown = if is_silent { &running[..] } else { running.get(1..).unwrap_or_default() };
    let calls = calls(call_tree, transcript, shown, now, width, theme);
    (tail, calls)
}

/// A row per running call below the top, the deepest ones where not all fit.
fn calls(
    call_tree: &CallTree,
    transcript: &Transcript,
    running: &[CallIndex],
    now: Instant,
    width: u16,
    theme: Theme,
) -> Vec<Line<'static>> {
    let Some(run) = call_tree.run() else { return Vec::new() };
    let spin = spinner(run, now);
    let mut rows: Vec<Line<'static>> = Vec::new();
    for call in running.iter().filter_map(|index| call_tree.call(*index)) {
        rows.push(call_row(call, transcript, spin, now, width, theme));
    }
    let hidden = rows.len().saturating_sub(MAX_CALL_ROWS);
    if hidden > 0 {
        rows.truncate(MAX_CALL_ROWS);
        rows.push(Line::styled(format!("  and {hidden} more (Ctrl-T shows all)"), theme.dim()));
    }
    rows
}

fn call_row(
    call: &Call,
    transcript: &Transcript,
    spin: &'static str,
    now: Instant,
    width: u16,
    theme: Theme,
) -> Line<'static> {
    let indent =
        u16::try_from(call.level).unwrap_or(u16::MAX).saturating_sub(1).saturating_mul(2).min(width / 3);
    let room = usize::from(width - indent);
    let (mark, style) = match call.state {
        CallState::Asking => ("?", theme.waiting()),
        _ => (spin, theme.accent()),
    };
    let name = llm_do_core::visible_line(&call.name);
    let took = format!(" {}", whole_seconds(call, now));
    let activity =
        transcript.last_line(call).or_else(|| call.progress.as_deref().map(llm_do_core::visible_line));
    let activity = match (&call.state, activity) {
        (CallState::Asking, _) => "waits for you".to_owned(),
        (_, Some(activity)) => activity,
        (_, None) => call.model.as_deref().map(llm_do_core::visible_line).unwrap_or_default(),
    };
    let taken = 2 + crate::wrap::columns(&name) + took.len() + 2;
    let line = Line::from(vec![
        Span::styled(format!("{mark} "), style),
        Span::styled(fitted(&name, room.saturating_sub(2)), theme.strong()),
        Span::styled(took, theme.dim()),
        Span::styled(format!("  {}", last_columns(&activity, room.saturating_sub(taken))), theme.dim()),
    ]);
    indented(line, indent)
}

fn whole_seconds(call: &Call, now: Instant) -> String {
    let elapsed = call.elapsed(now);
    if elapsed.as_secs() < 60 { format!("{} s", elapsed.as_secs()) } else { seconds(elapsed) }
}

/// The end of a text that fits.
fn last_columns(text: &str, room: usize) -> String {
    if crate::wrap::columns(text) <= room {
        return text.to_owned();
    }
    if room < 2 {
        return String::new();
    }
    let mut taken = 1;
    let mut start = text.len();
    for (index, cluster) in text.grapheme_indices(true).rev() {
        taken += crate::wrap::columns(cluster);
        if taken > room {
            break;
        }
        start = index;
    }
    format!("…{}", &text[start..])
}
