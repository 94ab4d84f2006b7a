//! Unions: whether the branches of a `oneOf` exclude each other, so that it means the same as `anyOf`.

use serde_json::{Map, Value};

use super::references::resolve;

/// Returns whether no value can fit two of the schemas.
pub(super) fn are_disjoint(root: &Value, branches: &[Value]) -> bool {
    let pairs = branches.iter().enumerate().flat_map(|(index, first)| {
        branches[index + 1..].iter().map(move |second| (target(root, first), target(root, second)))
    });
    pairs.into_iter().all(|pair| match pair {
        (Some(first), Some(second)) => exclude_each_other(root, first, second),
        _ => false,
    })
}

fn target<'a>(root: &'a Value, schema: &'a Value) -> Option<&'a Map<String, Value>> {
    match schema.get("$ref").and_then(Value::as_str) {
        Some(reference) => resolve(root, reference)?.as_object(),
        None => schema.as_object(),
    }
}

fn exclude_each_other(root: &Value, first: &Map<String, Value>, second: &Map<String, Value>) -> bool {
    let (Some(one), Some(other)) = (named_types(first), named_types(second)) else { return false };
    if !one.iter().any(|kind| other.iter().any(|also| overlap(kind, also))) {
        return true;
    }
    match (values(first), values(second)) {
        (Some(one), Some(other)) => !one.iter().any(|value| other.contains(value)),
        _ => one == ["object"] && other == ["object"] && has_tag(root, first, second),
    }
}

fn overlap(one: &str, other: &str) -> bool {
    let is_number = |kind: &str| matches!(kind, "integer" | "number");
    one == other || (is_number(one) && is_number(other))
}

/// Returns whether both objects require a field whose fixed values differ.
fn has_tag(root: &Value, first: &Map<String, Value>, second: &Map<String, Value>) -> bool {
    required(first).into_iter().filter(|name| required(second).contains(name)).any(|name| {
        let field = |map: &Map<String, Value>| {
            let property = target(root, map.get("properties")?.get(name)?)?.clone();
            values(&property).map(<[Value]>::to_vec)
        };
        match (field(first), field(second)) {
            (Some(one), Some(other)) => !one.iter().any(|value| other.contains(value)),
            _ => false,
        }
    })
}

/// Returns the names of the required fields.
pub(super) fn required(map: &Map<String, Value>) -> Vec<&str> {
    let names = map.get("required").and_then(Value::as_array);
    names.into_iter().flatten().filter_map(Value::as_str).collect()
}

/// Returns the fixed values of a schema.
fn values(map: &Map<String, Value>) -> Option<&[Value]> {
    match (map.get("const"), map.get("enum")) {
        (Some(value), _) => Some(std::slice::from_ref(value)),
        (None, Some(Value::Array(values))) => Some(values),
        _ => None,
    }
}

/// Returns the types of a schema, and those that are meant if it names none: whoever lists fields means an object.
pub(super) fn types(map: &Map<String, Value>) -> Option<Vec<&str>> {
    let is_object =
        ["properties", "required", "additionalProperties"].iter().any(|key| map.contains_key(*key));
    match named_types(map) {
        None if is_object => Some(vec!["object"]),
        None if map.contains_key("items") => Some(vec!["array"]),
        named => named,
    }
}

/// Returns the types that a schema names, or else those of its fixed values.
fn named_types(map: &Map<String, Value>) -> Option<Vec<&str>> {
    match map.get("type") {
        Some(Value::String(kind)) => Some(vec![kind]),
        Some(Value::Array(kinds)) => kinds.iter().map(Value::as_str).collect(),
        Some(_) => None,
        None => {
            let mut kinds: Vec<&str> = values(map)?.iter().map(type_of).collect();
            kinds.sort_unstable();
            kinds.dedup();
            Some(kinds)
        }
    }
}

fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// Returns whether `null` fits a schema for certain.
pub(super) fn accepts_null(schema: &Value) -> bool {
    let Some(map) = schema.as_object() else { return schema == &Value::Bool(true) };
    let is_restricted = ["$ref", "allOf", "not", "if"].iter().any(|key| map.contains_key(*key));
    let fits_values = values(map).is_none_or(|values| values.contains(&Value::Null));
    let fits_type = types(map).is_none_or(|kinds| kinds.contains(&"null"));
    let mut unions = ["anyOf", "oneOf"].into_iter().filter_map(|key| map.get(key)?.as_array());
    let fits_unions = unions.all(|branches| branches.iter().any(accepts_null));
    !is_restricted && fits_values && fits_type && fits_unions
}
