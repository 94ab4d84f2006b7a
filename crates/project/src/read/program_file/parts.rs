//! Constructors for the parts of headers, each with the span of what it was made from.

use crate::document::{Node, NodeContent, TableField};
use crate::source::Span;

/// A field with its value.
pub(super) fn field(name: &str, span: &Span, value: Node) -> TableField {
    TableField { name: name.to_owned(), span: span.clone(), value }
}

/// A text.
pub(super) fn text(span: &Span, text: &str) -> Node {
    Node { span: span.clone(), content: NodeContent::Text(text.to_owned()) }
}

/// Yes or no.
pub(super) fn boolean(span: &Span, value: bool) -> Node {
    Node { span: span.clone(), content: NodeContent::Bool(value) }
}

/// A list.
pub(super) fn list(span: &Span, items: Vec<Node>) -> Node {
    Node { span: span.clone(), content: NodeContent::List(items) }
}

/// A table.
pub(super) fn table(span: &Span, fields: Vec<TableField>) -> Node {
    Node { span: span.clone(), content: NodeContent::Table(fields) }
}
