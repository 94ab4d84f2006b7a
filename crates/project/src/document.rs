//! Documents: JSON, YAML and TOML as one tree in which everything knows its place.

use std::collections::HashSet;
use std::ops::Range;

use llm_do_core::{find_inexact_number, parse_exact, parse_strict};
use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};
use serde_saphyr::options::{DuplicateKeyPolicy, MergeKeyPolicy};
use serde_saphyr::{Location, MessageFormatter, Spanned, UserMessageFormatter};

/// The languages that documents are written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Language {
    Json,
    Yaml,
    Toml,
}

/// A value and where it stands, as a range of bytes.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Node {
    pub(crate) place: Range<usize>,
    pub(crate) content: Content,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Content {
    Null,
    Bool(bool),
    Number(Number),
    Text(String),
    List(Vec<Node>),
    Table(Vec<Field>),
}

/// A key with its value.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Field {
    pub(crate) name: String,
    pub(crate) place: Range<usize>,
    pub(crate) value: Node,
}

/// A text that cannot be read at all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Unreadable {
    pub(crate) place: Range<usize>,
    pub(crate) message: String,
}

/// The place of a field's value, or of the whole table where it has no such field.
pub(crate) fn place_of(node: &Node, field: &str) -> Range<usize> {
    node.field(field).map_or_else(|| node.place.clone(), |field| field.value.place.clone())
}

/// The place of one entry of a list or table, by its name; of the whole field where there is no such entry.
pub(crate) fn entry_place(node: &Node, field: &str, name: &str) -> Range<usize> {
    let named = |item: &Node| match &item.content {
        Content::Text(text) => text == name,
        Content::Table(fields) => {
            let says =
                |field: &Field| field.name == "name" && field.value.content == Content::Text(name.into());
            fields.iter().any(|field| field.name == name || says(field))
        }
        _ => false,
    };
    let found = node.field(field).and_then(|field| match &field.value.content {
        Content::List(items) => items.iter().rfind(|item| named(item)).map(|item| item.place.clone()),
        Content::Table(_) => field.value.field(name).map(|field| field.place.clone()),
        _ => None,
    });
    found.unwrap_or_else(|| place_of(node, field))
}

/// How deep the values of one document may stand. Reading YAML takes much of the stack for each level: these fit
/// into that of any thread even where nothing is optimized.
const MAX_DEPTH: usize = 32;

/// How many values one document may have.
const MAX_VALUES: usize = 50_000;

/// The words for what is beyond a limit.
const TOO_LARGE: &str = "the document is larger, deeper or has more alias expansions than is permitted";

/// Reads a document.
pub(crate) fn read(text: &str, language: Language) -> Result<Node, Unreadable> {
    if text.trim().is_empty() {
        return Err(Unreadable { place: 0..0, message: "the file is empty".to_owned() });
    }
    match language {
        Language::Json => read_json(text),
        Language::Yaml => read_yaml(text),
        Language::Toml => read_toml(text),
    }
}

impl Node {
    /// Returns the value without places.
    pub(crate) fn to_value(&self) -> Value {
        match &self.content {
            Content::Null => Value::Null,
            Content::Bool(value) => (*value).into(),
            Content::Number(number) => Value::Number(number.clone()),
            Content::Text(text) => text.as_str().into(),
            Content::List(items) => items.iter().map(Self::to_value).collect(),
            Content::Table(fields) => {
                let entries = fields.iter().map(|field| (field.name.clone(), field.value.to_value()));
                Value::Object(entries.collect::<Map<_, _>>())
            }
        }
    }

    /// Returns how many values it has, itself included.
    pub(crate) fn count(&self) -> usize {
        match &self.content {
            Content::List(items) => 1 + items.iter().map(Self::count).sum::<usize>(),
            Content::Table(fields) => 1 + fields.iter().map(|field| field.value.count()).sum::<usize>(),
            _ => 1,
        }
    }

