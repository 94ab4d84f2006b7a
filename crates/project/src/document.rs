//! Documents: JSON, YAML and TOML as one tree in which every value knows its span.

mod json;
mod toml;
mod yaml;

use serde_json::{Map, Number, Value};

use crate::source::Span;

use json::read_json;
use toml::read_toml;
use yaml::read_yaml;

/// The languages that documents are written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Language {
    Json,
    Yaml,
    Toml,
}

/// A value and where it comes from.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Node {
    pub(crate) span: Span,
    pub(crate) content: NodeContent,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum NodeContent {
    Null,
    Bool(bool),
    Number(Number),
    Text(String),
    List(Vec<Node>),
    Table(Vec<TableField>),
}

/// A key with its value.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct TableField {
    pub(crate) name: String,
    pub(crate) span: Span,
    pub(crate) value: Node,
}

/// A text that cannot be read at all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Unreadable {
    pub(crate) span: Span,
    pub(crate) message: String,
}

/// Returns the span of a field's value, or of the whole table if it has no such field.
pub(crate) fn span_of(node: &Node, field: &str) -> Span {
    node.field(field).map_or_else(|| node.span.clone(), |field| field.value.span.clone())
}

/// Returns the span of one entry of a list or table by its name, or of the whole field if it has no such entry.
pub(crate) fn entry_span(node: &Node, field: &str, name: &str) -> Span {
    let named = |item: &Node| match &item.content {
        NodeContent::Text(text) => text == name,
        NodeContent::Table(fields) => {
            let says = |field: &TableField| {
                field.name == "name" && field.value.content == NodeContent::Text(name.into())
            };
            fields.iter().any(|field| field.name == name || says(field))
        }
        _ => false,
    };
    let found = node.field(field).and_then(|field| match &field.value.content {
        NodeContent::List(items) => items.iter().rfind(|item| named(item)).map(|item| item.span.clone()),
        NodeContent::Table(_) => field.value.field(name).map(|field| field.span.clone()),
        _ => None,
    });
    found.unwrap_or_else(|| span_of(node, field))
}

/// How deep the values of one document may be nested. Reading YAML takes much of the stack for each level: these fit
/// into that of any thread, also in builds without optimization.
const MAX_DEPTH: usize = 32;

/// How many values one document may have.
const MAX_VALUES: usize = 50_000;

/// The message for a document beyond a limit.
const TOO_LARGE: &str = "the document is larger, deeper or has more alias expansions than is permitted";

/// Reads a document.
pub(crate) fn read(text: &str, language: Language) -> Result<Node, Unreadable> {
    if text.trim().is_empty() {
        return Err(Unreadable { span: Span::START, message: "the file is empty".to_owned() });
    }
    match language {
        Language::Json => read_json(text),
        Language::Yaml => read_yaml(text),
        Language::Toml => read_toml(text),
    }
}

impl Node {
    /// Returns the value without spans.
    pub(crate) fn to_value(&self) -> Value {
        match &self.content {
            NodeContent::Null => Value::Null,
            NodeContent::Bool(value) => (*value).into(),
            NodeContent::Number(number) => Value::Number(number.clone()),
            NodeContent::Text(text) => text.as_str().into(),
            NodeContent::List(items) => items.iter().map(Self::to_value).collect(),
            NodeContent::Table(fields) => {
                let entries = fields.iter().map(|field| (field.name.clone(), field.value.to_value()));
                Value::Object(entries.collect::<Map<_, _>>())
            }
        }
    }

    /// Returns how many values it has, itself included.
    pub(crate) fn count(&self) -> usize {
        match &self.content {
            NodeContent::List(items) => 1 + items.iter().map(Self::count).sum::<usize>(),
            NodeContent::Table(fields) => 1 + fields.iter().map(|field| field.value.count()).sum::<usize>(),
            _ => 1,
        }
    }

    /// Makes a tree of a value; every part of it has the same span.
    pub(crate) fn from_value(value: &Value, span: &Span) -> Self {
        let content = match value {
            Value::Null => NodeContent::Null,
            Value::Bool(value) => NodeContent::Bool(*value),
            Value::Number(number) => NodeContent::Number(number.clone()),
            Value::String(text) => NodeContent::Text(text.clone()),
            Value::Array(items) => {
                NodeContent::List(items.iter().map(|item| Self::from_value(item, span)).collect())
            }
            Value::Object(map) => {
                let field = |(name, value): (&String, &Value)| TableField {
                    name: name.clone(),
                    span: span.clone(),
                    value: Self::from_value(value, span),
                };
                NodeContent::Table(map.iter().map(field).collect())
            }
        };
        Self { span: span.clone(), content }
    }

