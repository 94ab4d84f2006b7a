//! Text that a model is still writing.

use std::time::Duration;

use llm_do_core::Delta;
use ratatui::text::Line;

use crate::markdown;
use crate::theme::Theme;

/// How much of a long text is looked at for its last words.
const LAST: usize = 400;

/// What one request has brought so far.
#[derive(Default)]
pub(crate) struct ModelStream {
    attempt: u32,
    heard: String,
    drawn: markdown::MarkdownStream,
    /// Whether part of it is printed.
    printed: bool,
    /// The index of the next delta; if one is missing, the text is useless until the whole answer is there.
    next: u64,
    torn: bool,
    thoughts: String,
    /// When thinking began and went on last, in milliseconds.
    thinking: Option<(i64, i64)>,
    /// Whether the thoughts are printed.
    thoughts_told: bool,
}

impl ModelStream {
    /// Takes a piece of the answer.
    pub(super) fn hear(&mut self, delta: &Delta) {
        self.begin(delta);
        self.heard.push_str(&delta.text);
        self.drawn.push(&delta.text);
    }

    /// Takes a piece of thinking.
    pub(super) fn think(&mut self, delta: &Delta, milliseconds: i64) {
        self.begin(delta);
        self.thinking = Some((self.thinking.map_or(milliseconds, |(begun, _)| begun), milliseconds));
        self.thoughts.push_str(&delta.text);
    }

    /// A new attempt begins anew; a missing piece is noticed.
    fn begin(&mut self, delta: &Delta) {
        if delta.attempt != self.attempt {
            *self = Self { attempt: delta.attempt, torn: self.printed, ..Self::default() };
        }
        self.torn |= delta.index != self.next;
        self.next = delta.index + 1;
    }

    /// Takes the thoughts that precede an answer, and how long they took; once, and not where pieces are missing.
    pub(super) fn take_thoughts(&mut self) -> Option<(String, Duration)> {
        let took = self.thinking_time()?;
        if self.torn || std::mem::replace(&mut self.thoughts_told, true) {
            return None;
        }
        Some((self.thoughts.clone(), took))
    }

    /// Returns whether the thoughts are printed already.
    pub(super) fn has_told_thoughts(&self) -> bool {
        self.thoughts_told
    }

    /// How long the thinking took, as far as it was heard.
    pub(super) fn thinking_time(&self) -> Option<Duration> {
        let (begun, ended) = self.thinking?;
        u64::try_from(ended - begun).ok().map(Duration::from_millis)
    }

    /// Takes the rows of complete blocks, and returns whether they follow others.
    pub(super) fn take_settled(&mut self, width: u16, theme: Theme) -> Option<(Vec<Line<'static>>, bool)> {
        if self.torn {
            return None;
        }
        let rows = self.drawn.finished(width, theme);
        (!rows.is_empty()).then(|| (rows, std::mem::replace(&mut self.printed, true)))
    }

    /// Takes the remaining rows of the whole answer; none if the answer is not the text that was streamed.
    pub(super) fn rest(
        &mut self,
        whole: &str,
        width: u16,
        theme: Theme,
    ) -> Option<(Vec<Line<'static>>, bool)> {
        if self.torn || whole != self.heard {
            return None;
        }
        Some((self.drawn.end(width, theme), self.printed))
    }

    /// Takes the remaining rows of an answer that will not be completed.
    pub(super) fn rest_of_broken(&mut self, width: u16, theme: Theme) -> Option<(Vec<Line<'static>>, bool)> {
        (!self.torn).then(|| (self.drawn.end(width, theme), self.printed))
    }

    /// Returns whether there is any text.
    pub(super) fn has_text(&self) -> bool {
        self.printed || !self.heard.trim().is_empty()
    }

    pub(super) fn has_printed(&self) -> bool {
        self.printed
    }

    /// The rows that may still change.
    pub(super) fn unsettled(&mut self, width: u16, theme: Theme) -> Vec<Line<'static>> {
        if self.torn { Vec::new() } else { self.drawn.unfinished(width, theme) }
    }

    pub(super) fn thoughts(&self) -> &str {
        &self.thoughts
    }

    /// Returns the last line of the text, or of the thoughts if there is no text yet.
    pub(super) fn last_line(&self) -> Option<String> {
        let text = if self.heard.is_empty() { &self.thoughts } else { &self.heard };
        let start = text.len().saturating_sub(LAST);
        let start = (start..text.len()).find(|index| text.is_char_boundary(*index))?;
        let line = text[start..].lines().rev().find(|line| !line.trim().is_empty())?;
        Some(crate::wrap::prose(line.trim()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn delta(attempt: u32, index: u64, text: &str) -> Delta {
        Delta { attempt, index, text: text.to_owned() }
    }

    fn words(rows: &[Line<'static>]) -> String {
        rows.iter().map(ToString::to_string).collect::<Vec<_>>().join("|")
    }

    #[test]
    fn whole_blocks_are_settled_and_the_rest_comes_at_the_end() {
        let (mut stream, theme) = (ModelStream::default(), Theme::default());
        stream.hear(&delta(0, 0, "one\n\ntwo\nmo"));
        let (rows, follows) = stream.take_settled(40, theme).unwrap();
        assert_eq!((words(&rows).as_str(), follows), ("one", false));
        stream.hear(&delta(0, 1, "re"));
        assert!(stream.take_settled(40, theme).is_none());
        assert_eq!(words(&stream.unsettled(40, theme)), "|two|more");
        let (rows, follows) = stream.rest("one\n\ntwo\nmore", 40, theme).unwrap();
        assert_eq!((words(&rows).as_str(), follows), ("|two|more", true));
    }

    #[test]
    fn a_missing_piece_keeps_the_text_back() {
        let (mut stream, theme) = (ModelStream::default(), Theme::default());
        stream.hear(&delta(0, 0, "one\n\n"));
        stream.hear(&delta(0, 2, "three\n\nfour"));
        assert!(stream.take_settled(40, theme).is_none() && stream.unsettled(40, theme).is_empty());
        assert!(stream.rest("one\n\ntwo\n\nthree\n\nfour", 40, theme).is_none());
    }

    #[test]
    fn a_new_attempt_replaces_what_came_before() {
        let (mut stream, theme) = (ModelStream::default(), Theme::default());
        stream.hear(&delta(0, 0, "wrong"));
        stream.hear(&delta(1, 0, "right"));
        assert_eq!(words(&stream.unsettled(40, theme)), "right");
    }
}
