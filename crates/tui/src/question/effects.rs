//! Does what a change of focus asks for: answers, scrolls, or types into the editor of an answer.

use std::time::Instant;

use crossterm::event::{KeyCode, KeyEvent};
use llm_do_core::{Answer, Exhausted, ExtensionRequest, Quantity, Scope, counted, parse_strict};
use serde_json::Value;

use super::focus::{Amount, AnswerMode, Direction, Effect, FocusInput, Keyboard};
use super::{OpenQuestion, QuestionReply, QuestionSubject, Questions, Revision, answer_editor};

/// What the rest of the UI does after a key, a paste or a tick.
#[derive(Debug, PartialEq)]
pub(crate) enum QuestionResult {
    /// Nothing.
    Done,
    /// It takes the key or the paste; before that, this letter.
    PassOn { letter: Option<KeyEvent> },
    /// The key was used up, and the question shows a hint.
    Hinted,
    /// It lets the person edit the arguments in their own editor.
    EditOutside(Value),
    /// A budget of the run grew to this.
    Extended(Quantity, u64),
}

impl Questions {
    /// Drops questions that were withdrawn, and takes note of the time.
    pub(crate) fn tick(&mut self, now: Instant, keyboard: Keyboard) -> QuestionResult {
        // First, so that a pending letter cannot answer the question that comes after a withdrawn one.
        self.drop_withdrawn();
        self.handle(FocusInput::Tick(now), keyboard)
    }

    /// Takes a key before anything else does: it decides what a pending letter means.
    pub(crate) fn next_key(&mut self, key: KeyEvent, keyboard: Keyboard) -> QuestionResult {
        self.handle(FocusInput::NextKey(key), keyboard)
    }

    /// Takes a key that nothing else took.
    pub(crate) fn key(&mut self, key: KeyEvent, now: Instant, keyboard: Keyboard) -> QuestionResult {
        if self.has_focus() {
            self.hint = None;
        }
        self.handle(FocusInput::Key(key, now), keyboard)
    }

    /// Takes pasted text.
    pub(crate) fn paste(&mut self, text: &str, keyboard: Keyboard) -> QuestionResult {
        let result = self.next_focus(FocusInput::Paste, keyboard);
        if result == Effect::Paste {
            if let (true, Some(editor)) = (self.is_typing(), &mut self.editor) {
                editor.paste(text);
            }
            return QuestionResult::Done;
        }
        self.perform(result, keyboard)
    }

    fn handle(&mut self, input: FocusInput, keyboard: Keyboard) -> QuestionResult {
        let effect = self.next_focus(input, keyboard);
        self.perform(effect, keyboard)
    }

    fn perform(&mut self, effect: Effect, keyboard: Keyboard) -> QuestionResult {
        match effect {
            Effect::Nothing | Effect::Paste => {}
            Effect::PassOn { letter } => return QuestionResult::PassOn { letter },
            Effect::Hint(hint) => return self.complain(hint),
            Effect::ShowUnseen => self.show_unseen(),
            Effect::AllowOnce => self.answer(Answer::Once),
            Effect::Grant(index) => self.grant(index),
            Effect::Extend(amount) => return self.extend(amount),
            Effect::Stop => self.answer(Answer::Stop),
            Effect::OpenEditor => self.open_editor(),
            Effect::EditOutside => return self.edit_outside(),
            Effect::SubmitArguments => self.submit_arguments(),
            Effect::Type(key) => return self.type_key(key, keyboard),
            Effect::Turn(direction) => self.turn(direction),
            Effect::Scroll(code) => self.scroll(code),
        }
        QuestionResult::Done
    }

    /// Shows what is wrong at the question.
    pub(crate) fn complain(&mut self, message: impl Into<String>) -> QuestionResult {
        self.hint = Some(message.into());
        QuestionResult::Hinted
    }

    fn show_unseen(&mut self) {
        let Some(panel) = &mut self.panel else { return };
        let unseen = panel.unseen();
        let hint = if unseen == 0 {
            "all of it is shown now: press the key again".to_owned()
        } else if panel.is_cut() {
            "too narrow: a wider terminal shows all of it".to_owned()
        } else {
            panel.go_back_to_unseen();
            format!("{} to see: Space goes on", counted(unseen, "more row"))
        };
        let is_amount = self.focus.mode() == AnswerMode::Amount;
        self.hint =
            Some(if is_amount { "not all of it was shown yet: ↑ and ↓ scroll".to_owned() } else { hint });
    }

    fn scroll(&mut self, code: KeyCode) {
        if let Some(panel) = &mut self.panel
            && !panel.scroll(code)
        {
            self.hint = Some(super::focus::ANSWER_KEYS.to_owned());
        }
    }

    fn turn(&mut self, direction: Direction) {
        let count = self.open.len();
        let step = if direction == Direction::Next { 1 } else { count.saturating_sub(1) };
        let index = (self.current + step) % count.max(1);
        if index != self.current {
            self.show(index);
        }
    }

