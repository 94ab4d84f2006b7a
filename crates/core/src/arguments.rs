//! Reads the argument text of a tool call as a model sent it.
//!
//! Only what cannot be misread is repaired: no text for no arguments, a code fence around one object, an
//! object encoded as a string once. A cut text is never completed, a doubled key never decided by order.

use std::cell::RefCell;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};
use thiserror::Error;

use crate::numbers::{InexactNumber, find_inexact_number};
use crate::payload::whole;

/// Arguments that were read, with a note on what had to be repaired.
#[derive(Debug, Clone, PartialEq)]
pub struct Arguments {
    /// The arguments: always an object.
    pub value: Value,
    /// What was repaired, for the record.
    pub repair: Option<&'static str>,
}

/// Why a text is not valid JSON, in words that can follow such a statement.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum JsonError {
    /// The text ends in the middle.
    #[error("it ends too early{}", at(field))]
    Incomplete {
        /// Where the text ends.
        field: String,
    },
    /// A key occurs twice in one object.
    #[error("the key `{key}` occurs twice")]
    Duplicate {
        /// The key, with its path.
        key: String,
    },
    /// Something is not allowed where it is.
    #[error("{reason}{}", at(field))]
    Malformed {
        /// The field at which reading stopped, or nothing.
        field: String,
        /// What the parser says.
        reason: String,
    },
}

/// Why an argument text could not be read.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ArgumentsError {
    /// The text ends in the middle.
    #[error("the arguments are incomplete JSON: the text ends too early{}", at(field))]
    Incomplete {
        /// Where the text ends.
        field: String,
    },
    /// A key occurs twice in one object.
    #[error("duplicate key `{key}` in the arguments")]
    Duplicate {
        /// The key, with its path.
        key: String,
    },
    /// The text is not JSON.
    #[error("the arguments are not valid JSON{}: {reason}", at(field))]
    NotJson {
        /// The field at which reading stopped, or nothing.
        field: String,
        /// What the parser says.
        reason: String,
    },
    /// The value is not an object.
    #[error("the arguments must be a JSON object, not {found}")]
    NotAnObject {
        /// What was found.
        found: &'static str,
    },
}

fn at(field: &str) -> String {
    if field.is_empty() { String::new() } else { format!(" at `{field}`") }
}

impl From<JsonError> for ArgumentsError {
    fn from(error: JsonError) -> Self {
        match error {
            JsonError::Incomplete { field } => Self::Incomplete { field },
            JsonError::Duplicate { key } => Self::Duplicate { key },
            JsonError::Malformed { field, reason } => Self::NotJson { field, reason },
        }
    }
}

impl ArgumentsError {
    /// Says what a model can do about it.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Incomplete { .. } => "send the whole call again; nothing was executed",
            Self::Duplicate { .. } => "name each key once",
            Self::NotJson { .. } => "send one JSON object with double quotes, and nothing around it",
            Self::NotAnObject { .. } => "wrap the arguments in an object with the names of the parameters",
        }
    }
}

/// Reads the argument text of a tool call.
pub fn parse_arguments(raw: &str) -> Result<Arguments, ArgumentsError> {
    let text = raw.trim();
    if text.is_empty() {
        return Ok(Arguments {
            value: Value::Object(Map::new()),
            repair: Some("no text read as no arguments"),
        });
    }
    if let Some(inner) = unfenced(text) {
        let value = object(parse_strict(inner)?)?;
        return Ok(Arguments { value, repair: Some("code fence removed") });
    }
    match parse_strict(text)? {
        Value::Null => {
            Ok(Arguments { value: Value::Object(Map::new()), repair: Some("null read as no arguments") })
        }
        Value::String(inner) if inner.trim_start().starts_with('{') => {
            let value = object(parse_strict(&inner)?)?;
            Ok(Arguments { value, repair: Some("object decoded from a string") })
        }
        value => Ok(Arguments { value: object(value)?, repair: None }),
    }
}

/// Parses JSON strictly: no duplicate keys, no text after the value, bounded depth, no number that would be rounded. A
/// whole number is an integer of 64 bits, however it is written.
pub fn parse_strict(text: &str) -> Result<Value, JsonError> {
    parse(text, NumberForm::Whole)
}

/// Parses JSON as strictly as [`parse_strict`], and keeps numbers as they are written: `1.0` stays a float.
pub fn parse_exact(text: &str) -> Result<Value, JsonError> {
    parse(text, NumberForm::AsWritten)
}

fn parse(text: &str, form: NumberForm) -> Result<Value, JsonError> {
    let path = RefCell::new(Path { inexact: find_inexact_number(text), ..Path::default() });
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let value = StrictValue { path: &path, form }
        .deserialize(&mut deserializer)
        .and_then(|value| deserializer.end().map(|()| value));
    value.map_err(|error| describe(&error, path.into_inner()))
}

fn describe(error: &serde_json::Error, path: Path) -> JsonError {
    let field = path.segments.join(".");
    if let Some(key) = path.duplicate {
        return JsonError::Duplicate { key };
    }
    if error.is_eof() {
        return JsonError::Incomplete { field };
    }
    JsonError::Malformed { field, reason: error.to_string() }
}

fn object(value: Value) -> Result<Value, ArgumentsError> {
    if value.is_object() { Ok(value) } else { Err(ArgumentsError::NotAnObject { found: json_type(&value) }) }
}

/// Names the JSON type of a value, with its article.
pub(crate) fn json_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

fn unfenced(text: &str) -> Option<&str> {
    let inner = text.strip_prefix("```")?.strip_suffix("```")?;
    let (first_line, body) = inner.split_once('\n')?;
    first_line.trim().chars().all(|c| c.is_ascii_alphanumeric()).then_some(body.trim())
}

