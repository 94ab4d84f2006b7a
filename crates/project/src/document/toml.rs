//! Reads TOML with spans.

use super::{Node, NodeContent, TableField, Unreadable, number};
use crate::source::Span;

pub(super) fn read_toml(text: &str) -> Result<Node, Unreadable> {
    let document = toml_edit::Document::parse(text).map_err(|error| {
        let span = error.span().map_or(Span::START, Span::from);
        Unreadable { span, message: format!("not valid TOML: {}", error.message()) }
    })?;
    Ok(toml_table(
        document.as_table().iter().filter_map(|(name, item)| {
            let span =
                document.as_table().key(name).and_then(toml_edit::Key::span).map_or(Span::START, Span::from);
            Some((name.to_owned(), span, toml_item(item)?))
        }),
        (0..text.len()).into(),
    ))
}

fn toml_table(fields: impl Iterator<Item = (String, Span, Node)>, span: Span) -> Node {
    let fields = fields.map(|(name, span, value)| TableField { name, span, value }).collect();
    Node { span, content: NodeContent::Table(fields) }
}

fn toml_item(item: &toml_edit::Item) -> Option<Node> {
    let span = item.span().map_or(Span::START, Span::from);
    match item {
        toml_edit::Item::None => None,
        toml_edit::Item::Value(value) => Some(toml_value(value)),
        toml_edit::Item::Table(table) => Some(toml_table(
            table.iter().filter_map(|(name, item)| {
                let span = table.key(name).and_then(toml_edit::Key::span).map_or(Span::START, Span::from);
                Some((name.to_owned(), span, toml_item(item)?))
            }),
            span,
        )),
        toml_edit::Item::ArrayOfTables(tables) => {
            let items =
                tables.iter().filter_map(|table| toml_item(&toml_edit::Item::Table(table.clone()))).collect();
            Some(Node { span, content: NodeContent::List(items) })
        }
    }
}

fn toml_value(value: &toml_edit::Value) -> Node {
    use toml_edit::Value as Toml;
    let span = value.span().map_or(Span::START, Span::from);
    let content = match value {
        Toml::String(text) => NodeContent::Text(text.value().clone()),
        Toml::Integer(number) => NodeContent::Number((*number.value()).into()),
        Toml::Float(float) => number(*float.value()),
        Toml::Boolean(value) => NodeContent::Bool(*value.value()),
        Toml::Datetime(time) => NodeContent::Text(time.value().to_string()),
        Toml::Array(items) => NodeContent::List(items.iter().map(toml_value).collect()),
        Toml::InlineTable(table) => {
            let fields = table.iter().map(|(name, value)| {
                let span = table.key(name).and_then(toml_edit::Key::span).map_or(Span::START, Span::from);
                (name.to_owned(), span, toml_value(value))
            });
            return toml_table(fields, span);
        }
    };
    Node { span, content }
}
