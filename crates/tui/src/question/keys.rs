//! What keys do at a question: choose an answer, scroll, or write something.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use llm_do_core::{Answer, Exhausted, ExtensionRequest, Quantity, counted, parse_strict};
use serde_json::Value;

use super::scopes::ScopeList;
use super::stage::{self, Stage, Typed};
use super::{Matter, Question, Questions, Reply, Revised};

const CHOOSE_SCOPE: &str = "a number allows that; ↑ and ↓ choose, Esc goes back";

/// What a key did.
#[derive(Debug, PartialEq)]
pub(crate) enum Asked {
    /// It is not for the question.
    Nothing,
    Taken,
    /// The arguments shall be edited in the person's own editor.
    Edit(Value),
    /// The keys shall go to the input again.
    Leave,
    /// A budget of the run may grow to this.
    Extended(Quantity, u64),
}

impl Questions {
    /// Takes a key of the person.
    pub(crate) fn key(&mut self, key: KeyEvent) -> Asked {
        self.hint = None;
        if self.current().is_none() {
            return Asked::Nothing;
        }
        match std::mem::take(&mut self.stage) {
            Stage::Choosing => self.choose(key),
            stage => self.go_on(stage, key),
        }
    }

    fn choose(&mut self, key: KeyEvent) -> Asked {
        if key.modifiers.intersects(KeyModifiers::CONTROL | KeyModifiers::ALT) {
            return Asked::Nothing;
        }
        match key.code {
            KeyCode::Char('y') => self.allow_once(),
            KeyCode::Char('a') => self.choose_scope(),
            KeyCode::Char('e') => self.edit(),
            KeyCode::Char('E') => return self.edit_outside(),
            KeyCode::Char('n') => self.stage = Stage::denying(),
            KeyCode::Char('q') => self.answer(Answer::Stop),
            KeyCode::Tab => return Asked::Leave,
            KeyCode::Right | KeyCode::Char(']') => self.turn(1),
            KeyCode::Left | KeyCode::Char('[') => self.turn(self.open.len() - 1),
            code => return self.scroll(code),
        }
        Asked::Taken
    }

    fn scroll(&mut self, code: KeyCode) -> Asked {
        let Some(panel) = &mut self.panel else { return Asked::Nothing };
        if panel.scroll(code) {
            return Asked::Taken;
        }
        self.hint = Some("y, a, e, n or q answers; arrows, Space and End scroll".to_owned());
        Asked::Taken
    }

    fn turn(&mut self, by: usize) {
        let place = (self.shown + by) % self.open.len();
        if place != self.shown {
            self.turn_to(place);
        }
    }

    /// Whether everything has been on the screen; a word about it where not.
    fn is_seen(&mut self) -> bool {
        // What was never laid out was never seen.
        let Some(panel) = &mut self.panel else { return false };
        let unseen = panel.unseen();
        if panel.is_cut() && unseen > 0 {
            self.hint = Some("too narrow: a wider terminal shows all of it".to_owned());
        } else if unseen > 0 {
            panel.go_back_to_unseen();
            self.hint = Some(format!("{} to see: Space goes on", counted(unseen, "more row")));
        }
        unseen == 0
    }

    fn allow_once(&mut self) {
        if self.is_seen() {
            self.answer(Answer::Once);
        }
    }

    fn choose_scope(&mut self) {
        let Some(Question { matter: Matter::Approval(request), .. }) = self.current() else { return };
        if request.scopes.is_empty() {
            self.hint = Some("this call asks each time".to_owned());
        } else if self.is_seen() {
            self.stage = Stage::Scope(None);
            self.forget_scopes();
        }
    }

    fn edit(&mut self) {
        let Some(Question { matter: Matter::Approval(request), .. }) = self.current() else { return };
        self.stage = Stage::editing(request.arguments.value());
    }

    fn edit_outside(&mut self) -> Asked {
        match self.current() {
            Some(Question { matter: Matter::Approval(request), .. }) => {
                Asked::Edit(request.arguments.value().clone())
            }
            _ => Asked::Taken,
        }
    }

    fn go_on(&mut self, stage: Stage, key: KeyEvent) -> Asked {
        self.stage = stage;
        if key.code == KeyCode::Esc {
            self.stage = Stage::Choosing;
            return Asked::Taken;
        }
        match &mut self.stage {
            Stage::Choosing => {}
            Stage::Scope(_) => self.pick_scope(key),
            Stage::Denying(_) => self.type_denial(key),
            Stage::Editing(_) => return self.type_arguments(key),
            Stage::Amount(_) => return self.type_amount(key),
        }
        Asked::Taken
    }

    fn pick_scope(&mut self, key: KeyEvent) {
        let (Some(list), Stage::Scope(chosen)) = (self.scope_list(), &mut self.stage) else { return };
        let last = list.len().saturating_sub(1);
        match key.code {
            KeyCode::Up => *chosen = Some(chosen.map_or(last, |chosen| chosen.saturating_sub(1))),
            KeyCode::Down => *chosen = Some(chosen.map_or(0, |chosen| (chosen + 1).min(last))),
            KeyCode::Enter => match *chosen {
                Some(place) => self.grant(&list, place),
                None => self.hint = Some(CHOOSE_SCOPE.to_owned()),
            },
            KeyCode::Char(sign @ '1'..='9') => {
                let place = usize::from(sign as u8 - b'1');
                *chosen = Some(place.min(last));
                self.grant(&list, place);
            }
            _ => {
                // Somebody who types does not read.
                self.forget_scopes();
                self.hint = Some(CHOOSE_SCOPE.to_owned());
            }
        }
    }