    fn open_editor(&mut self) {
        let editor = match (self.focus.mode(), self.current()) {
            (AnswerMode::Editing, Some(OpenQuestion { subject: QuestionSubject::Approval(request), .. })) => {
                answer_editor::for_arguments(request.arguments.value())
            }
            (AnswerMode::Amount, _) => answer_editor::for_amount(),
            _ => answer_editor::for_denial(),
        };
        self.editor = Some(Box::new(editor));
    }

    fn edit_outside(&mut self) -> QuestionResult {
        if let (AnswerMode::Editing, Some(editor)) = (self.focus.mode(), &self.editor) {
            return match parse_strict(&editor.text()) {
                Ok(value) => QuestionResult::EditOutside(value),
                Err(error) => self.complain(format!("not valid JSON: {error}")),
            };
        }
        match self.current() {
            Some(OpenQuestion { subject: QuestionSubject::Approval(request), .. }) => {
                QuestionResult::EditOutside(request.arguments.value().clone())
            }
            _ => QuestionResult::Done,
        }
    }

    fn submit_arguments(&mut self) {
        let Some(editor) = &self.editor else { return };
        match parse_strict(&editor.text()) {
            Ok(value) => self.revise(value),
            Err(error) => self.hint = Some(format!("not valid JSON: {error}")),
        }
    }

    /// Asks again with other arguments, or says that nothing was changed.
    pub(crate) fn revise(&mut self, value: Value) {
        let Some(OpenQuestion { subject: QuestionSubject::Approval(request), .. }) = self.current() else {
            return;
        };
        if value == *request.arguments.value() {
            self.change_focus(FocusInput::Unchanged);
            self.hint = Some("nothing was changed".to_owned());
        } else {
            let (call, path) = (request.id.clone(), request.path.clone());
            self.revision = Some(Revision { call, path, arguments: value.clone() });
            self.answer(Answer::Revise(value));
        }
    }

    /// Types into the editor of the mode. In arguments Enter makes a new line, elsewhere it submits.
    fn type_key(&mut self, key: KeyEvent, keyboard: Keyboard) -> QuestionResult {
        let Some(editor) = &mut self.editor else { return QuestionResult::Done };
        match self.focus.mode() {
            AnswerMode::Editing if key.code == KeyCode::Enter => {
                editor.insert("\n");
            }
            AnswerMode::Denying => {
                if let Some(reason) = answer_editor::type_key(editor, key) {
                    self.answer(Answer::Deny(reason.trim().to_owned()));
                }
            }
            AnswerMode::Amount => {
                if let Some(text) = answer_editor::type_key(editor, key) {
                    return self.enter_amount(&text, keyboard);
                }
            }
            _ => {
                answer_editor::type_key(editor, key);
            }
        }
        QuestionResult::Done
    }

    fn enter_amount(&mut self, text: &str, keyboard: Keyboard) -> QuestionResult {
        let Some(OpenQuestion { subject: QuestionSubject::Extension(request), .. }) = self.current() else {
            return QuestionResult::Done;
        };
        let amount = match (text.trim(), request.exhausted.what.read(text)) {
            ("", _) => Amount::Nothing,
            (_, Some(number)) => Amount::Number(number),
            _ => Amount::Unreadable,
        };
        let effect = self.next_focus(FocusInput::Amount(amount), keyboard);
        if let (false, Some(editor)) = (matches!(effect, Effect::Extend(_)), &mut self.editor) {
            editor.set_text(text);
        }
        self.perform(effect, keyboard)
    }

    fn grant(&mut self, index: usize) {
        let Some(OpenQuestion { subject: QuestionSubject::Approval(request), .. }) = self.current() else {
            return;
        };
        // The list begins with the call itself.
        let scope = match index.checked_sub(1) {
            None => Some(Scope::Exact),
            Some(index) => request.scopes.get(index).cloned(),
        };
        if let Some(scope) = scope {
            self.answer(Answer::Session(scope));
        }
    }

    fn answer(&mut self, answer: Answer) {
        let index = self.current;
        if index >= self.open.len() {
            return;
        }
        if let QuestionReply::Approval(reply) = self.open.remove(index).reply {
            // Whoever asked may have gone in this moment.
            let _ = reply.send(answer);
        }
        self.show(index);
    }

    fn extend(&mut self, amount: Option<u64>) -> QuestionResult {
        let index = self.current;
        if index >= self.open.len() {
            return QuestionResult::Done;
        }
        let OpenQuestion { subject, reply } = self.open.remove(index);
        if let QuestionReply::Extension(reply) = reply {
            let _ = reply.send(amount);
        }
        self.show(index);
        match (subject, amount) {
            (QuestionSubject::Extension(ExtensionRequest { exhausted, .. }), Some(amount))
                if exhausted.owner == Exhausted::THE_RUN =>
            {
                QuestionResult::Extended(exhausted.what, exhausted.limit.saturating_add(amount))
            }
            _ => QuestionResult::Done,
        }
    }
}