/// Where the parser is, so that an error can name the field.
#[derive(Default)]
struct Path {
    segments: Vec<String>,
    duplicate: Option<String>,
    /// How many numbers were read.
    numbers: usize,
    /// The number at which reading ends.
    inexact: Option<InexactNumber>,
}

/// What becomes of whole numbers that are written as floats.
#[derive(Clone, Copy, PartialEq, Eq)]
enum NumberForm {
    Whole,
    AsWritten,
}

struct StrictValue<'a> {
    path: &'a RefCell<Path>,
    form: NumberForm,
}

impl StrictValue<'_> {
    /// Reads one child. The segment stays on the path when reading fails: that is the place of the error.
    fn child<T, E>(&self, segment: String, read: impl FnOnce(Self) -> Result<T, E>) -> Result<T, E> {
        self.path.borrow_mut().segments.push(segment);
        let value = read(Self { path: self.path, form: self.form })?;
        self.path.borrow_mut().segments.pop();
        Ok(value)
    }

    /// Counts a number, and refuses the one that the parser has rounded.
    fn check_number<E: serde::de::Error>(&self) -> Result<(), E> {
        let mut path = self.path.borrow_mut();
        path.numbers += 1;
        match &path.inexact {
            Some(inexact) if inexact.index + 1 == path.numbers => Err(E::custom(&inexact.message)),
            _ => Ok(()),
        }
    }
}

impl<'de> DeserializeSeed<'de> for StrictValue<'_> {
    type Value = Value;
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for StrictValue<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E: serde::de::Error>(self, value: i64) -> Result<Value, E> {
        self.check_number()?;
        Ok(value.into())
    }

    fn visit_u64<E: serde::de::Error>(self, value: u64) -> Result<Value, E> {
        self.check_number()?;
        match i64::try_from(value) {
            Ok(value) => Ok(value.into()),
            Err(_) if self.form == NumberForm::AsWritten => Ok(value.into()),
            Err(_) => Err(E::custom(format!("{value} does not fit into 64 bits"))),
        }
    }

    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<Value, E> {
        self.check_number()?;
        // 1e3 and 1000 are one number. Beyond 2^53 a float is not exact, so it stays a float.
        let whole = whole(value).filter(|_| self.form == NumberForm::Whole);
        Ok(whole.map_or_else(|| Value::from(value), Value::from))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        loop {
            let index = list.len().to_string();
            match self.child(index, |seed| items.next_element_seed(seed))? {
                Some(item) => list.push(item),
                None => return Ok(Value::Array(list)),
            }
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut map = Map::new();
        while let Some(key) = entries.next_key::<String>()? {
            let value = self.child(key.clone(), |seed| entries.next_value_seed(seed))?;
            if map.insert(key.clone(), value).is_some() {
                let mut path = self.path.borrow_mut();
                path.segments.push(key);
                path.duplicate = Some(path.segments.join("."));
                return Err(A::Error::custom("duplicate key"));
            }
        }
        Ok(Value::Object(map))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_that_is_no_json_is_told_in_words_that_can_follow_such_a_statement() {
        let message = |text: &str| format!("this is not valid JSON: {}", parse_strict(text).unwrap_err());
        assert_eq!(message("{"), "this is not valid JSON: it ends too early");
        assert_eq!(message(r#"{"a": {"b": 1,"#), "this is not valid JSON: it ends too early at `a`");
        assert_eq!(message(r#"{"a": 1, "a": 2}"#), "this is not valid JSON: the key `a` occurs twice");
        assert_eq!(message("{a}"), "this is not valid JSON: key must be a string at line 1 column 2");
        let error = parse_arguments("{a}").unwrap_err().to_string();
        assert_eq!(error, "the arguments are not valid JSON: key must be a string at line 1 column 2");
    }

    #[test]
    fn a_cut_text_is_incomplete_wherever_it_is_cut() {
        let whole = r#"{"path": "a", "list": [1, {"x": tru"#;
        for end in 1..whole.len() {
            let error = parse_arguments(&whole[..end]).unwrap_err();
            assert!(matches!(error, ArgumentsError::Incomplete { .. }), "{end}: {error}");
        }
    }

    #[test]
    fn a_number_beyond_its_range_names_the_field() {
        let error = parse_arguments(r#"{"a": {"max_chars": 1e400}}"#).unwrap_err();
        assert!(error.to_string().contains("`a.max_chars`"), "{error}");
    }

    #[test]
    fn a_number_that_would_be_rounded_is_refused_and_names_the_field() {
        for number in ["18446744073709551616", "123456789012345678901234567890", "-9223372036854775809"] {
            let error =
                parse_arguments(&format!(r#"{{"a": [1, 2.5], "id": {{"n": {number}}}}}"#)).unwrap_err();
            let message = error.to_string();
            assert!(message.contains("`id.n`") && message.contains("does not fit into 64 bits"), "{message}");
            assert!(message.contains(number), "{message}");
        }
        assert!(parse_strict("9007199254740993.0").is_err());
        assert_eq!(parse_strict("[1.0, 1e3]").unwrap(), serde_json::json!([1, 1000]));
    }

    #[test]
    fn exact_values_keep_floats_and_large_unsigned_integers() {
        let value = parse_exact("[1.0, 18446744073709551615, -1]").unwrap();
        assert_eq!(value.to_string(), "[1.0,18446744073709551615,-1]");
        assert!(parse_exact("18446744073709551616").is_err());
        assert!(parse_exact(r#"{"a": 1, "a": 2}"#).is_err());
    }

    #[test]
    fn a_duplicate_key_names_its_path() {
        let error = parse_arguments(r#"{"a": [{"b": 1, "b": 2}]}"#).unwrap_err();
        assert_eq!(error, ArgumentsError::Duplicate { key: "a.0.b".into() });
    }
}
