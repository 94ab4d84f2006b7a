//! How large a schema may be that a provider compiles into a grammar.

use std::collections::HashMap;

use serde_json::{Map, Value};

use super::references::resolve;
use super::union::required;

/// Limits of OpenAI's strict mode.
const MAX_PROPERTIES: usize = 5_000;
const MAX_NAME_CHARS: usize = 120_000;
const MAX_ENUM_VALUES: usize = 1_000;
const MAX_LONG_ENUM_CHARS: usize = 15_000;
const LONG_ENUM_VALUES: usize = 250;
/// Older models allow five levels of objects, newer ones ten levels of any kind.
const MAX_OBJECT_DEPTH: usize = 5;
const MAX_DEPTH: usize = 10;

/// Limits of Anthropic's schema compiler for one schema.
const MAX_OPTIONAL: usize = 23;
const MAX_UNIONS: usize = 15;

/// Returns whether OpenAI's strict mode accepts a schema of this size.
pub(super) fn fits_openai(schema: &Value) -> bool {
    let mut size = Size::default();
    size.add(schema);
    size.properties <= MAX_PROPERTIES
        && size.name_chars <= MAX_NAME_CHARS
        && size.enum_values <= MAX_ENUM_VALUES
        && !size.has_long_enum
        && is_shallow(schema)
}

fn is_shallow(schema: &Value) -> bool {
    let depth = Depths { root: schema, known: HashMap::new(), open: Vec::new() }.measure(schema);
    depth.all <= MAX_DEPTH && depth.objects <= MAX_OBJECT_DEPTH
}

/// Returns whether Anthropic compiles a schema of this size.
pub(super) fn fits_anthropic(schema: &Value) -> bool {
    let mut size = Size::default();
    size.add(schema);
    size.optional <= MAX_OPTIONAL && size.unions <= MAX_UNIONS
}

#[derive(Default)]
struct Size {
    properties: usize,
    optional: usize,
    unions: usize,
    name_chars: usize,
    enum_values: usize,
    has_long_enum: bool,
}

impl Size {
    fn add(&mut self, schema: &Value) {
        let Some(map) = schema.as_object() else { return };
        if map.contains_key("anyOf") || map.get("type").is_some_and(Value::is_array) {
            self.unions += 1;
        }
        self.add_fields(map);
        let values = map.get("enum").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        let chars: usize = values.iter().chain(map.get("const")).map(chars).sum();
        self.enum_values += values.len();
        self.name_chars += chars;
        self.has_long_enum |= values.len() > LONG_ENUM_VALUES && chars > MAX_LONG_ENUM_CHARS;
        self.name_chars += definitions(map).map(|(name, _)| name.chars().count()).sum::<usize>();
        children(map).for_each(|child| self.add(child));
    }

    fn add_fields(&mut self, map: &Map<String, Value>) {
        let Some(fields) = map.get("properties").and_then(Value::as_object) else { return };
        let needed = required(map);
        self.properties += fields.len();
        self.optional += fields.keys().filter(|name| !needed.contains(&name.as_str())).count();
        self.name_chars += fields.keys().map(|name| name.chars().count()).sum::<usize>();
    }
}

fn chars(value: &Value) -> usize {
    value.as_str().map_or_else(|| value.to_string().len(), |text| text.chars().count())
}

fn definitions(map: &Map<String, Value>) -> impl Iterator<Item = (&String, &Value)> {
    map.get("$defs").and_then(Value::as_object).into_iter().flatten()
}

/// The schemas directly inside a schema that a dialect has written.
fn children(map: &Map<String, Value>) -> impl Iterator<Item = &Value> {
    let fields = map.get("properties").and_then(Value::as_object).into_iter().flat_map(Map::values);
    let branches = map.get("anyOf").and_then(Value::as_array).into_iter().flatten();
    let definitions = definitions(map).map(|(_, schema)| schema);
    fields.chain(branches).chain(map.get("items")).chain(definitions)
}

/// How many levels a schema has, itself included.
#[derive(Default, Clone, Copy)]
struct Depth {
    all: usize,
    objects: usize,
}

impl Depth {
    const TOO_DEEP: Self = Self { all: MAX_DEPTH + 1, objects: MAX_OBJECT_DEPTH + 1 };

    fn max(self, other: Self) -> Self {
        Self { all: self.all.max(other.all), objects: self.objects.max(other.objects) }
    }
}

/// Measures the depth of schemas. Each definition is measured once: references can double at every level.
struct Depths<'a> {
    root: &'a Value,
    known: HashMap<&'a str, Depth>,
    open: Vec<&'a str>,
}

impl<'a> Depths<'a> {
    fn measure(&mut self, schema: &'a Value) -> Depth {
        let Some(map) = schema.as_object() else { return Depth::default() };
        if let Some(reference) = map.get("$ref").and_then(Value::as_str) {
            return self.measure_reference(reference);
        }
        let fields = map.get("properties").and_then(Value::as_object).into_iter().flat_map(Map::values);
        let branches = map.get("anyOf").and_then(Value::as_array).into_iter().flatten();
        let inside = fields.chain(branches).chain(map.get("items"));
        let deepest = inside.fold(Depth::default(), |deepest, child| deepest.max(self.measure(child)));
        let is_object = map.contains_key("properties");
        Depth { all: deepest.all + 1, objects: deepest.objects + usize::from(is_object) }
    }

    /// A reference that is being followed is not followed again: recursion is allowed.
    fn measure_reference(&mut self, reference: &'a str) -> Depth {
        if let Some(known) = self.known.get(reference) {
            return *known;
        }
        let Some(target) = resolve(self.root, reference).filter(|_| !self.open.contains(&reference)) else {
            return Depth::default();
        };
        if self.open.len() > MAX_DEPTH {
            return Depth::TOO_DEEP;
        }
        self.open.push(reference);
        let depth = self.measure(target);
        self.open.pop();
        self.known.insert(reference, depth);
        depth
    }
}
