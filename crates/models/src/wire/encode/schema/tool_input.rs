//! The input of a tool: an object with named fields, whatever the schema of the tool looks like.
//!
//! Every API wants an object, and most refuse the whole request for a reference or combiner at its top. A tool may
//! be written by anyone, so what cannot be sent is widened here, and the call is checked against the original.

use std::borrow::Cow;

use serde_json::{Map, Value, json};

use super::references::resolve;
use super::union::required;
use super::{COMBINERS, has_combiner};

/// How many schemas are read for the fields of one tool: references can repeat at every level.
const MAX_READ: usize = 1_000;

/// The longest name of a field that Anthropic accepts.
const MAX_NAME_LEN: usize = 64;

/// Returns the schema of an object that has all fields of the input, and requires those that are always required.
pub(in super::super) fn tool_input(schema: &Value) -> Cow<'_, Value> {
    let is_plain = schema.get("type").is_some_and(|kind| kind == "object")
        && schema.get("properties").is_some_and(Value::is_object);
    if is_plain && !has_combiner(schema) {
        return Cow::Borrowed(schema);
    }
    let fields = FieldReader::new(schema).read(schema);
    let Some(map) = schema.as_object() else { return Cow::Owned(any_object()) };
    let mut object = map.clone();
    object.retain(|key, _| !COMBINERS.contains(&key.as_str()) && key != "required");
    object.insert("type".into(), "object".into());
    object.insert("properties".into(), fields.properties.into());
    if !fields.required.is_empty() {
        object.insert("required".into(), fields.required.into());
    }
    if has_combiner(schema) {
        object.shift_remove("additionalProperties");
    }
    if let Some(forms) = forms(schema) {
        object.insert("description".into(), forms.into());
    }
    Cow::Owned(object.into())
}

/// The schema of an object with any fields.
pub(super) fn any_object() -> Value {
    json!({"type": "object", "properties": {}})
}

/// Returns whether Anthropic accepts the names of all fields of a tool.
pub(in super::super) fn has_only_valid_names(schema: &Value) -> bool {
    names(schema).all(is_valid_name)
}

/// Returns the schema without the fields whose names Anthropic refuses, unless one of them is required.
pub(in super::super) fn without_invalid_names(mut schema: Value) -> Option<Value> {
    if schema.as_object().is_some_and(|map| !required(map).into_iter().all(is_valid_name)) {
        return None;
    }
    if let Some(fields) = schema.get_mut("properties").and_then(Value::as_object_mut) {
        fields.retain(|name, _| is_valid_name(name));
    }
    Some(schema)
}

fn names(schema: &Value) -> impl Iterator<Item = &str> {
    let fields = schema.get("properties").and_then(Value::as_object);
    fields.into_iter().flat_map(Map::keys).map(String::as_str)
}

fn is_valid_name(name: &str) -> bool {
    let is_valid = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'-');
    (1..=MAX_NAME_LEN).contains(&name.len()) && name.bytes().all(is_valid)
}

/// The fields of an object, and those among them that are always required.
#[derive(Default)]
struct Fields {
    properties: Map<String, Value>,
    required: Vec<String>,
}

/// Reads the fields of a schema through references and combiners.
struct FieldReader<'a> {
    root: &'a Value,
    open: Vec<&'a str>,
    left: usize,
}

impl<'a> FieldReader<'a> {
    fn new(root: &'a Value) -> Self {
        Self { root, open: Vec::new(), left: MAX_READ }
    }

    fn read(&mut self, schema: &'a Value) -> Fields {
        let Some(map) = schema.as_object().filter(|_| self.left > 0) else { return Fields::default() };
        self.left -= 1;
        let own = map.get("properties").and_then(Value::as_object).cloned().unwrap_or_default();
        let needed = required(map).into_iter().map(str::to_owned).collect();
        let mut fields = Fields { properties: own, required: needed };
        if let Some(reference) = map.get("$ref").and_then(Value::as_str) {
            fields.add_all(self.read_reference(reference));
        }
        for part in map.get("allOf").and_then(Value::as_array).into_iter().flatten() {
            fields.add_all(self.read(part));
        }
        for key in ["anyOf", "oneOf"] {
            let branches = map.get(key).and_then(Value::as_array).into_iter().flatten();
            let branches = branches.map(|branch| self.read(branch)).collect();
            fields.add_any(branches);
        }
        fields
    }

    fn read_reference(&mut self, reference: &'a str) -> Fields {
        let Some(target) = resolve(self.root, reference).filter(|_| !self.open.contains(&reference)) else {
            return Fields::default();
        };
        self.open.push(reference);
        let fields = self.read(target);
        self.open.pop();
        fields
    }
}

impl Fields {
    /// Adds the fields of a schema that holds as well.
    fn add_all(&mut self, other: Self) {
        for (name, schema) in other.properties {
            self.properties.entry(name).or_insert(schema);
        }
        self.require(other.required);
    }

    /// Adds the fields of schemas of which one holds. A field is required if it is in each of them.
    fn add_any(&mut self, branches: Vec<Self>) {
        let Some(first) = branches.first() else { return };
        let in_all = |name: &&String| branches.iter().all(|branch| branch.required.contains(name));
        self.require(first.required.iter().filter(in_all).cloned().collect());
        for (name, schema) in branches.into_iter().flat_map(|branch| branch.properties) {
            match self.properties.get_mut(&name) {
                Some(known) => widen(known, schema),
                None => drop(self.properties.insert(name, schema)),
            }
        }
    }

    fn require(&mut self, names: Vec<String>) {
        let new: Vec<String> = names.into_iter().filter(|name| !self.required.contains(name)).collect();
        self.required.extend(new);
    }
}

/// Lets a field be what another branch says as well.
fn widen(known: &mut Value, other: Value) {
    if *known == other {
        return;
    }
    match known.as_object_mut() {
        Some(map) if map.len() == 1 && map.contains_key("anyOf") => {
            if let Some(forms) = map.get_mut("anyOf").and_then(Value::as_array_mut)
                && !forms.contains(&other)
            {
                forms.push(other);
            }
        }
        _ => *known = json!({"anyOf": [known.take(), other]}),
    }
}

/// Describes which fields go together, since the widened schema cannot.
fn forms(schema: &Value) -> Option<String> {
    let branches = schema.get("oneOf").or_else(|| schema.get("anyOf"))?.as_array()?;
    let form = |branch: &Value| {
        let fields = FieldReader::new(schema).read(branch);
        let names: Vec<String> = fields
            .properties
            .keys()
            .chain(fields.required.iter().filter(|name| !fields.properties.contains_key(*name)))
            .map(|name| {
                let mark = if fields.required.contains(name) { "" } else { "?" };
                format!("{name}{mark}")
            })
            .collect();
        format!("{{{}}}", names.join(", "))
    };
    let forms = branches.iter().map(form).collect::<Vec<_>>().join(" or ");
    let said = schema.get("description").and_then(Value::as_str).unwrap_or_default();
    Some(format!("{said} Fields that go together: {forms}").trim().to_owned())
}