    /// Makes a tree of a value, all of it at one place.
    pub(crate) fn of_value(value: &Value, place: &Range<usize>) -> Self {
        let content = match value {
            Value::Null => Content::Null,
            Value::Bool(value) => Content::Bool(*value),
            Value::Number(number) => Content::Number(number.clone()),
            Value::String(text) => Content::Text(text.clone()),
            Value::Array(items) => {
                Content::List(items.iter().map(|item| Self::of_value(item, place)).collect())
            }
            Value::Object(map) => {
                let field = |(name, value): (&String, &Value)| Field {
                    name: name.clone(),
                    place: place.clone(),
                    value: Self::of_value(value, place),
                };
                Content::Table(map.iter().map(field).collect())
            }
        };
        Self { place: place.clone(), content }
    }

    /// Returns the field of a table.
    pub(crate) fn field(&self, name: &str) -> Option<&Field> {
        match &self.content {
            Content::Table(fields) => fields.iter().find(|field| field.name == name),
            _ => None,
        }
    }

    /// Returns the text, where it is one.
    pub(crate) fn text(&self) -> Option<&str> {
        match &self.content {
            Content::Text(text) => Some(text),
            _ => None,
        }
    }

    /// Returns the fields of a table, mutably.
    pub(crate) fn fields_mut(&mut self) -> Option<&mut Vec<Field>> {
        match &mut self.content {
            Content::Table(fields) => Some(fields),
            _ => None,
        }
    }
}

/// Returns whether a float may have been an integer of more than 64 bits, which YAML readers round without a word.
fn is_beyond_64_bits(value: f64) -> bool {
    value.is_finite() && value.abs() >= 9_223_372_036_854_775_808.0
}

/// A number, or its text where it is none that JSON knows: no schema takes that for a number, nor for nothing.
fn number(value: f64) -> Content {
    Number::from_f64(value).map_or_else(|| Content::Text(value.to_string()), Content::Number)
}

// ---- JSON -------------------------------------------------------------------------------------------------

/// Strict JSON: a library says whether it is, then a small walk finds the places.
fn read_json(text: &str) -> Result<Node, Unreadable> {
    if let Err(error) = serde_json::from_str::<serde::de::IgnoredAny>(text) {
        // Its columns count bytes.
        let line = offset(text, error.line(), 1);
        let start = (line + error.column().saturating_sub(1)).min(text.len());
        return Err(Unreadable { place: start..start + 1, message: json_message(&error) });
    }
    if let Some(number) = find_inexact_number(text) {
        return Err(Unreadable { place: number.span, message: format!("the number {}", number.message) });
    }
    let mut walk = JsonWalk { text, at: 0, depth: 0, values: 0 };
    let node = walk.value()?;
    find_duplicate(&node, "").map_or(Ok(node), Err)
}

