//! The text of an answer while it arrives, over attempts that are restarted.
//!
//! An attempt that fails is followed by another one, which sends the answer from its beginning. What was shown cannot be
//! taken back, so a new attempt is compared with it: as long as it repeats the text that is shown, nothing is to be
//! written; then only the rest; and if it differs, all of it.
//!
//! This module writes nothing: see [`crate::stream`].

use llm_do::event::Delta;

/// The text of one answer.
#[derive(Debug, Default)]
pub(crate) struct AnswerText {
    /// What was shown of the answer.
    shown: String,
    /// So many bytes of it were sent by the present attempt.
    repeated: usize,
    /// So many bytes of it are complete messages after which the provider paused.
    carried: usize,
    /// The index that the next piece of the attempt has if none was lost.
    next_index: u64,
    /// Whether a piece of the attempt was lost, because it was not read in time.
    is_torn: bool,
    /// Whether an attempt before this one has shown text.
    is_restarted: bool,
    /// Whether the message is complete.
    is_complete: bool,
}

/// What is to be written after a piece has arrived.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum AnswerChange<'a> {
    /// Nothing: it is shown already, or is not known well enough yet.
    Nothing,
    /// More text.
    More(&'a str),
    /// More text, after a new attempt repeated what is shown.
    Resumed(&'a str),
    /// Everything from the beginning, because a new attempt differs from what is shown.
    Anew(&'a str),
}

impl AnswerText {
    /// A model is asked; returns whether a message before it was complete, so that another one begins.
    pub(crate) fn begin_attempt(&mut self) -> bool {
        if self.is_complete {
            *self = Self::default();
            return true;
        }
        self.is_restarted |= self.shown.len() > self.carried;
        (self.repeated, self.next_index, self.is_torn) = (self.carried, 0, false);
        false
    }

    /// A piece of something else than text arrived.
    pub(crate) fn pass_over(&mut self, delta: &Delta) {
        self.is_torn |= delta.index != self.next_index;
        self.next_index = delta.index + 1;
    }

    /// A piece of text arrived.
    pub(crate) fn push(&mut self, delta: &Delta) -> AnswerChange<'_> {
        self.pass_over(delta);
        // Without the lost piece the text would have a hole; the whole message brings the rest.
        if self.is_torn { AnswerChange::Nothing } else { self.advance(&delta.text) }
    }

    /// The whole message arrived. After a pause the provider goes on with the same answer.
    pub(crate) fn end_message(&mut self, text: &str, is_paused: bool) -> AnswerChange<'_> {
        self.is_complete = !is_paused;
        let (start, shown) = (self.carried, self.shown.len());
        if is_paused {
            self.carried += text.len();
        }
        self.settle(start, shown, text)
    }

    /// The answer of the run is known.
    pub(crate) fn end_answer(&mut self, text: &str) -> AnswerChange<'_> {
        self.is_complete = true;
        self.settle(0, self.shown.len(), text)
    }

    /// Returns the text of an answer that was not completed.
    pub(crate) fn unfinished(&self) -> Option<&str> {
        (!self.is_complete && !self.shown.is_empty()).then_some(&*self.shown)
    }

    fn advance(&mut self, text: &str) -> AnswerChange<'_> {
        let rest = &self.shown[self.repeated..];
        if rest.starts_with(text) {
            self.repeated += text.len();
            return AnswerChange::Nothing;
        }
        let is_restarted = std::mem::take(&mut self.is_restarted);
        let shown = self.shown.len();
        match text.strip_prefix(rest) {
            Some(more) => {
                self.shown.push_str(more);
                self.repeated = self.shown.len();
                let more = &self.shown[shown..];
                if is_restarted { AnswerChange::Resumed(more) } else { AnswerChange::More(more) }
            }
            None => {
                self.shown.truncate(self.repeated);
                self.shown.push_str(text);
                self.repeated = self.shown.len();
                AnswerChange::Anew(&self.shown)
            }
        }
    }

    /// Compares a text that is whole with what is shown behind `start`.
    fn settle(&mut self, start: usize, shown: usize, text: &str) -> AnswerChange<'_> {
        let is_restarted = std::mem::take(&mut self.is_restarted);
        let more = text.strip_prefix(&self.shown[start..]);
        match more {
            Some("") => AnswerChange::Nothing,
            Some(more) => {
                self.shown.push_str(more);
                self.repeated = self.shown.len();
                let more = &self.shown[shown..];
                if is_restarted { AnswerChange::Resumed(more) } else { AnswerChange::More(more) }
            }
            None => {
                self.shown.truncate(start);
                self.shown.push_str(text);
                self.repeated = self.shown.len();
                AnswerChange::Anew(&self.shown)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use llm_do_testing::Chance;

    use super::*;

    fn delta(index: u64, text: &str) -> Delta {
        Delta { attempt: 0, index, text: text.to_owned() }
    }

    /// What a reader of stdout sees: a text that begins anew stands on a line of its own.
    #[derive(Default)]
    struct Seen(String);

    impl Seen {
        fn take(&mut self, change: AnswerChange<'_>) {
            match change {
                AnswerChange::Nothing => {}
                AnswerChange::More(text) | AnswerChange::Resumed(text) => self.0.push_str(text),
                AnswerChange::Anew(text) => self.0 = format!("{}\n{text}", self.0),
            }
        }
    }

    #[test]
    fn a_new_attempt_that_repeats_the_text_continues_it() {
        let mut answer = AnswerText::default();
        assert_eq!(answer.push(&delta(0, "one two")), AnswerChange::More("one two"));
        assert!(!answer.begin_attempt());
        assert_eq!(answer.push(&delta(0, "one")), AnswerChange::Nothing);
        assert_eq!(answer.push(&delta(1, " two three")), AnswerChange::Resumed(" three"));
        assert_eq!(answer.push(&delta(2, " four")), AnswerChange::More(" four"));
        assert_eq!(answer.unfinished(), Some("one two three four"));
        assert_eq!(answer.end_message("one two three four", false), AnswerChange::Nothing);
        assert_eq!(answer.unfinished(), None);
        assert!(answer.begin_attempt());
    }

    #[test]
    fn a_new_attempt_that_differs_begins_anew() {
        let mut answer = AnswerText::default();
        answer.push(&delta(0, "one two"));
        answer.begin_attempt();
        assert_eq!(answer.push(&delta(0, "one ")), AnswerChange::Nothing);
        assert_eq!(answer.push(&delta(1, "too")), AnswerChange::Anew("one too"));
        // A shorter answer differs as well, which shows only at its end.
        answer.begin_attempt();
        answer.push(&delta(0, "one"));
        assert_eq!(answer.end_message("one", false), AnswerChange::Anew("one"));
    }

    #[test]
    fn a_lost_piece_leaves_no_hole() {
        let mut answer = AnswerText::default();
        answer.push(&delta(0, "a"));
        answer.pass_over(&delta(1, "thinking"));
        assert_eq!(answer.push(&delta(3, "c")), AnswerChange::Nothing);
        assert_eq!(answer.unfinished(), Some("a"));
        assert_eq!(answer.end_message("abc", false), AnswerChange::More("bc"));
    }

    #[test]
    fn a_paused_answer_goes_on() {
        let mut answer = AnswerText::default();
        answer.push(&delta(0, "first "));
        assert_eq!(answer.end_message("first ", true), AnswerChange::Nothing);
        assert!(!answer.begin_attempt());
        assert_eq!(answer.push(&delta(0, "second")), AnswerChange::More("second"));
        assert_eq!(answer.end_message("second", false), AnswerChange::Nothing);
        assert_eq!(answer.end_answer("first second"), AnswerChange::Nothing);
    }

    fn random_text(chance: &mut Chance) -> String {
        (0..chance.below(12)).map(|_| chance.one_of(&['a', 'b', 'ä', '\n'])).collect()
    }

    /// Sends a text in pieces, some of which are lost.
    fn send(answer: &mut AnswerText, seen: &mut Seen, text: &str, chance: &mut Chance) {
        for (index, c) in text.chars().enumerate() {
            if chance.below(20) > 0 {
                seen.take(answer.push(&delta(index as u64, &c.to_string())));
            }
        }
    }

    #[test]
    fn whatever_breaks_off_the_last_thing_shown_is_the_answer_and_nothing_is_doubled() {
        for seed in 0..2_000 {
            let mut chance = Chance::new(seed);
            let (mut answer, mut seen) = (AnswerText::default(), Seen::default());
            let whole = random_text(&mut chance);
            let is_faithful = chance.below(2) == 0;
            for _ in 0..chance.below(4) {
                answer.begin_attempt();
                let text = if is_faithful { whole.clone() } else { random_text(&mut chance) };
                let end = chance.below(text.chars().count() + 1);
                let broken: String = text.chars().take(end).collect();
                send(&mut answer, &mut seen, &broken, &mut chance);
            }
            answer.begin_attempt();
            send(&mut answer, &mut seen, &whole, &mut chance);
            seen.take(answer.end_message(&whole, false));
            seen.take(answer.end_answer(&whole));
            assert!(seen.0.ends_with(&whole), "seed {seed}: {seen:?} of {whole:?}", seen = seen.0);
            if is_faithful {
                assert_eq!(seen.0, whole, "seed {seed}");
            }
        }
    }
}
