//! Reads YAML with spans.

use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_saphyr::options::{DuplicateKeyPolicy, MergeKeyPolicy};
use serde_saphyr::{Location, MessageFormatter, Spanned, UserMessageFormatter};

use super::{MAX_DEPTH, MAX_VALUES, Node, NodeContent, TOO_LARGE, TableField, Unreadable, number, offset};

/// Returns whether a float may have been an integer of more than 64 bits, which YAML readers round without a word.
fn is_beyond_64_bits(value: f64) -> bool {
    value.is_finite() && value.abs() >= 9_223_372_036_854_775_808.0
}

pub(super) fn read_yaml(text: &str) -> Result<Node, Unreadable> {
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
    Ok(raw.value.into_node(text, raw.referenced))
}

fn yaml_problem(text: &str, error: &serde_saphyr::Error) -> Unreadable {
    let start = error.location().map_or(0, |span| location_offset(text, span));
    let line_end = text[start..].find('\n').map_or(text.len(), |end| start + end);
    Unreadable { span: (start..line_end.max(start)).into(), message: yaml_message(text, start, error) }
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

/// A YAML value as serde reads it, with the locations of what is inside.
enum YamlNode {
    Scalar(NodeContent),
    List(Vec<Spanned<YamlNode>>),
    Table(Vec<(Spanned<String>, Spanned<YamlNode>)>),
}

impl YamlNode {
    fn into_node(self, text: &str, location: Location) -> Node {
        let start = location_offset(text, location);
        match self {
            Self::Scalar(content) => Node { span: (start..scalar_end(text, start)).into(), content },
            Self::List(items) => {
                let items: Vec<Node> =
                    items.into_iter().map(|item| item.value.into_node(text, item.referenced)).collect();
                let end =
                    items.last().and_then(|item| item.span.bytes()).map_or(start + 1, |range| range.end);
                Node { span: (start..end.max(start)).into(), content: NodeContent::List(items) }
            }
            Self::Table(fields) => {
                let fields: Vec<TableField> =
                    fields.into_iter().map(|(name, value)| yaml_field(text, name, value)).collect();
                let end = fields
                    .last()
                    .and_then(|field| field.value.span.bytes())
                    .map_or(start + 1, |range| range.end);
                Node { span: (start..end.max(start)).into(), content: NodeContent::Table(fields) }
            }
        }
    }
}

fn yaml_field(text: &str, name: Spanned<String>, value: Spanned<YamlNode>) -> TableField {
    let start = location_offset(text, name.referenced);
    let end = (start + name.value.len()).min(text.len());
    let end = (start..=end).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(start);
    TableField {
        span: (start..end).into(),
        value: value.value.into_node(text, value.referenced),
        name: name.value,
    }
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
        Ok(YamlNode::Scalar(NodeContent::Null))
    }

    fn visit_none<E>(self) -> Result<YamlNode, E> {
        Ok(YamlNode::Scalar(NodeContent::Null))
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<YamlNode, D::Error> {
        deserializer.deserialize_any(self)
    }

    fn visit_bool<E>(self, value: bool) -> Result<YamlNode, E> {
        Ok(YamlNode::Scalar(NodeContent::Bool(value)))
    }

    fn visit_i64<E>(self, value: i64) -> Result<YamlNode, E> {
        Ok(YamlNode::Scalar(NodeContent::Number(value.into())))
    }

    fn visit_u64<E>(self, value: u64) -> Result<YamlNode, E> {
        Ok(YamlNode::Scalar(NodeContent::Number(value.into())))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<YamlNode, E> {
        if is_beyond_64_bits(value) {
            return Err(E::custom(format!("the number {value:e} does not fit into 64 bits")));
        }
        Ok(YamlNode::Scalar(number(value)))
    }

    fn visit_str<E>(self, value: &str) -> Result<YamlNode, E> {
        Ok(YamlNode::Scalar(NodeContent::Text(value.to_owned())))
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