fn json_message(error: &serde_json::Error) -> String {
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
            return Err(Unreadable { place: start..start + 1, message: TOO_LARGE.to_owned() });
        }
        let content = match self.rest().as_bytes().first() {
            Some(b'{') => self.table()?,
            Some(b'[') => self.list()?,
            _ => self.scalar(),
        };
        self.depth -= 1;
        Ok(Node { place: start..self.at, content })
    }

    fn table(&mut self) -> Result<Content, Unreadable> {
        self.at += 1;
        let mut fields = Vec::new();
        loop {
            self.skip(&[',']);
            if self.rest().starts_with('}') || self.rest().is_empty() {
                self.at = (self.at + 1).min(self.text.len());
                return Ok(Content::Table(fields));
            }
            let start = self.at;
            let name = if let Content::Text(name) = self.scalar() { name } else { String::new() };
            let place = start..self.at;
            self.skip(&[':']);
            fields.push(Field { name, place, value: self.value()? });
        }
    }

    fn list(&mut self) -> Result<Content, Unreadable> {
        self.at += 1;
        let mut items = Vec::new();
        loop {
            self.skip(&[',']);
            if self.rest().starts_with(']') || self.rest().is_empty() {
                self.at = (self.at + 1).min(self.text.len());
                return Ok(Content::List(items));
            }
            items.push(self.value()?);
        }
    }

    fn scalar(&mut self) -> Content {
        let length = scalar_length(self.rest());
        let raw = &self.text[self.at..self.at + length];
        self.at += length;
        // An unsigned number of 64 bits is kept as it is.
        match parse_strict(raw).or_else(|_| parse_exact(raw)) {
            Ok(Value::Bool(value)) => Content::Bool(value),
            Ok(Value::Number(number)) => Content::Number(number),
            Ok(Value::String(text)) => Content::Text(text),
            _ => Content::Null,
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
        Content::Table(fields) => {
            let mut seen = HashSet::new();
            fields.iter().find_map(|field| {
                let here =
                    if path.is_empty() { field.name.clone() } else { format!("{path}.{}", field.name) };
                if seen.insert(&field.name) {
                    return find_duplicate(&field.value, &here);
                }
                let message = format!("duplicate key `{here}`");
                Some(Unreadable { place: field.place.clone(), message })
            })
        }
        Content::List(items) => items.iter().find_map(|item| find_duplicate(item, path)),
        _ => None,
    }
}

// ---- YAML -------------------------------------------------------------------------------------------------

fn read_yaml(text: &str) -> Result<Node, Unreadable> {
    let options = serde_saphyr::options! {
        budget: serde_saphyr::budget! {
            max_depth: MAX_DEPTH,
            max_nodes: MAX_VALUES,
            max_anchors: 50,
            max_aliases: 200,
            max_recorded_anchor_events: 5_000,
        },
        alias_limits: serde_saphyr::alias_limits! { max_total_replayed_events: 10_000 },
        duplicate_keys: DuplicateKeyPolicy::Error,
        merge_keys: MergeKeyPolicy::Error,
        strict_booleans: true,
        reject_unsupported_tags: true,
        emit_comments: false,
        with_snippet: false,
    };
    let raw: Spanned<YamlNode> =
        serde_saphyr::from_str_with_options(text, options).map_err(|error| yaml_problem(text, &error))?;
    Ok(raw.value.placed(text, raw.referenced))
}

fn yaml_problem(text: &str, error: &serde_saphyr::Error) -> Unreadable {
    let start = error.location().map_or(0, |place| location_offset(text, place));
    let line_end = text[start..].find('\n').map_or(text.len(), |end| start + end);
    Unreadable { place: start..line_end.max(start), message: yaml_message(text, start, error) }
}

fn yaml_message(text: &str, start: usize, error: &serde_saphyr::Error) -> String {
    use serde_saphyr::Error;
    match error {
        Error::AliasError { error, .. } | Error::WithSnippet { error, .. } => {
            yaml_message(text, start, error)
        }
        Error::AliasReplayLimitExceeded { .. } | Error::Budget { .. } => TOO_LARGE.to_owned(),
        other => {
            let line_start = text[..start].rfind('\n').map_or(0, |end| end + 1);
            let line = text[line_start..].lines().next().unwrap_or_default();
            let indented_by_tab = line.trim_start_matches(' ').starts_with('\t');
            let message = UserMessageFormatter.format_message(other).into_owned();
            match () {
                () if indented_by_tab => format!("{message} (a tab cannot indent YAML; use spaces)"),
                () if message.contains("mapping values") => {
                    format!("{message} (put quotes around a text that contains `: `)")
                }
                () => message,
            }
        }
    }
}

fn location_offset(text: &str, location: Location) -> usize {
    // Counting lines and columns for each of many nodes would take quadratic time.
    let known = location.span().byte_offset().and_then(|offset| usize::try_from(offset).ok());
    if let Some(offset) = known.filter(|offset| text.is_char_boundary(*offset)) {
        return offset;
    }
    let line = usize::try_from(location.line()).unwrap_or(1);
    let column = usize::try_from(location.column()).unwrap_or(1);
    offset(text, line, column)
}

