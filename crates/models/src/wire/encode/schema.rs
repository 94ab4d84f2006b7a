//! JSON Schemas, as providers enforce them on answers.

use serde_json::{Map, Value};

/// Keywords that Anthropic refuses. The answer is checked against the whole schema when it has arrived.
const UNENFORCED: &[&str] = &[
    "$schema",
    "exclusiveMaximum",
    "exclusiveMinimum",
    "maxItems",
    "maxLength",
    "maxProperties",
    "maximum",
    "minLength",
    "minProperties",
    "minimum",
    "multipleOf",
    "uniqueItems",
];

/// The formats that Anthropic enforces.
const FORMATS: &[&str] =
    &["date-time", "time", "date", "duration", "email", "hostname", "uri", "ipv4", "ipv6", "uuid"];

/// Keywords that OpenAI enforces in its strict mode.
const STRICT: &[&str] = &[
    "$defs",
    "$ref",
    "additionalProperties",
    "anyOf",
    "const",
    "description",
    "enum",
    "exclusiveMaximum",
    "exclusiveMinimum",
    "format",
    "items",
    "maxItems",
    "maximum",
    "minItems",
    "minimum",
    "multipleOf",
    "pattern",
    "properties",
    "required",
    "title",
    "type",
];

/// Returns the schema with closed objects and without what Anthropic refuses. A map stays one.
pub(super) fn closed(schema: &Value) -> Value {
    let Value::Object(map) = schema else { return schema.clone() };
    let mut closed: Map<String, Value> = map
        .iter()
        .filter(|(key, value)| is_enforced(key, value))
        .map(|(key, value)| (key.clone(), inner(key, value)))
        .collect();
    if is_object(map) && !map.contains_key("additionalProperties") {
        closed.insert("additionalProperties".into(), false.into());
    }
    closed.into()
}

fn is_object(map: &Map<String, Value>) -> bool {
    let kind = map.get("type");
    let kinds = kind.and_then(Value::as_array).into_iter().flatten();
    map.contains_key("properties") || kind.into_iter().chain(kinds).any(|kind| kind == "object")
}

fn is_enforced(key: &str, value: &Value) -> bool {
    match key {
        "format" => value.as_str().is_some_and(|format| FORMATS.contains(&format)),
        "minItems" => matches!(value.as_u64(), Some(0 | 1)),
        key => !UNENFORCED.contains(&key),
    }
}

/// Closes the schemas under a keyword.
fn inner(key: &str, value: &Value) -> Value {
    match (key, value) {
        ("properties" | "$defs" | "definitions", Value::Object(map)) => {
            map.iter().map(|(name, schema)| (name.clone(), closed(schema))).collect()
        }
        ("anyOf" | "allOf" | "oneOf" | "prefixItems", Value::Array(schemas)) => {
            schemas.iter().map(closed).collect()
        }
        ("items" | "additionalProperties", schema) => closed(schema),
        (_, value) => value.clone(),
    }
}

/// Says whether OpenAI can enforce a schema strictly: every object is closed, and all of its fields are
/// required.
pub(super) fn is_strict(schema: &Value) -> bool {
    schema.get("type").is_some_and(|kind| kind == "object") && is_strict_inside(schema)
}

fn is_strict_inside(schema: &Value) -> bool {
    let Value::Object(map) = schema else { return false };
    let all = |key: &str| match map.get(key) {
        Some(Value::Object(schemas)) => schemas.values().all(is_strict_inside),
        Some(Value::Array(schemas)) => schemas.iter().all(is_strict_inside),
        _ => true,
    };
    // A schema that says nothing takes anything, open objects among it.
    let says_something = ["type", "anyOf", "$ref", "enum", "const"].iter().any(|key| map.contains_key(*key));
    let is_list = map.get("type").is_some_and(|kind| kind == "array");
    map.keys().all(|key| STRICT.contains(&key.as_str()))
        && says_something
        && (!is_object(map) || is_complete(map))
        && (!is_list || map.contains_key("items"))
        && all("properties")
        && all("$defs")
        && all("anyOf")
        && map.get("items").is_none_or(is_strict_inside)
}

fn is_complete(map: &Map<String, Value>) -> bool {
    let required: Vec<&str> = map
        .get("required")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    let names = map.get("properties").and_then(Value::as_object);
    map.get("additionalProperties") == Some(&Value::Bool(false))
        && names.is_some_and(|names| names.keys().all(|name| required.contains(&name.as_str())))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_schemas_whose_every_object_is_closed_and_complete_are_strict() {
        let with = |field: Value| {
            json!({"type": "object", "properties": {"a": field}, "required": ["a"],
                "additionalProperties": false})
        };
        for (field, strict) in [
            (json!({"type": "string"}), true),
            (with(json!({"type": "array", "items": {"type": "string"}})), true),
            (json!({"anyOf": [{"$ref": "#/$defs/b"}, {"type": "null"}]}), true),
            (json!({}), false),
            (json!(true), false),
            (json!({"description": "anything"}), false),
            (json!({"type": "array"}), false),
            (json!({"type": "object"}), false),
            (json!({"type": ["object", "null"]}), false),
            (json!({"type": "object", "additionalProperties": {"type": "integer"}}), false),
            (json!({"type": "object", "properties": {}, "additionalProperties": true}), false),
            (json!({"type": "object", "properties": {}}), false),
            (json!({"type": "array", "items": {"type": "object"}}), false),
        ] {
            assert_eq!(is_strict(&with(field.clone())), strict, "{field}");
        }
        assert!(!is_strict(&json!({"type": "object"})));
        assert!(!is_strict(&json!({"type": "string"})));
    }

    #[test]
    fn closing_leaves_maps_open() {
        let counts = json!({"type": "object", "additionalProperties": {"type": "integer", "minimum": 0}});
        let any = json!({"type": "object", "properties": {}, "additionalProperties": true});
        let schema = json!({"type": ["object", "null"], "properties": {"counts": counts, "any": any}});
        let counts = json!({"type": "object", "additionalProperties": {"type": "integer"}});
        let expected = json!({"type": ["object", "null"], "properties": {"counts": counts, "any": any},
            "additionalProperties": false});
        assert_eq!(closed(&schema), expected);
    }
}
