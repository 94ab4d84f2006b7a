//! One field: its text, and the value of that text.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use llm_do_core::parse_strict;
use serde_json::Value;

use crate::editor::{Edited, Editor};

/// What is said about a field that must not be left empty.
pub(super) const NEEDED: &str = "is needed";

/// One property of the object.
#[derive(Debug, Clone)]
pub(super) struct FormField {
    pub(super) name: String,
    /// What the person reads: the title of the property, or its name.
    pub(super) label: String,
    pub(super) description: String,
    /// What the value may be, in a few words.
    pub(super) bounds: String,
    pub(super) required: bool,
    /// Whether `null` is a value, which an empty field that is required then has.
    pub(super) nullable: bool,
    /// Whether an empty text is a value.
    pub(super) may_be_empty: bool,
    pub(super) input: FieldInput,
    pub(super) problem: Option<String>,
}

/// How a field is filled in.
#[derive(Debug, Clone)]
pub(super) enum FieldInput {
    Text(Editor),
    Integer(Editor),
    Number(Editor),
    Json(Editor),
    /// Yes or no, or neither where it may be left out.
    Flag(Option<bool>),
    Choice {
        values: Vec<Value>,
        chosen: Option<usize>,
    },
}

impl FormField {
    /// Takes a key that is meant for the field itself.
    pub(super) fn key(&mut self, key: KeyEvent) -> Edited {
        let optional = self.is_optional();
        let is_shortcut = key.modifiers.intersects(KeyModifiers::CONTROL | KeyModifiers::ALT);
        let edited = match &mut self.input {
            FieldInput::Text(editor)
            | FieldInput::Json(editor)
            | FieldInput::Integer(editor)
            | FieldInput::Number(editor) => editor.key(key),
            FieldInput::Flag(_) | FieldInput::Choice { .. } if is_shortcut => Edited::Nothing,
            FieldInput::Flag(flag) => switch(flag, key, optional),
            FieldInput::Choice { values, chosen } => choose(values, chosen, key, optional),
        };
        if edited == Edited::Changed {
            self.problem = None;
        }
        edited
    }

    /// Whether it may be left empty.
    pub(super) fn is_optional(&self) -> bool {
        !self.required || self.nullable
    }

    pub(super) fn paste(&mut self, text: &str) {
        if let Some(editor) = self.editor_mut() {
            editor.paste(text);
            self.problem = None;
        }
    }

    pub(super) fn editor(&self) -> Option<&Editor> {
        match &self.input {
            FieldInput::Text(editor)
            | FieldInput::Json(editor)
            | FieldInput::Integer(editor)
            | FieldInput::Number(editor) => Some(editor),
            FieldInput::Flag(_) | FieldInput::Choice { .. } => None,
        }
    }

    fn editor_mut(&mut self) -> Option<&mut Editor> {
        match &mut self.input {
            FieldInput::Text(editor)
            | FieldInput::Json(editor)
            | FieldInput::Integer(editor)
            | FieldInput::Number(editor) => Some(editor),
            FieldInput::Flag(_) | FieldInput::Choice { .. } => None,
        }
    }

    /// Returns the value; `None` is left out of the object. A problem is kept to be shown.
    pub(super) fn check(&mut self) -> Result<Option<Value>, ()> {
        let result = match self.written() {
            Ok(None) if self.required && self.nullable => Ok(Some(Value::Null)),
            Ok(None) if self.required => Err(NEEDED.to_owned()),
            written => written,
        };
        self.problem = result.as_ref().err().cloned();
        result.map_err(drop)
    }

    /// Returns what is written, if anything.
    pub(super) fn written(&self) -> Result<Option<Value>, String> {
        match &self.input {
            FieldInput::Text(editor) if editor.is_empty() && !(self.required && self.may_be_empty) => {
                Ok(None)
            }
            FieldInput::Text(editor) => Ok(Some(Value::from(editor.text()))),
            FieldInput::Flag(flag) => Ok(flag.map(Value::from)),
            FieldInput::Choice { values, chosen } => {
                Ok(chosen.and_then(|chosen| values.get(chosen)).cloned())
            }
            FieldInput::Integer(editor) | FieldInput::Number(editor) | FieldInput::Json(editor)
                if editor.is_blank() =>
            {
                Ok(None)
            }
            FieldInput::Integer(editor) => integer(editor.text().trim()).map(Some),
            FieldInput::Number(editor) => number(editor.text().trim()).map(Some),
            FieldInput::Json(editor) => {
                parse_strict(&editor.text()).map(Some).map_err(|error| error.to_string())
            }
        }
    }
}

fn integer(text: &str) -> Result<Value, String> {
    let digits = text.strip_prefix('+').unwrap_or(text);
    let parsed = digits.parse::<i64>().map(Value::from).or_else(|_| digits.parse::<u64>().map(Value::from));
    parsed.map_err(|_| format!("`{text}` is not a whole number"))
}

fn number(text: &str) -> Result<Value, String> {
    integer(text).or_else(|_| {
        let parsed = text.parse::<f64>().ok().filter(|number| number.is_finite());
        parsed.map(Value::from).ok_or_else(|| format!("`{text}` is not a number"))
    })
}

fn switch(flag: &mut Option<bool>, key: KeyEvent, optional: bool) -> Edited {
    *flag = match key.code {
        KeyCode::Char(' ') | KeyCode::Left | KeyCode::Right => match flag {
            None => Some(true),
            Some(true) => Some(false),
            Some(false) if optional => None,
            Some(false) => Some(true),
        },
        KeyCode::Char('y') => Some(true),
        KeyCode::Char('n') => Some(false),
        KeyCode::Backspace | KeyCode::Delete if optional => None,
        _ => return Edited::Nothing,
    };
    Edited::Changed
}

fn choose(values: &[Value], chosen: &mut Option<usize>, key: KeyEvent, optional: bool) -> Edited {
    let last = values.len().checked_sub(1);
    let around = |end| if optional { None } else { end };
    *chosen = match (key.code, *chosen) {
        (KeyCode::Right | KeyCode::Char(' '), None) => last.map(|_| 0),
        (KeyCode::Right | KeyCode::Char(' '), here) if here == last => around(Some(0)),
        (KeyCode::Right | KeyCode::Char(' '), Some(here)) => Some(here + 1),
        (KeyCode::Left, None) => last,
        (KeyCode::Left, Some(0)) => around(last),
        (KeyCode::Left, Some(here)) => Some(here - 1),
        (KeyCode::Backspace | KeyCode::Delete, _) if optional => None,
        (KeyCode::Char(c), here) => match next_with(values, here, c) {
            Some(next) => Some(next),
            None => return Edited::Nothing,
        },
        _ => return Edited::Nothing,
    };
    Edited::Changed
}

/// Returns the next choice whose text begins with a character.
fn next_with(values: &[Value], here: Option<usize>, c: char) -> Option<usize> {
    let start = here.map_or(0, |here| here + 1);
    let order = (start..values.len()).chain(0..start.min(values.len()));
    let begins = |index: &usize| {
        let first = label_of(&values[*index]).chars().next();
        first.is_some_and(|first| first.to_lowercase().eq(c.to_lowercase()))
    };
    order.into_iter().find(begins)
}

/// How a choice is read: text without its quotes.
pub(super) fn label_of(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}
