//! Describes the fields of an input to the person who has to write it: names, types, and an example.

use serde_json::{Map, Value, json};

use crate::schema::Schema;

/// The most fields that are described.
const MAX_FIELDS: usize = 12;

/// A field of an object schema.
struct SchemaField<'a> {
    name: &'a str,
    schema: &'a Value,
    is_required: bool,
}

impl Schema {
    /// Describes the fields of an object: `` `topic` (string), `days` (integer, optional) ``. Nothing for other values.
    pub fn describe_fields(&self) -> Option<String> {
        let fields = fields(self.source());
        let describe = |field: &SchemaField<'_>| {
            let optional = if field.is_required { "" } else { ", optional" };
            format!("`{}` ({}{optional})", field.name, type_text(field.schema))
        };
        let shown: Vec<String> = fields.iter().take(MAX_FIELDS).map(describe).collect();
        let more = if fields.len() > shown.len() { ", .." } else { "" };
        (!shown.is_empty()).then(|| format!("{}{more}", shown.join(", ")))
    }

    /// Returns the only required field, if there is exactly one and it is a text.
    pub fn only_required_text(&self) -> Option<&str> {
        let mut required = fields(self.source()).into_iter().filter(|field| field.is_required);
        let first = required.next().filter(|field| field.schema["type"] == "string")?;
        required.next().is_none().then_some(first.name)
    }

    /// Makes an object with the required fields, or with all if none is required, to be completed by a person.
    pub fn example(&self) -> Value {
        let fields = fields(self.source());
        let has_required = fields.iter().any(|field| field.is_required);
        let shown = fields.iter().filter(|field| field.is_required || !has_required).take(MAX_FIELDS);
        let example: Map<String, Value> =
            shown.map(|field| (field.name.to_owned(), example_of(field.schema))).collect();
        Value::Object(example)
    }
}

/// The fields of an object schema, the required ones first.
fn fields(schema: &Value) -> Vec<SchemaField<'_>> {
    let required = schema["required"].as_array();
    let is_required = |name: &str| required.is_some_and(|required| required.iter().any(|key| key == name));
    let properties = schema["properties"].as_object().into_iter().flatten();
    let mut fields: Vec<SchemaField<'_>> = properties
        .map(|(name, schema)| SchemaField { name, schema, is_required: is_required(name) })
        .collect();
    fields.sort_by_key(|field| !field.is_required);
    fields
}

fn type_text(schema: &Value) -> String {
    let names = |types: &[Value]| types.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" or ");
    if let Some(values) = schema["enum"].as_array() {
        let values: Vec<String> = values.iter().take(MAX_FIELDS).map(Value::to_string).collect();
        return format!("one of {}", values.join(", "));
    }
    match &schema["type"] {
        Value::String(name) => name.clone(),
        Value::Array(types) => names(types),
        _ => "any value".to_owned(),
    }
}

fn example_of(schema: &Value) -> Value {
    let given = schema.get("default").or_else(|| schema["enum"].as_array()?.first());
    if let Some(given) = given {
        return given.clone();
    }
    let name = schema["type"].as_str().or_else(|| schema["type"].as_array()?.first()?.as_str());
    match name {
        Some("integer" | "number") => schema.get("minimum").cloned().unwrap_or(json!(1)),
        Some("boolean") => json!(true),
        Some("array") => json!([]),
        Some("object") => json!({}),
        _ => json!(".."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schema(source: Value) -> Schema {
        Schema::new(source).unwrap()
    }

    #[test]
    fn fields_are_described_with_their_types() {
        let plan = schema(json!({"type": "object", "required": ["topic"], "properties": {
            "days": {"type": "integer", "minimum": 3}, "topic": {"type": "string"},
            "tone": {"enum": ["dry", "warm"]}, "note": {"type": ["string", "null"]}, "free": {},
        }}));
        let described = "`topic` (string), `days` (integer, optional), `tone` (one of \"dry\", \"warm\", optional), \
                         `note` (string or null, optional), `free` (any value, optional)";
        assert_eq!(plan.describe_fields().as_deref(), Some(described));
        assert_eq!(plan.only_required_text(), Some("topic"));
        assert_eq!(plan.example(), json!({"topic": ".."}));
    }

    #[test]
    fn an_example_has_what_is_required_or_everything() {
        let numbers = schema(json!({"type": "object", "properties": {
            "a": {"type": "integer", "minimum": 3}, "b": {"type": "boolean"}, "c": {"type": "string", "default": "x"},
        }}));
        assert_eq!(numbers.example(), json!({"a": 3, "b": true, "c": "x"}));
        assert_eq!(numbers.only_required_text(), None);
        let two = schema(json!({"type": "object", "required": ["a", "b"], "properties": {
            "a": {"type": "string"}, "b": {"type": "string"}}}));
        assert_eq!(two.only_required_text(), None);
        assert_eq!(schema(json!({"type": "string"})).describe_fields(), None);
    }
}