/// The byte offset of a line and column, both from 1; columns count characters.
pub(crate) fn offset(text: &str, line: usize, column: usize) -> usize {
    let start =
        text.split_inclusive('\n').take(line.saturating_sub(1)).map(str::len).sum::<usize>().min(text.len());
    let rest = &text[start..];
    let within = rest.char_indices().nth(column.saturating_sub(1)).map_or(rest.len(), |(at, _)| at);
    start + within
}

/// A YAML value as serde reads it, with the locations of what is inside.
enum YamlNode {
    Scalar(Content),
    List(Vec<Spanned<YamlNode>>),
    Table(Vec<(Spanned<String>, Spanned<YamlNode>)>),
}

impl YamlNode {
    fn placed(self, text: &str, location: Location) -> Node {
        let start = location_offset(text, location);
        match self {
            Self::Scalar(content) => Node { place: start..scalar_end(text, start), content },
            Self::List(items) => {
                let items: Vec<Node> =
                    items.into_iter().map(|item| item.value.placed(text, item.referenced)).collect();
                let end = items.last().map_or(start + 1, |item| item.place.end);
                Node { place: start..end.max(start), content: Content::List(items) }
            }
            Self::Table(fields) => {
                let fields: Vec<Field> =
                    fields.into_iter().map(|(name, value)| placed_field(text, name, value)).collect();
                let end = fields.last().map_or(start + 1, |field| field.value.place.end);
                Node { place: start..end.max(start), content: Content::Table(fields) }
            }
        }
    }
}

fn placed_field(text: &str, name: Spanned<String>, value: Spanned<YamlNode>) -> Field {
    let start = location_offset(text, name.referenced);
    let end = (start + name.value.len()).min(text.len());
    let end = (start..=end).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(start);
    Field { place: start..end, value: value.value.placed(text, value.referenced), name: name.value }
}

/// The most that is looked at to find where a scalar ends.
const UNDERLINED: usize = 200;

/// The end of a scalar, for underlining: the end of its line without a comment.
fn scalar_end(text: &str, start: usize) -> usize {
    let near = (start..=text.len().min(start + UNDERLINED)).rev().find(|end| text.is_char_boundary(*end));
    let line = text[start..near.unwrap_or(start)].lines().next().unwrap_or_default();
    let end = line.find(" #").unwrap_or(line.len());
    start + line[..end].trim_end().len().max(1).min(text.len() - start)
}

impl<'de> Deserialize<'de> for YamlNode {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(YamlVisitor)
    }
}

struct YamlVisitor;

