//! A form for a typed input, made from its JSON Schema.
//!
//! Texts, numbers, yes or no, and choices have fields of their own; whatever else a schema may say is written as JSON.
//! The form checks what it must know to build a value: the gate checks the value against the whole schema.

mod draw;
mod field;
mod schema;
#[cfg(test)]
mod tests;

use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use serde_json::{Map, Value};

use self::field::Field;
use crate::editor::Edited;

/// What a key did to a form.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum FormStep {
    /// The person goes on.
    Going,
    /// The person gave up.
    Cancelled,
    /// The object that was filled in.
    Sent(Value),
}

/// Fields to fill in, one of which has the cursor.
#[derive(Debug, Clone)]
pub(crate) struct Form {
    title: String,
    fields: Vec<Field>,
    focused: usize,
}

impl Form {
    /// Makes a form; `None` where the schema is not that of an object with properties.
    pub(crate) fn new(title: impl Into<String>, schema: &Value) -> Option<Self> {
        let fields = schema::fields(schema)?;
        Some(Self { title: title.into(), fields, focused: 0 })
    }

    /// Takes a key: Tab and arrows move, Ctrl-S sends, and so does Enter in the last field; Esc cancels.
    pub(crate) fn key(&mut self, key: KeyEvent) -> FormStep {
        if key.kind == KeyEventKind::Release {
            return FormStep::Going;
        }
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Esc => return FormStep::Cancelled,
            KeyCode::Char('s') if control => return self.send(),
            KeyCode::BackTab => self.leave(self.focused + self.fields.len() - 1),
            KeyCode::Tab if key.modifiers.contains(KeyModifiers::SHIFT) => {
                self.leave(self.focused + self.fields.len() - 1);
            }
            KeyCode::Tab => self.leave(self.focused + 1),
            KeyCode::Enter if key.modifiers.is_empty() => return self.enter(key),
            _ => self.edit(key),
        }
        FormStep::Going
    }

    /// Pastes into the field with the cursor.
    pub(crate) fn paste(&mut self, text: &str) {
        self.fields[self.focused].paste(text);
    }

    fn enter(&mut self, key: KeyEvent) -> FormStep {
        // An editor goes on in a new line after a backslash.
        if self.fields[self.focused].key(key) == Edited::Changed {
            return FormStep::Going;
        }
        if self.focused + 1 == self.fields.len() {
            return self.send();
        }
        self.leave(self.focused + 1);
        FormStep::Going
    }

    /// Up and Down that the field has no use for go to its neighbours.
    fn edit(&mut self, key: KeyEvent) {
        if self.fields[self.focused].key(key) != Edited::Nothing {
            return;
        }
        match key.code {
            KeyCode::Up => self.leave(self.focused.saturating_sub(1)),
            KeyCode::Down => self.leave((self.focused + 1).min(self.fields.len() - 1)),
            _ => {}
        }
    }

    /// Checks the field that is left, and goes to another, round the ends.
    fn leave(&mut self, other: usize) {
        let other = other % self.fields.len();
        if other != self.focused {
            self.fields[self.focused].check_written();
            self.focused = other;
        }
    }

    /// Builds the object, or goes to the first field that has a problem.
    fn send(&mut self) -> FormStep {
        let mut object = Map::new();
        let mut wrong = None;
        for (index, field) in self.fields.iter_mut().enumerate() {
            match field.check() {
                Ok(Some(value)) => drop(object.insert(field.name.clone(), value)),
                Ok(None) => {}
                Err(()) => wrong = wrong.or(Some(index)),
            }
        }
        match wrong {
            Some(index) => {
                self.focused = index;
                FormStep::Going
            }
            None => FormStep::Sent(Value::Object(object)),
        }
    }
}
