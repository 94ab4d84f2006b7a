//! The subset of OpenAPI that `parameters` and `responseSchema` are written in.

use serde_json::Value;

use crate::json::{is_set, items};
use crate::refusal::Check;
use crate::{ProviderRefusal, schema};

const FIELDS: &[&str] = &[
    "type",
    "format",
    "title",
    "description",
    "nullable",
    "default",
    "example",
    "enum",
    "items",
    "minItems",
    "maxItems",
    "properties",
    "required",
    "propertyOrdering",
    "minProperties",
    "maxProperties",
    "minimum",
    "maximum",
    "minLength",
    "maxLength",
    "pattern",
    "anyOf",
    "additionalProperties",
    "defs",
    "ref",
];
const MAX_PROPERTY_LEN: usize = 64;

/// Checks a schema; the path names it in the message.
pub(super) fn check(root: &Value, path: &str) -> Check {
    schema::walk(root, &mut |schema| check_node(schema, path))
}

fn check_node(schema: &Value, path: &str) -> Check {
    let refuse = |message: String| Err(ProviderRefusal::gemini("gemini.schema", message));
    let Some(fields) = schema.as_object() else {
        return refuse(format!("Invalid JSON payload received. Invalid value at '{path}' (Schema)"));
    };
    if let Some(name) = fields.keys().find(|name| !FIELDS.contains(&name.as_str())) {
        return refuse(format!(
            "Invalid JSON payload received. Unknown name \"{name}\" at '{path}': Cannot find field."
        ));
    }
    if schema["type"].is_array() {
        return refuse(format!(
            "Invalid JSON payload received. Unknown name \"type\" at '{path}': Proto field is not repeating, cannot start list."
        ));
    }
    if let Some(value) = items(schema, "enum").iter().find(|value| !value.is_string()) {
        return refuse(format!("Invalid value at '{path}.enum[0]' (TYPE_STRING), {value}"));
    }
    if is_set(&schema["enum"]) && !schema::has_type(schema, "string") {
        return refuse(format!("* {path}.enum: only allowed for STRING type"));
    }
    check_property_names(schema, path)
}

fn check_property_names(schema: &Value, path: &str) -> Check {
    let mut names = schema["properties"].as_object().into_iter().flat_map(|properties| properties.keys());
    let is_valid = |name: &str| {
        let starts = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
        starts
            && name.len() <= MAX_PROPERTY_LEN
            && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    };
    match names.find(|name| !is_valid(name)) {
        Some(name) => Err(ProviderRefusal::gemini(
            "gemini.schema",
            format!("* {path}.properties: the name \"{name}\" is invalid"),
        )),
        None => Ok(()),
    }
}
