//! Reads the fields out of a JSON Schema.

use serde_json::{Map, Value};

use super::bounds::bounds;
use super::field::{FieldInput, FormField, label_of};
use crate::editor::Editor;

/// How many references are followed, one behind the other.
const MAX_REFERENCES: usize = 16;

/// Returns a field for each property; `None` where the schema describes no object with properties.
pub(super) fn fields(root: &Value) -> Option<Vec<FormField>> {
    let schema = resolved(root, root);
    let properties = schema.get("properties")?.as_object().filter(|properties| !properties.is_empty())?;
    if schema.get("type").is_some_and(|kind| kind != "object") {
        return None;
    }
    let required: Vec<_> = schema
        .get("required")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    let field =
        |(name, property): (&String, &Value)| field(name, property, required.contains(&name.as_str()), root);
    Some(properties.iter().map(field).collect())
}

fn field(name: &str, property: &Value, required: bool, root: &Value) -> FormField {
    let (schema, nullable) = without_null(resolved(property, root), root);
    let text = |key: &str| schema.get(key).and_then(Value::as_str).map(str::to_owned);
    let default = schema.get("default").filter(|default| !default.is_null());
    let input = input(&schema, default, required && !nullable, root);
    FormField {
        name: name.to_owned(),
        label: text("title").filter(|title| !title.trim().is_empty()).unwrap_or_else(|| name.to_owned()),
        description: text("description").unwrap_or_default(),
        bounds: bounds(&schema),
        required,
        nullable,
        may_be_empty: default.is_some_and(|default| default == ""),
        input,
        problem: None,
    }
}

/// Follows references; keys beside a reference take precedence over those of its target.
fn resolved(schema: &Value, root: &Value) -> Map<String, Value> {
    let mut found = schema.as_object().cloned().unwrap_or_default();
    for _ in 0..MAX_REFERENCES {
        let Some(next) = referred(&mut found, root) else { break };
        for (key, value) in next {
            found.entry(key).or_insert(value);
        }
    }
    found
}

/// Takes out the reference, or the only part of an `allOf`.
fn referred(schema: &mut Map<String, Value>, root: &Value) -> Option<Map<String, Value>> {
    if let Some(reference) = schema.remove("$ref") {
        let pointer = reference.as_str()?.strip_prefix('#')?.to_owned();
        return root.pointer(&pointer)?.as_object().cloned();
    }
    let only = match schema.get("allOf").and_then(Value::as_array).map(Vec::as_slice) {
        Some([only]) => only.as_object().cloned(),
        _ => None,
    }?;
    schema.remove("allOf");
    Some(only)
}

/// Takes `null` out of what a value may be, and says whether it was there.
fn without_null(mut schema: Map<String, Value>, root: &Value) -> (Map<String, Value>, bool) {
    let mut nullable = false;
    for key in ["anyOf", "oneOf", "type", "enum"] {
        let Some(Value::Array(options)) = schema.get_mut(key) else { continue };
        let before = options.len();
        options.retain(|option| !is_null(option, key));
        nullable |= options.len() < before;
        if options.len() == 1 && key != "enum" {
            let only = options.remove(0);
            schema.remove(key);
            take_in(&mut schema, key, only, root);
        }
    }
    (schema, nullable)
}

/// Takes in the only type or alternative that is left.
fn take_in(schema: &mut Map<String, Value>, key: &str, only: Value, root: &Value) {
    if key == "type" {
        schema.insert(key.to_owned(), only);
        return;
    }
    for (key, value) in resolved(&only, root) {
        schema.entry(key).or_insert(value);
    }
}

fn is_null(option: &Value, key: &str) -> bool {
    match key {
        "type" => option == "null",
        "enum" => option.is_null(),
        _ => {
            option.get("type").is_some_and(|kind| kind == "null")
                || option.get("const").is_some_and(Value::is_null)
        }
    }
}

fn input(schema: &Map<String, Value>, default: Option<&Value>, needed: bool, root: &Value) -> FieldInput {
    if let Some(values) = choices(schema, root) {
        let only = (needed && values.len() == 1).then_some(0);
        let chosen = default.and_then(|default| values.iter().position(|value| value == default)).or(only);
        return FieldInput::Choice { values, chosen };
    }
    let kind = schema.get("type").and_then(Value::as_str);
    match kind {
        Some("string") => FieldInput::Text(written(default.map(label_of))),
        Some("integer") => FieldInput::Integer(written(default.map(label_of))),
        Some("number") => FieldInput::Number(written(default.map(label_of))),
        Some("boolean") => FieldInput::Flag(default.and_then(Value::as_bool).or(needed.then_some(false))),
        _ => FieldInput::Json(written(default.map(|default| format!("{default:#}")))),
    }
}

/// The values of an `enum`, of a `const`, or of alternatives that are each one value.
fn choices(schema: &Map<String, Value>, root: &Value) -> Option<Vec<Value>> {
    if let Some(only) = schema.get("const") {
        return Some(vec![only.clone()]);
    }
    if let Some(values) = schema.get("enum").and_then(Value::as_array) {
        return (!values.is_empty()).then(|| values.clone());
    }
    let options = schema.get("oneOf").or_else(|| schema.get("anyOf"))?.as_array()?;
    let values: Option<Vec<Vec<Value>>> = options.iter().map(|option| one_value(option, root)).collect();
    values.map(|values| values.concat()).filter(|values| !values.is_empty())
}

fn one_value(option: &Value, root: &Value) -> Option<Vec<Value>> {
    let option = resolved(option, root);
    match option.get("const") {
        Some(only) => Some(vec![only.clone()]),
        None => option.get("enum").and_then(Value::as_array).cloned(),
    }
}

fn written(text: Option<String>) -> Editor {
    let mut editor = Editor::new("");
    editor.set_text(&text.unwrap_or_default());
    editor
}
