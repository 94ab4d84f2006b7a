//! Checks the `input_schema` of an agent: an object with named fields, as every provider wants it.

use serde_json::{Map, Value};

use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::document::{Node, span_of};
use crate::source::SourceFile;

/// Keywords of which providers accept none at the top of a schema.
const COMBINERS: &[&str] = &["oneOf", "anyOf", "allOf"];

/// How many schemas are looked at for their type: references can lead anywhere.
const MAX_READ: usize = 1_000;

/// Returns the schema with the type that is meant, and reports what is wrong with its top.
pub(crate) fn object(
    source: &SourceFile,
    header: &Node,
    schema: &Map<String, Value>,
    out: &mut Diagnostics,
) -> Map<String, Value> {
    let span = span_of(header, "input_schema");
    let at = |message: String| Diagnostic::error_at(source, &span, message);
    let root = Value::Object(schema.clone());
    let mut types = Types { root: &root, left: MAX_READ };
    if let Some(other) = types.other_than_object(&root) {
        let message = format!(
            "`input_schema` must be of type `object`, because inputs have named fields, but it allows {other}"
        );
        out.push(at(message).with_hint("write `type: object` and list the fields under `properties`"));
    } else if let Some(key) = COMBINERS.iter().find(|key| schema.contains_key(**key)) {
        let message = format!(
            "`input_schema` has `{key}` at its top, which providers do not accept: models are shown all fields, and \
             inputs that do not fit are refused"
        );
        let hint = format!("list the fields under `properties`, or move `{key}` into one of them");
        out.push(Diagnostic::notice_at(source, &span, message).with_hint(hint));
    }
    let mut object = schema.clone();
    if !object.contains_key("type") {
        object.insert("type".to_owned(), "object".into());
    }
    object
}

struct Types<'a> {
    root: &'a Value,
    left: usize,
}

impl<'a> Types<'a> {
    /// Returns what a schema allows beside objects, where it says so.
    fn other_than_object(&mut self, schema: &'a Value) -> Option<String> {
        self.left = self.left.checked_sub(1)?;
        let map = schema.as_object()?;
        match map.get("type") {
            Some(Value::String(kind)) if kind == "object" => {}
            Some(Value::String(kind)) => return Some(format!("`{kind}`")),
            Some(kinds) => return Some(kinds.to_string()),
            None => {}
        }
        if let Some(fixed) = map.get("const").or_else(|| map.get("enum")?.get(0)).filter(|it| !it.is_object())
        {
            return Some(format!("the value {fixed}"));
        }
        let target = map.get("$ref").and_then(Value::as_str).and_then(|it| it.strip_prefix('#'));
        let target = target.and_then(|pointer| self.root.pointer(pointer));
        let branches = COMBINERS.iter().filter_map(|key| map.get(*key)?.as_array()).flatten();
        target.into_iter().chain(branches).find_map(|branch| self.other_than_object(branch))
    }
}
