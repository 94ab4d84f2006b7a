//! Schemas as far as they must agree: types, required fields and limits, without the words.

use serde_json::{Map, Value};

/// A schema with its references put in, and without titles and descriptions.
pub fn plain(schema: &Value) -> Value {
    let definitions = schema.get("$defs").cloned().unwrap_or_default();
    without_words(schema, &definitions)
}

fn without_words(schema: &Value, definitions: &Value) -> Value {
    match schema {
        Value::Object(fields) => object(fields, definitions),
        Value::Array(items) => items.iter().map(|item| without_words(item, definitions)).collect(),
        other => other.clone(),
    }
}

fn object(fields: &Map<String, Value>, definitions: &Value) -> Value {
    let mut plain = Map::new();
    if let Some(name) = fields.get("$ref").and_then(Value::as_str) {
        let target = &definitions[name.rsplit('/').next().unwrap()];
        plain.extend(without_words(target, definitions).as_object().unwrap().clone());
    }
    for (key, value) in fields {
        match key.as_str() {
            "title" | "description" | "$defs" | "$ref" => {}
            "required" => drop(plain.insert(key.clone(), sorted(value))),
            // The names of fields are not keywords.
            "properties" => {
                let properties = value.as_object().unwrap().iter();
                let properties =
                    properties.map(|(name, field)| (name.clone(), without_words(field, definitions)));
                plain.insert(key.clone(), Value::Object(properties.collect()));
            }
            _ => drop(plain.insert(key.clone(), without_words(value, definitions))),
        }
    }
    Value::Object(plain)
}

fn sorted(names: &Value) -> Value {
    let mut names: Vec<&str> = names.as_array().unwrap().iter().filter_map(Value::as_str).collect();
    names.sort_unstable();
    names.into()
}
