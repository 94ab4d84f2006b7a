//! References inside a schema: found, and replaced by what they refer to.

use serde_json::{Map, Value};

/// The most schemas that one schema may have once its references are replaced.
const MAX_INLINED: usize = 2_000;

/// The most levels that one schema may have once its references are replaced.
const MAX_LEVELS: usize = 100;

/// Keywords under which the members are schemas.
const SCHEMA_MAPS: &[&str] = &["properties", "patternProperties", "dependentSchemas", "$defs", "definitions"];

/// Keywords whose value is a schema or a list of schemas.
const SCHEMAS: &[&str] = &[
    "additionalProperties",
    "allOf",
    "anyOf",
    "contains",
    "else",
    "if",
    "items",
    "not",
    "oneOf",
    "prefixItems",
    "propertyNames",
    "then",
    "unevaluatedItems",
    "unevaluatedProperties",
];

/// Keywords that change what a reference means.
const SCOPES: &[&str] = &["$id", "$anchor", "$dynamicRef", "$dynamicAnchor", "$recursiveRef"];

/// Returns the schema that a reference such as `#/$defs/Name` names.
pub(super) fn resolve<'a>(root: &'a Value, reference: &str) -> Option<&'a Value> {
    root.pointer(reference.strip_prefix('#')?)
}

/// Returns the schema without references, unless one leads back to itself or the result would be too large.
pub(super) fn inlined(root: &Value) -> Option<Value> {
    let mut inlined = Inliner { root, open: Vec::new(), count: 0, level: 0 }.schema(root)?;
    if let Some(map) = inlined.as_object_mut() {
        map.shift_remove("$defs");
        map.shift_remove("definitions");
    }
    Some(inlined)
}

struct Inliner<'a> {
    root: &'a Value,
    /// The references that are being replaced.
    open: Vec<&'a str>,
    count: usize,
    level: usize,
}

impl<'a> Inliner<'a> {
    fn schema(&mut self, schema: &'a Value) -> Option<Value> {
        let Value::Object(map) = schema else { return Some(schema.clone()) };
        self.count += 1;
        self.level += 1;
        let written = self.object(map);
        self.level -= 1;
        written
    }

    fn object(&mut self, map: &'a Map<String, Value>) -> Option<Value> {
        let is_too_large = self.count > MAX_INLINED || self.level > MAX_LEVELS;
        if is_too_large || SCOPES.iter().any(|key| map.contains_key(*key)) {
            return None;
        }
        let mut own = Map::new();
        for (key, value) in map.iter().filter(|(key, _)| *key != "$ref") {
            own.insert(key.clone(), self.member(key, value)?);
        }
        match map.get("$ref") {
            Some(reference) => self.replace(reference.as_str()?, own),
            None => Some(own.into()),
        }
    }

    fn member(&mut self, key: &str, value: &'a Value) -> Option<Value> {
        match value {
            // Definitions are used where they are referred to, and removed from the root.
            Value::Object(_) if matches!(key, "$defs" | "definitions") => Some(value.clone()),
            Value::Object(map) if SCHEMA_MAPS.contains(&key) => map
                .iter()
                .map(|(name, schema)| Some((name.clone(), self.schema(schema)?)))
                .collect::<Option<Map<_, _>>>()
                .map(Value::Object),
            Value::Array(list) if SCHEMAS.contains(&key) => list.iter().map(|it| self.schema(it)).collect(),
            value if SCHEMAS.contains(&key) => self.schema(value),
            value => Some(value.clone()),
        }
    }

    /// Replaces a reference. Its sibling keywords hold as well.
    fn replace(&mut self, reference: &'a str, own: Map<String, Value>) -> Option<Value> {
        if self.open.contains(&reference) {
            return None;
        }
        self.open.push(reference);
        let target = self.schema(resolve(self.root, reference)?)?;
        self.open.pop();
        let Value::Object(target) = target else { return own.is_empty().then_some(target) };
        merged(target, own)
    }
}

/// Returns a schema that means two schemas at once, where no keyword of one restricts the other. Of descriptions
/// the second one wins.
pub(super) fn merged(first: Map<String, Value>, second: Map<String, Value>) -> Option<Value> {
    let mut merged = first;
    for (key, value) in second {
        let is_same = merged.get(&key).is_none_or(|known| *known == value);
        if !is_same && super::dialect::is_assertion(&key) {
            return None;
        }
        merged.insert(key, value);
    }
    Some(merged.into())
}