    /// Returns the field of a table.
    pub(crate) fn field(&self, name: &str) -> Option<&TableField> {
        match &self.content {
            NodeContent::Table(fields) => fields.iter().find(|field| field.name == name),
            _ => None,
        }
    }

    /// Returns the text, if it is one.
    pub(crate) fn text(&self) -> Option<&str> {
        match &self.content {
            NodeContent::Text(text) => Some(text),
            _ => None,
        }
    }

    /// Returns the fields of a table, mutably.
    pub(crate) fn fields_mut(&mut self) -> Option<&mut Vec<TableField>> {
        match &mut self.content {
            NodeContent::Table(fields) => Some(fields),
            _ => None,
        }
    }
}

/// A number, or its text where it is none that JSON knows: no schema takes that for a number, nor for nothing.
fn number(value: f64) -> NodeContent {
    Number::from_f64(value).map_or_else(|| NodeContent::Text(value.to_string()), NodeContent::Number)
}

/// The byte offset of a line and column, both from 1; columns count characters.
pub(crate) fn offset(text: &str, line: usize, column: usize) -> usize {
    let start =
        text.split_inclusive('\n').take(line.saturating_sub(1)).map(str::len).sum::<usize>().min(text.len());
    let rest = &text[start..];
    let within = rest.char_indices().nth(column.saturating_sub(1)).map_or(rest.len(), |(at, _)| at);
    start + within
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_three_languages_say_the_same() {
        let expected = json!({"version": 1, "runtime": {"max_depth": 3}, "agent_files": ["a.agent", "b.agent"], "deep": {"x": true}});
        let json = "{\n\t\"version\": 1, \"runtime\": {\"max_depth\": 3},\n\"agent_files\": [\"a.agent\", \"b.agent\"], \"deep\": {\"x\": true}}";
        let yaml =
            "version: 1\nruntime: {max_depth: 3}\nagent_files:\n  - a.agent\n  - b.agent\ndeep:\n  x: true\n";
        let toml = "version = 1\nagent_files = [\"a.agent\", \"b.agent\"]\n[runtime]\nmax_depth = 3\n[deep]\nx = true\n";
        for (text, language) in [(json, Language::Json), (yaml, Language::Yaml), (toml, Language::Toml)] {
            let node = read(text, language).unwrap();
            assert_eq!(node.to_value(), expected, "{language:?}");
            let span = node.field("runtime").unwrap().value.field("max_depth").unwrap().value.span.clone();
            let text = &text[span.bytes().unwrap().clone()];
            assert!(text.starts_with('3'), "{language:?}: {text:?}");
        }
    }

    #[test]
    fn a_duplicate_key_is_found_in_every_language() {
        for (text, language) in [
            ("{\"a\": {\"x\": 1, \"x\": 2}}", Language::Json),
            ("a:\n  x: 1\n  x: 2\n", Language::Yaml),
            ("[a]\nx = 1\nx = 2\n", Language::Toml),
        ] {
            let error = read(text, language).unwrap_err();
            assert!(error.message.contains("duplicate"), "{language:?}: {}", error.message);
        }
    }

    #[test]
    fn a_document_too_deep_or_too_large_is_refused_with_its_place() {
        let deep = format!("{}1{}", "[".repeat(100_000), "]".repeat(100_000));
        let error = read(&deep, Language::Json).unwrap_err();
        assert_eq!((error.span.bytes().unwrap().start, error.message.as_str()), (MAX_DEPTH, TOO_LARGE));
        let large = format!("[{}1]", "1,".repeat(MAX_VALUES));
        assert_eq!(read(&large, Language::Json).unwrap_err().message, TOO_LARGE);
        assert!(
            read(&format!("{}1{}", "[".repeat(MAX_DEPTH - 1), "]".repeat(MAX_DEPTH - 1)), Language::Json)
                .is_ok()
        );
    }

    #[test]
    fn an_error_of_json_stands_at_its_sign_after_signs_beyond_ascii() {
        let text = "{\"größe\": 1 x}";
        let error = read(text, Language::Json).unwrap_err();
        assert_eq!(&text[error.span.bytes().unwrap().clone()], "x");
    }

    #[test]
    fn escapes_and_signs_beyond_ascii_keep_places_right() {
        let text = r#"{"gr\u00fc\u00dfe": "\ud83d\ude00 }", "größe": [1, -2.5e3]}"#;
        let node = read(text, Language::Json).unwrap();
        assert_eq!(node.to_value(), json!({"grüße": "😀 }", "größe": [1, -2500]}));
        let NodeContent::List(items) = &node.field("größe").unwrap().value.content else {
            panic!("a list")
        };
        assert_eq!(&text[items[1].span.bytes().unwrap().clone()], "-2.5e3");
    }
}
