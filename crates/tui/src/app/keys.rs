//! Keys: which of question, tree, form and input they are for.

use std::time::Instant;

use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use serde_json::Value;

use super::{App, AppAction, Draft, TWICE};
use crate::call_tree::CallIndex;
use crate::completion::Completed;
use crate::editor::Edited;
use crate::form::FormStep;
use crate::protocol::UiCommand;
use crate::question::QuestionResult;
use crate::question::focus::{Arrival, is_text};
use crate::view::TreeStep;

impl App {
    /// Takes a key.
    pub(crate) fn key(&mut self, key: KeyEvent, arrival: Arrival, now: Instant) -> AppAction {
        if key.kind == KeyEventKind::Release {
            return AppAction::Continue;
        }
        self.hint = None;
        let step = self.route_key(key, arrival, now);
        self.last_key = now;
        step
    }

    /// Gives a key to whatever it is for: a pending answer, everything, the tree, the question, or the rest.
    fn route_key(&mut self, key: KeyEvent, arrival: Arrival, now: Instant) -> AppAction {
        if let Some(step) = self.resolve_pending(key, arrival).or_else(|| self.global_key(key, now)) {
            return step;
        }
        if self.in_tree {
            self.tree_key(key, now);
            return AppAction::Continue;
        }
        match self.questions.key(key, now, self.keyboard(arrival)) {
            QuestionResult::PassOn { letter } => {
                self.type_letter(letter);
                self.other_key(key, now)
            }
            result => self.after_question(result),
        }
    }

    /// Decides what a pending letter means now that a key follows it. Returns a step if that key is used up.
    fn resolve_pending(&mut self, key: KeyEvent, arrival: Arrival) -> Option<AppAction> {
        match self.questions.next_key(key, self.keyboard(arrival)) {
            QuestionResult::PassOn { letter } => {
                self.type_letter(letter);
                None
            }
            // A letter that made a text, or the same one twice.
            QuestionResult::Hinted if is_text(key) => Some(AppAction::Continue),
            result => {
                let step = self.after_question(result);
                (step != AppAction::Continue).then_some(step)
            }
        }
    }

    /// Does what came of a question's key or of the time.
    pub(super) fn after_question(&mut self, result: QuestionResult) -> AppAction {
        match result {
            QuestionResult::EditOutside(arguments) => return AppAction::Edit(arguments),
            QuestionResult::Extended(what, limit) => self.call_tree.extend(what, limit),
            QuestionResult::PassOn { letter } => self.type_letter(letter),
            QuestionResult::Hinted | QuestionResult::Done => {}
        }
        AppAction::Continue
    }

    /// Types a letter that turned out not to be an answer into the form or the input.
    fn type_letter(&mut self, letter: Option<KeyEvent>) {
        let Some(letter) = letter else { return };
        match &mut self.form {
            Some(purpose) => drop(purpose.form.key(letter)),
            None => drop(self.editor.key(letter)),
        }
    }

    /// Keys that mean the same everywhere.
    fn global_key(&mut self, key: KeyEvent, now: Instant) -> Option<AppAction> {
        if key.modifiers != KeyModifiers::CONTROL {
            return None;
        }
        match key.code {
            KeyCode::Char('c') => self.interrupt_or_leave(now),
            KeyCode::Char('t') => self.show_tree(!self.in_tree),
            KeyCode::Char('l') => return Some(AppAction::Refresh),
            KeyCode::Char('z') => return Some(self.suspend()),
            KeyCode::Char('o') => self.fold(now),
            KeyCode::Char('d') if self.is_input_empty() => self.send_command(UiCommand::Quit),
            _ => return None,
        }
        Some(AppAction::Continue)
    }

    /// A question that was not on the screen meanwhile takes no keys at once.
    fn suspend(&mut self) -> AppAction {
        self.questions.cover();
        AppAction::Suspend
    }

    /// Returns whether there is an input, it is empty and nothing is typed elsewhere.
    fn is_input_empty(&self) -> bool {
        let elsewhere = self.form.is_some() || self.questions.is_typing();
        self.has_input() && self.editor.is_empty() && !elsewhere
    }

    /// Shows the tree or leaves it. A question that was not on the screen meanwhile takes no keys at once.
    pub(super) fn show_tree(&mut self, shown: bool) {
        self.in_tree = shown;
        self.questions.cover();
    }

    fn fold(&mut self, now: Instant) {
        self.transcript.unfolded = !self.transcript.unfolded;
        let text = if self.transcript.unfolded { "from now on at length" } else { "from now on folded" };
        self.show_hint(text, now);
    }

    pub(super) fn show_hint(&mut self, text: &str, now: Instant) {
        self.hint = Some((text.to_owned(), now));
    }

