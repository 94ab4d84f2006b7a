//! Reads JSON with spans.

use std::collections::HashSet;

use llm_do_core::{find_inexact_number, parse_exact, parse_strict};
use serde_json::Value;

use super::{MAX_DEPTH, MAX_VALUES, Node, NodeContent, TOO_LARGE, TableField, Unreadable, offset};

/// Strict JSON: a library checks the syntax, then a small walk finds the spans.
pub(super) fn read_json(text: &str) -> Result<Node, Unreadable> {
    if let Err(error) = serde_json::from_str::<serde::de::IgnoredAny>(text) {
        // Its columns count bytes.
        let line = offset(text, error.line(), 1);
        let start = (line + error.column().saturating_sub(1)).min(text.len());
        return Err(Unreadable {
            span: (start..start + 1).into(),
            message: json_message(&error, text, start),
        });
    }
    if let Some(number) = find_inexact_number(text) {
        return Err(Unreadable {
            span: number.span.into(),
            message: format!("the number {}", number.message),
        });
    }
    let mut walk = JsonWalk { text, at: 0, depth: 0, values: 0 };
    let node = walk.value()?;
    find_duplicate(&node, "").map_or(Ok(node), Err)
}

/// Says what is wrong with a text at an offset.
fn json_message(error: &serde_json::Error, text: &str, at: usize) -> String {
    let is_comma_last = text.get(..at).is_some_and(|before| before.trim_end().ends_with(','));
    if is_comma_last && text.get(at..).is_some_and(|rest| rest.starts_with(['}', ']'])) {
        return "not valid JSON: nothing follows the last comma; remove it".to_owned();
    }
    let text = error.to_string();
    let message = text.split(" at line ").next().unwrap_or_default();
    match message {
        "trailing characters" => "trailing characters after the end of the document".to_owned(),
        message => format!("not valid JSON: {message}"),
    }
}

/// Walks over text that is known to be JSON. Nobody has looked at its depth and number of values yet.
struct JsonWalk<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
    values: usize,
}

impl JsonWalk<'_> {
    fn rest(&self) -> &str {
        &self.text[self.at..]
    }

    fn skip(&mut self, characters: &[char]) {
        let skipped = self.rest().len()
            - self
                .rest()
                .trim_start_matches(|c: char| c.is_ascii_whitespace() || characters.contains(&c))
                .len();
        self.at += skipped;
    }

    fn value(&mut self) -> Result<Node, Unreadable> {
        self.skip(&[]);
        let start = self.at;
        self.depth += 1;
        self.values += 1;
        if self.depth > MAX_DEPTH || self.values > MAX_VALUES {
            return Err(Unreadable { span: (start..start + 1).into(), message: TOO_LARGE.to_owned() });
        }
        let content = match self.rest().as_bytes().first() {
            Some(b'{') => self.table()?,
            Some(b'[') => self.list()?,
            _ => self.scalar(),
        };
        self.depth -= 1;
        Ok(Node { span: (start..self.at).into(), content })
    }

    fn table(&mut self) -> Result<NodeContent, Unreadable> {
        self.at += 1;
        let mut fields = Vec::new();
        loop {
            self.skip(&[',']);
            if self.rest().starts_with('}') || self.rest().is_empty() {
                self.at = (self.at + 1).min(self.text.len());
                return Ok(NodeContent::Table(fields));
            }
            let start = self.at;
            let name = if let NodeContent::Text(name) = self.scalar() { name } else { String::new() };
            let span = (start..self.at).into();
            self.skip(&[':']);
            fields.push(TableField { name, span, value: self.value()? });
        }
    }

    fn list(&mut self) -> Result<NodeContent, Unreadable> {
        self.at += 1;
        let mut items = Vec::new();
        loop {
            self.skip(&[',']);
            if self.rest().starts_with(']') || self.rest().is_empty() {
                self.at = (self.at + 1).min(self.text.len());
                return Ok(NodeContent::List(items));
            }
            items.push(self.value()?);
        }
    }

    fn scalar(&mut self) -> NodeContent {
        let length = scalar_length(self.rest());
        let raw = &self.text[self.at..self.at + length];
        self.at += length;
        // An unsigned number of 64 bits is kept as it is.
        match parse_strict(raw).or_else(|_| parse_exact(raw)) {
            Ok(Value::Bool(value)) => NodeContent::Bool(value),
            Ok(Value::Number(number)) => NodeContent::Number(number),
            Ok(Value::String(text)) => NodeContent::Text(text),
            _ => NodeContent::Null,
        }
    }
}

fn scalar_length(rest: &str) -> usize {
    let bytes = rest.as_bytes();
    if bytes.first() == Some(&b'"') {
        let mut at = 1;
        while at < bytes.len() && bytes[at] != b'"' {
            at += if bytes[at] == b'\\' { 2 } else { 1 };
        }
        return (at + 1).min(bytes.len());
    }
    let end = |c: char| c.is_ascii_whitespace() || matches!(c, ',' | '}' | ']' | ':');
    rest.find(end).unwrap_or(rest.len()).max(1).min(rest.len())
}

fn find_duplicate(node: &Node, path: &str) -> Option<Unreadable> {
    match &node.content {
        NodeContent::Table(fields) => {
            let mut seen = HashSet::new();
            fields.iter().find_map(|field| {
                let here =
                    if path.is_empty() { field.name.clone() } else { format!("{path}.{}", field.name) };
                if seen.insert(&field.name) {
                    return find_duplicate(&field.value, &here);
                }
                let message = format!("duplicate key `{here}`");
                Some(Unreadable { span: field.span.clone(), message })
            })
        }
        NodeContent::List(items) => items.iter().find_map(|item| find_duplicate(item, path)),
        _ => None,
    }
}
