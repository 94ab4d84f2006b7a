//! A form for a typed input, made from its JSON Schema.
//!
//! Texts, numbers, yes or no, and choices have fields of their own; whatever else a schema may say is written as JSON.
//! What does not fit the schema is told at its field and not sent. That spares the person a refusal: the gate, which
//! trusts nobody, checks again what it is given.

mod bounds;
mod check;
mod draw;
mod field;
mod schema;
#[cfg(test)]
mod tests;

use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use llm_do_core::Schema;
use serde_json::{Map, Value};

use self::check::Finding;
use self::field::FormField;
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
    schema: Schema,
    fields: Vec<FormField>,
    focused: usize,
}

impl Form {
    /// Makes a form; `None` where the schema is not that of an object with properties.
    pub(crate) fn new(title: impl Into<String>, schema: &Schema) -> Option<Self> {
        let fields = schema::fields(schema.source())?;
        Some(Self { title: title.into(), schema: schema.clone(), fields, focused: 0 })
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
            self.check_written(self.focused);
            self.focused = other;
        }
    }

    /// Looks for mistakes in what is written in a field; what is missing may still come.
    fn check_written(&mut self, index: usize) {
        let problem = match self.fields[index].written() {
            Ok(None) => None,
            Ok(Some(_)) => self.refusal_of(index),
            Err(problem) => Some(problem),
        };
        self.fields[index].problem = problem;
    }

    /// What the schema has against one field, as far as the others are filled in.
    fn refusal_of(&self, index: usize) -> Option<String> {
        let written = |field: &FormField| Some((field.name.clone(), field.written().ok()??));
        let findings = self.findings(self.fields.iter().filter_map(written).collect());
        findings.into_iter().find(|finding| finding.field == Some(index)).map(|finding| finding.message)
    }

    /// Builds the object, or goes to the first field that has a problem.
    fn send(&mut self) -> FormStep {
        let mut object = Map::new();
        for field in &mut self.fields {
            if let Ok(Some(value)) = field.check() {
                object.insert(field.name.clone(), value);
            }
        }
        self.show(self.findings(object.clone()));
        match self.fields.iter().position(|field| field.problem.is_some()) {
            Some(index) => {
                self.focused = index;
                FormStep::Going
            }
            None => FormStep::Sent(Value::Object(object)),
        }
    }

    /// Shows findings at their fields; one about the whole input where the cursor stands, if nothing else is wrong.
    fn show(&mut self, findings: Vec<Finding>) {
        let mut of_whole = None;
        for Finding { field, message } in findings {
            let problem = match field {
                Some(index) => &mut self.fields[index].problem,
                None => &mut of_whole,
            };
            problem.get_or_insert(message);
        }
        if self.fields.iter().all(|field| field.problem.is_none()) {
            self.fields[self.focused].problem = of_whole;
        }
    }
}
