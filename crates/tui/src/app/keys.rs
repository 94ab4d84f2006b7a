//! Keys: which of question, tree, form and input they are for.

use std::time::Instant;

use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use serde_json::Value;

use super::{App, Burst, Draft, Step, TWICE};
use crate::completion::Completed;
use crate::editor::Edited;
use crate::form::FormStep;
use crate::question::{Asked, PAUSE};
use crate::view::TreeStep;
use crate::wish::Wish;

/// What is said about keys that are no answer for coming together.
const ALONE: &str = "keys that come together are no answer: press one alone";

impl App {
    /// Takes a key.
    pub(crate) fn key(&mut self, key: KeyEvent, now: Instant) -> Step {
        if key.kind == KeyEventKind::Release {
            return Step::Go;
        }
        self.hint = None;
        if let Some(step) = self.finish_half(key) {
            self.last_key = now;
            return step;
        }
        let step = match self.global_key(key, now) {
            Some(step) => step,
            None if self.questions.is_attended() && !self.in_tree => self.question_key(key, now),
            None => self.other_key(key, now),
        };
        self.last_key = now;
        step
    }

    /// Something follows a key that could be an answer: the same once more is a slip; more text is meant for the input,
    /// and so was the first letter; a key that erases or stops takes it back. Says what to do where that is all.
    fn finish_half(&mut self, next: KeyEvent) -> Option<Step> {
        let (first, _) = self.half?;
        if is_text(next) && next.code != first.code {
            self.take_half_as_text();
            return None;
        }
        self.half = None;
        if is_text(next) {
            self.questions.complain(ALONE.to_owned());
            return Some(Step::Go);
        }
        let step = if takes_back(next) { Step::Go } else { self.answer_key(first) };
        (step != Step::Go).then_some(step)
    }

    fn take_half_as_text(&mut self) {
        let Some((first, _)) = self.half.take() else { return };
        self.questions.let_go();
        let has_input = self.has_input();
        match &mut self.form {
            Some(purpose) => drop(purpose.form.key(first)),
            None if has_input => drop(self.editor.key(first)),
            None => self.refuse_words(),
        }
    }

    /// Where nothing can be written, words are no answer either: the question waits until it is quiet.
    fn refuse_words(&mut self) {
        self.questions.disarm();
        self.questions.complain(ALONE.to_owned());
    }

    /// Keys that mean the same everywhere.
    fn global_key(&mut self, key: KeyEvent, now: Instant) -> Option<Step> {
        if key.modifiers != KeyModifiers::CONTROL {
            return None;
        }
        match key.code {
            KeyCode::Char('c') => self.interrupt_or_leave(now),
            KeyCode::Char('t') => self.show_tree(!self.in_tree),
            KeyCode::Char('l') => return Some(Step::Refresh),
            KeyCode::Char('z') => return Some(self.suspend()),
            KeyCode::Char('o') => self.fold(now),
            KeyCode::Char('d') if self.is_input_empty() => self.wish(Wish::Quit),
            _ => return None,
        }
        Some(Step::Go)
    }

    /// A question that was not on the screen meanwhile takes no keys at once.
    fn suspend(&mut self) -> Step {
        self.questions.disarm();
        Step::Suspend
    }

    /// Whether there is an input, nothing stands in it and nothing is written elsewhere.
    fn is_input_empty(&self) -> bool {
        let elsewhere = self.form.is_some() || self.questions.is_written_at();
        self.has_input() && self.editor.is_empty() && !elsewhere
    }

    /// Shows the tree or leaves it. A question that was not on the screen meanwhile takes no keys at once.
    pub(super) fn show_tree(&mut self, shown: bool) {
        self.in_tree = shown;
        self.questions.disarm();
    }

    fn fold(&mut self, now: Instant) {
        self.transcript.unfolded = !self.transcript.unfolded;
        let words = if self.transcript.unfolded { "from now on at length" } else { "from now on folded" };
        self.say(words, now);
    }

    pub(super) fn say(&mut self, words: &str, now: Instant) {
        self.hint = Some((words.to_owned(), now));
    }

