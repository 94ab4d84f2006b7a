//! Small pieces of which headers are made, each at the place of what it was made from.

use std::ops::Range;

use crate::document::{Content, Field, Node};

/// A field with its value.
pub(super) fn field(name: &str, place: &Range<usize>, value: Node) -> Field {
    Field { name: name.to_owned(), place: place.clone(), value }
}

/// A text.
pub(super) fn text(place: &Range<usize>, text: &str) -> Node {
    Node { place: place.clone(), content: Content::Text(text.to_owned()) }
}

/// Yes or no.
pub(super) fn boolean(place: &Range<usize>, value: bool) -> Node {
    Node { place: place.clone(), content: Content::Bool(value) }
}

/// A list.
pub(super) fn list(place: &Range<usize>, items: Vec<Node>) -> Node {
    Node { place: place.clone(), content: Content::List(items) }
}

/// A table.
pub(super) fn table(place: &Range<usize>, fields: Vec<Field>) -> Node {
    Node { place: place.clone(), content: Content::Table(fields) }
}