impl<'de> Visitor<'de> for YamlVisitor {
    type Value = YamlNode;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a YAML value")
    }

    fn visit_unit<E>(self) -> Result<YamlNode, E> {
        Ok(YamlNode::Scalar(Content::Null))
    }

    fn visit_none<E>(self) -> Result<YamlNode, E> {
        Ok(YamlNode::Scalar(Content::Null))
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<YamlNode, D::Error> {
        deserializer.deserialize_any(self)
    }

    fn visit_bool<E>(self, value: bool) -> Result<YamlNode, E> {
        Ok(YamlNode::Scalar(Content::Bool(value)))
    }

    fn visit_i64<E>(self, value: i64) -> Result<YamlNode, E> {
        Ok(YamlNode::Scalar(Content::Number(value.into())))
    }

    fn visit_u64<E>(self, value: u64) -> Result<YamlNode, E> {
        Ok(YamlNode::Scalar(Content::Number(value.into())))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<YamlNode, E> {
        if is_beyond_64_bits(value) {
            return Err(E::custom(format!("the number {value:e} does not fit into 64 bits")));
        }
        Ok(YamlNode::Scalar(number(value)))
    }

    fn visit_str<E>(self, value: &str) -> Result<YamlNode, E> {
        Ok(YamlNode::Scalar(Content::Text(value.to_owned())))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<YamlNode, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element()? {
            list.push(item);
        }
        Ok(YamlNode::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<YamlNode, A::Error> {
        let mut fields = Vec::new();
        while let Some(entry) = entries.next_entry()? {
            fields.push(entry);
        }
        Ok(YamlNode::Table(fields))
    }
}

// ---- TOML -------------------------------------------------------------------------------------------------

fn read_toml(text: &str) -> Result<Node, Unreadable> {
    let document = toml_edit::Document::parse(text).map_err(|error| {
        let place = error.span().unwrap_or(0..0);
        Unreadable { place, message: format!("not valid TOML: {}", error.message()) }
    })?;
    Ok(toml_table(
        document.as_table().iter().filter_map(|(name, item)| {
            let place = document.as_table().key(name).and_then(toml_edit::Key::span).unwrap_or(0..0);
            Some((name.to_owned(), place, toml_item(item)?))
        }),
        0..text.len(),
    ))
}

fn toml_table(fields: impl Iterator<Item = (String, Range<usize>, Node)>, place: Range<usize>) -> Node {
    let fields = fields.map(|(name, place, value)| Field { name, place, value }).collect();
    Node { place, content: Content::Table(fields) }
}

fn toml_item(item: &toml_edit::Item) -> Option<Node> {
    let place = item.span().unwrap_or(0..0);
    match item {
        toml_edit::Item::None => None,
        toml_edit::Item::Value(value) => Some(toml_value(value)),
        toml_edit::Item::Table(table) => Some(toml_table(
            table.iter().filter_map(|(name, item)| {
                let place = table.key(name).and_then(toml_edit::Key::span).unwrap_or(0..0);
                Some((name.to_owned(), place, toml_item(item)?))
            }),
            place,
        )),
        toml_edit::Item::ArrayOfTables(tables) => {
            let items =
                tables.iter().filter_map(|table| toml_item(&toml_edit::Item::Table(table.clone()))).collect();
            Some(Node { place, content: Content::List(items) })
        }
    }
}

fn toml_value(value: &toml_edit::Value) -> Node {
    use toml_edit::Value as Toml;
    let place = value.span().unwrap_or(0..0);
    let content = match value {
        Toml::String(text) => Content::Text(text.value().clone()),
        Toml::Integer(number) => Content::Number((*number.value()).into()),
        Toml::Float(float) => number(*float.value()),
        Toml::Boolean(value) => Content::Bool(*value.value()),
        Toml::Datetime(time) => Content::Text(time.value().to_string()),
        Toml::Array(items) => Content::List(items.iter().map(toml_value).collect()),
        Toml::InlineTable(table) => {
            let fields = table.iter().map(|(name, value)| {
                let place = table.key(name).and_then(toml_edit::Key::span).unwrap_or(0..0);
                (name.to_owned(), place, toml_value(value))
            });
            return toml_table(fields, place);
        }
    };
    Node { place, content }
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
            let place = node.field("runtime").unwrap().value.field("max_depth").unwrap().value.place.clone();
            assert!(text[place.clone()].starts_with('3'), "{language:?}: {:?}", &text[place]);
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
        assert_eq!((error.place.start, error.message.as_str()), (MAX_DEPTH, TOO_LARGE));
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
        assert_eq!(&text[error.place], "x");
    }

    #[test]
    fn escapes_and_signs_beyond_ascii_keep_places_right() {
        let text = r#"{"gr\u00fc\u00dfe": "\ud83d\ude00 }", "größe": [1, -2.5e3]}"#;
        let node = read(text, Language::Json).unwrap();
        assert_eq!(node.to_value(), json!({"grüße": "😀 }", "größe": [1, -2500]}));
        let Content::List(items) = &node.field("größe").unwrap().value.content else { panic!("a list") };
        assert_eq!(&text[items[1].place.clone()], "-2.5e3");
    }
}