    fn interrupt_or_leave(&mut self, now: Instant) {
        let is_second = self.interrupted.is_some_and(|first| now.saturating_duration_since(first) < TWICE);
        if is_second {
            return self.send_command(UiCommand::Quit);
        }
        self.interrupted = Some(now);
        if self.busy {
            self.interrupt();
            self.show_hint("stopping; Ctrl-C again leaves", now);
        } else {
            self.editor.set_text("");
            self.show_hint("Ctrl-C again leaves", now);
        }
    }

    /// Stops the turn. Messages that waited for its end are put back into the input.
    fn interrupt(&mut self) {
        let waiting = std::mem::take(&mut self.queued);
        let draft = self.editor.text();
        let waiting = waiting.into_iter().filter_map(|outgoing| outgoing.command.to_text());
        let texts = waiting.chain((!draft.is_empty()).then_some(draft));
        let text = texts.collect::<Vec<_>>().join("\n");
        self.editor.set_text(&text);
        self.send_command(UiCommand::Interrupt);
    }

    pub(super) fn send_command(&mut self, command: UiCommand) {
        // Nobody receives it any more: the program is exiting.
        if self.commands.send(command).is_err() {
            self.should_exit = true;
        }
    }

    /// Takes what came of editing outside.
    pub(crate) fn edited(&mut self, edited: Result<Value, String>) {
        match edited {
            Ok(value) => self.questions.revise(value),
            Err(problem) => drop(self.questions.complain(problem)),
        }
        // Keys that were meant for the editor may still come.
        self.questions.cover();
    }

    fn other_key(&mut self, key: KeyEvent, now: Instant) -> AppAction {
        if self.form.is_some() {
            self.form_key(key, now);
        } else if self.has_input() {
            return self.input_key(key, now);
        } else if key.code == KeyCode::Esc && self.busy {
            self.interrupt();
            self.show_hint("stopping", now);
        }
        AppAction::Continue
    }

    fn tree_key(&mut self, key: KeyEvent, now: Instant) {
        let asked = self.cancel_asked.take();
        match self.tree.key(key, &self.call_tree) {
            TreeStep::Close => self.show_tree(false),
            TreeStep::Cancel(index) => self.cancel_or_ask(index, asked, now),
            TreeStep::Nothing | TreeStep::Taken => {}
        }
    }

    /// Cancels a call when `c` is pressed for it twice: no other key of the tree changes anything, so the first one may
    /// be a mistake.
    fn cancel_or_ask(&mut self, index: CallIndex, asked: Option<(CallIndex, Instant)>, now: Instant) {
        let Some(call) = self.call_tree.call(index) else { return };
        let is_second = asked
            .is_some_and(|(other, first)| other == index && now.saturating_duration_since(first) < TWICE);
        if is_second {
            let command = UiCommand::Cancel { run: call.run, call: call.key.clone() };
            self.send_command(command);
            self.show_hint("canceling", now);
        } else {
            let question = format!("press c again to cancel `{}` and its calls", call.name);
            self.cancel_asked = Some((index, now));
            self.show_hint(&question, now);
        }
    }

    fn form_key(&mut self, key: KeyEvent, now: Instant) {
        let Some(mut purpose) = self.form.take() else { return };
        match purpose.form.key(key) {
            FormStep::Going => self.form = Some(purpose),
            FormStep::Cancelled => {
                if purpose.call.is_none() {
                    self.show_hint("write the input as JSON, or leave with Ctrl-C", now);
                }
            }
            FormStep::Sent(value) => {
                let command = match purpose.call.clone() {
                    Some(name) => UiCommand::Call { name, input: value },
                    None => UiCommand::SubmitInput(value),
                };
                self.send(command, Draft::Form(Box::new(purpose)));
            }
        }
    }

    fn input_key(&mut self, key: KeyEvent, now: Instant) -> AppAction {
        match self.completion.key(key, &mut self.editor) {
            Completed::Nothing => {}
            Completed::Chosen => {
                let step = self.take_line(now);
                self.completion.update(&self.editor);
                return step;
            }
            Completed::Moved | Completed::Accepted => {
                self.completion.update(&self.editor);
                return AppAction::Continue;
            }
        }
        if key.code == KeyCode::Esc {
            if self.busy {
                self.interrupt();
                self.show_hint("stopping", now);
            }
            return AppAction::Continue;
        }
        let step = match self.editor.key(key) {
            Edited::Send => self.take_line(now),
            _ => AppAction::Continue,
        };
        self.completion.update(&self.editor);
        step
    }

    /// Takes pasted text.
    pub(crate) fn paste(&mut self, text: &str, now: Instant) {
        let keyboard = self.keyboard(Arrival::Alone);
        self.last_key = now;
        if self.in_tree {
            return;
        }
        match self.questions.paste(text, keyboard) {
            QuestionResult::PassOn { letter } => self.type_letter(letter),
            _ => return,
        }
        if let Some(purpose) = &mut self.form {
            purpose.form.paste(text);
        } else if self.has_input() {
            self.editor.paste(text);
            self.completion.update(&self.editor);
        }
    }
}