    /// The scopes must stand on the screen for a moment again before one of them is granted.
    fn forget_scopes(&mut self) {
        self.scopes_shown = None;
        self.scopes_since = None;
        self.scopes_stood = false;
    }

    /// Grants a scope that is on the screen, all of it.
    fn grant(&mut self, list: &ScopeList, place: usize) {
        let Some(scope) = list.scope(place) else { return };
        let is_whole = self.scopes_shown.as_ref().is_some_and(|shown| list.is_whole(place, shown));
        if is_whole && self.scopes_stood {
            self.answer(Answer::Session(scope.clone()));
        } else {
            self.hint = Some("read it first; Enter allows it".to_owned());
        }
    }

    fn scope_list(&self) -> Option<ScopeList> {
        let width = self.panel.as_ref()?.width();
        match &self.current()?.matter {
            Matter::Approval(request) => Some(ScopeList::new(request, width)),
            Matter::Extension(_) => None,
        }
    }

    fn type_denial(&mut self, key: KeyEvent) {
        let Stage::Denying(editor) = &mut self.stage else { return };
        if let Typed::Sent(words) = stage::typed(editor, key) {
            self.answer(Answer::Deny(words.trim().to_owned()));
        }
    }

    /// Enter makes a new line in arguments; Ctrl-S is the end of it.
    fn type_arguments(&mut self, key: KeyEvent) -> Asked {
        let Stage::Editing(editor) = &mut self.stage else { return Asked::Taken };
        let is_control = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Char('s') if is_control => {
                let text = editor.text();
                self.revise_text(&text);
            }
            KeyCode::Char('x') if is_control => {
                return match parse_strict(&editor.text()) {
                    Ok(value) => Asked::Edit(value),
                    Err(error) => self.problem(&format!("not valid JSON: {error}")),
                };
            }
            KeyCode::Enter => drop(editor.insert("\n")),
            _ => {
                stage::typed(editor, key);
            }
        }
        Asked::Taken
    }

    fn problem(&mut self, words: &str) -> Asked {
        self.hint = Some(words.to_owned());
        Asked::Taken
    }

    fn revise_text(&mut self, text: &str) {
        match parse_strict(text) {
            Ok(value) => self.revise(value),
            Err(error) => self.hint = Some(format!("not valid JSON: {error}")),
        }
    }

    /// Asks again with other arguments, or says that nothing was changed.
    pub(crate) fn revise(&mut self, value: Value) {
        let Some(Question { matter: Matter::Approval(request), .. }) = self.current() else { return };
        if value == *request.arguments.value() {
            self.stage = Stage::Choosing;
            self.hint = Some("nothing was changed".to_owned());
        } else {
            let (call, path) = (request.id.clone(), request.path.clone());
            self.revised = Some(Revised { call, path, arguments: value.clone() });
            self.answer(Answer::Revise(value));
        }
    }

    /// Says what went wrong outside.
    pub(crate) fn complain(&mut self, words: String) {
        self.hint = Some(words);
    }

    fn type_amount(&mut self, key: KeyEvent) -> Asked {
        let Some(Question { matter: Matter::Extension(request), .. }) = self.open.get(self.shown) else {
            return Asked::Taken;
        };
        let what = request.exhausted.what;
        let Stage::Amount(editor) = &mut self.stage else { return Asked::Taken };
        match key.code {
            KeyCode::Tab => return Asked::Leave,
            KeyCode::Right if editor.is_empty() => self.turn(1),
            KeyCode::Left if editor.is_empty() => self.turn(self.open.len() - 1),
            KeyCode::Up | KeyCode::Down | KeyCode::PageUp | KeyCode::PageDown => {
                return self.scroll(key.code);
            }
            _ => {
                if let Typed::Sent(text) = stage::typed(editor, key) {
                    return self.take_amount(what, &text);
                }
            }
        }
        Asked::Taken
    }

    fn take_amount(&mut self, what: Quantity, text: &str) -> Asked {
        match (text.trim(), what.read(text)) {
            ("", _) => return self.extend(None),
            (_, Some(amount)) if self.is_seen() => return self.extend(Some(amount)),
            (_, Some(_)) => self.hint = Some("not all of it was shown yet: ↑ and ↓ scroll".to_owned()),
            _ => self.hint = Some("a number, or Enter alone for no".to_owned()),
        }
        if let Stage::Amount(editor) = &mut self.stage {
            editor.set_text(text);
        }
        Asked::Taken
    }

    fn answer(&mut self, answer: Answer) {
        let place = self.shown;
        if let Reply::Approval(reply) = self.open.remove(place).reply {
            // Whoever asked may have gone in this moment.
            let _ = reply.send(answer);
        }
        self.turn_to(place);
    }

    fn extend(&mut self, amount: Option<u64>) -> Asked {
        let place = self.shown;
        let Question { matter, reply } = self.open.remove(place);
        if let Reply::Extension(reply) = reply {
            let _ = reply.send(amount);
        }
        self.turn_to(place);
        match (matter, amount) {
            (Matter::Extension(ExtensionRequest { exhausted, .. }), Some(amount))
                if exhausted.owner == Exhausted::THE_RUN =>
            {
                Asked::Extended(exhausted.what, exhausted.limit.saturating_add(amount))
            }
            _ => Asked::Taken,
        }
    }

    /// Takes pasted text where something is typed.
    pub(crate) fn paste(&mut self, text: &str) {
        match &mut self.stage {
            Stage::Editing(editor) | Stage::Denying(editor) | Stage::Amount(editor) => {
                editor.paste(text);
            }
            Stage::Choosing | Stage::Scope(_) => {}
        }
    }
}