    fn interrupt_or_leave(&mut self, now: Instant) {
        let is_second = self.interrupted.is_some_and(|first| now.saturating_duration_since(first) < TWICE);
        if is_second {
            return self.wish(Wish::Quit);
        }
        self.interrupted = Some(now);
        if self.busy {
            self.interrupt();
            self.say("stopping; Ctrl-C again leaves", now);
        } else {
            self.editor.set_text("");
            self.say("Ctrl-C again leaves", now);
        }
    }

    /// Stops the turn. Messages that waited for its end stand in the input again.
    fn interrupt(&mut self) {
        let waiting = std::mem::take(&mut self.queued);
        let draft = self.editor.text();
        let waiting = waiting.into_iter().filter_map(|outgoing| outgoing.wish.words());
        let texts = waiting.chain((!draft.is_empty()).then_some(draft));
        let text = texts.collect::<Vec<_>>().join("\n");
        self.editor.set_text(&text);
        self.wish(Wish::Interrupt);
    }

    pub(super) fn wish(&mut self, wish: Wish) {
        // Nobody to grant it: the program is leaving.
        if self.wishes.send(wish).is_err() {
            self.leaves = true;
        }
    }

    /// Says how the keys came that follow.
    pub(crate) fn burst(&mut self, burst: Burst) {
        self.burst = burst;
    }

    fn question_key(&mut self, key: KeyEvent, now: Instant) -> Step {
        if self.burst != Burst::No && is_letter(key) && self.questions.is_choosing() {
            return self.refuse_burst(key, now);
        }
        if self.burst != Burst::No && key.code == KeyCode::Enter && self.questions.is_asking_amount() {
            self.questions.complain(ALONE.to_owned());
            return Step::Go;
        }
        if self.has_input() && self.questions.is_choosing_scope() && is_word(key) {
            return self.leave_scopes(key, now);
        }
        if self.questions.is_unsure() && is_letter(key) { self.weigh(key, now) } else { self.answer_key(key) }
    }

    /// A letter may be an answer or begin a word. One that would answer for good waits for others, where there is an
    /// input every one.
    fn weigh(&mut self, key: KeyEvent, now: Instant) -> Step {
        match key.code {
            _ if self.has_input() => self.half = Some((key, now)),
            KeyCode::Char('y' | 'a' | 'q') => self.half = Some((key, now)),
            KeyCode::Char('e' | 'E' | 'n' | 'j' | 'k' | '[' | ']') => return self.answer_key(key),
            // It says which keys there are. Words may follow, of which none is an answer.
            _ => {
                self.answer_key(key);
                self.questions.disarm();
            }
        }
        Step::Go
    }

    /// A letter among others is no answer. It is for the input, where there is one.
    fn refuse_burst(&mut self, key: KeyEvent, now: Instant) -> Step {
        if self.burst == Burst::Slip {
            self.questions.complain(ALONE.to_owned());
            return Step::Go;
        }
        self.questions.give_up();
        if !self.has_input() {
            self.refuse_words();
            return Step::Go;
        }
        self.other_key(key, now)
    }

    /// Somebody goes on writing: the key that opened the scopes was the beginning of it.
    fn leave_scopes(&mut self, key: KeyEvent, now: Instant) -> Step {
        self.questions.give_up();
        self.half = Some((KeyEvent::from(KeyCode::Char('a')), now));
        self.take_half_as_text();
        self.other_key(key, now)
    }

    /// Answers the question that takes keys; one that has come in its place since takes none yet.
    pub(super) fn answer_key(&mut self, key: KeyEvent) -> Step {
        if !self.questions.is_attended() {
            return Step::Go;
        }
        match self.questions.key(key) {
            Asked::Edit(arguments) => return Step::Edit(arguments),
            Asked::Leave => self.questions.attend(false),
            Asked::Extended(what, limit) => self.story.extend(what, limit),
            Asked::Nothing | Asked::Taken => {}
        }
        Step::Go
    }

    /// Takes what came of editing outside.
    pub(crate) fn edited(&mut self, edited: Result<Value, String>) {
        match edited {
            Ok(value) => self.questions.revise(value),
            Err(problem) => self.questions.complain(problem),
        }
        // Keys that were meant for the editor may still come.
        self.questions.disarm();
    }

    fn other_key(&mut self, key: KeyEvent, now: Instant) -> Step {
        self.questions.await_no_more();
        if self.in_tree {
            self.tree_key(key, now);
        } else if key.code == KeyCode::Tab && self.turn_to_question(now) {
            return Step::Go;
        } else if self.form.is_some() {
            self.form_key(key, now);
        } else if self.has_input() {
            return self.input_key(key, now);
        } else if key.code == KeyCode::Esc && self.busy {
            self.interrupt();
            self.say("stopping", now);
        }
        Step::Go
    }

    /// Turns to the question that waits, if it is not the input that wants the key. In a form Tab goes to the next field
    /// while somebody fills it in, and letters that follow it at once are for the form.
    fn turn_to_question(&mut self, now: Instant) -> bool {
        let has_stood = self.questions.has_stood(now);
        let is_quiet = now.saturating_duration_since(self.last_key) >= PAUSE;
        match self.form {
            _ if self.questions.is_empty() || self.completion.is_open() => return false,
            None if has_stood => self.questions.attend(true),
            None => self.questions.await_it(),
            Some(_) if has_stood && is_quiet => self.questions.attend_unsurely(),
            Some(_) => return false,
        }
        true
    }

    fn tree_key(&mut self, key: KeyEvent, now: Instant) {
        match self.tree.key(key, &self.story) {
            TreeStep::Close => self.show_tree(false),
            TreeStep::Cancel(place) => {
                if let Some(call) = self.story.call(place) {
                    let wish = Wish::Cancel { run: call.run, call: call.key.clone() };
                    self.wish(wish);
                    self.say("cancelling", now);
                }
            }
            TreeStep::Nothing | TreeStep::Taken => {}
        }
    }

    fn form_key(&mut self, key: KeyEvent, now: Instant) {
        let Some(mut purpose) = self.form.take() else { return };
        match purpose.form.key(key) {
            FormStep::Going => self.form = Some(purpose),
            FormStep::Cancelled => {
                if purpose.call.is_none() {
                    self.say("write the input as JSON, or leave with Ctrl-C", now);
                }
            }
            FormStep::Sent(value) => {
                let wish = match purpose.call.clone() {
                    Some(name) => Wish::Call { name, input: value },
                    None => Wish::Give(value),
                };
                self.send(wish, Draft::Form(Box::new(purpose)));
            }
        }
    }

    fn input_key(&mut self, key: KeyEvent, now: Instant) -> Step {
        match self.completion.key(key, &mut self.editor) {
            Completed::Nothing => {}
            Completed::Chosen => {
                let step = self.take_line(now);
                self.completion.update(&self.editor);
                return step;
            }
            Completed::Moved | Completed::Accepted => {
                self.completion.update(&self.editor);
                return Step::Go;
            }
        }
        if key.code == KeyCode::Esc {
            if self.busy {
                self.interrupt();
                self.say("stopping", now);
            }
            return Step::Go;
        }
        let step = match self.editor.key(key) {
            Edited::Send => self.take_line(now),
            _ => Step::Go,
        };
        self.completion.update(&self.editor);
        step
    }

    /// Takes pasted text.
    pub(crate) fn paste(&mut self, text: &str, now: Instant) {
        self.last_key = now;
        self.take_half_as_text();
        if self.in_tree {
            return;
        }
        self.questions.await_no_more();
        if self.has_input() && self.questions.is_unsure() {
            self.questions.let_go();
        }
        if self.questions.is_attended() {
            self.questions.paste(text);
        } else if let Some(purpose) = &mut self.form {
            purpose.form.paste(text);
        } else if self.has_input() {
            self.editor.paste(text);
            self.completion.update(&self.editor);
        }
    }
}

/// A key that writes something.
fn is_text(key: KeyEvent) -> bool {
    let is_plain = (key.modifiers - KeyModifiers::SHIFT).is_empty();
    is_plain && matches!(key.code, KeyCode::Char(_))
}

/// A key that is pressed by somebody who did not mean the one before.
fn takes_back(key: KeyEvent) -> bool {
    key.modifiers.contains(KeyModifiers::CONTROL)
        || matches!(key.code, KeyCode::Backspace | KeyCode::Delete | KeyCode::Esc)
}

/// A key that is part of a sentence and no number of a list.
fn is_word(key: KeyEvent) -> bool {
    is_letter(key) && !matches!(key.code, KeyCode::Char('0'..='9'))
}

/// A key that begins a word; a space scrolls.
fn is_letter(key: KeyEvent) -> bool {
    is_text(key) && key.code != KeyCode::Char(' ')
}
