//! Makes the smallest value that fits a JSON Schema.
//!
//! Required properties only, the first of several alternatives, the lowest number, the shortest list. The
//! value is checked against its schema; if it does not fit, other alternatives are tried. `not`, `if` and
//! conditions between properties are not read, so a schema that turns on them may get a value that does not
//! fit: the caller is told by whoever validates it.
//!
//! A schema may come from a stranger. References to an enclosing definition end an alternative, and depth
//! and size are bounded.

mod pattern;
mod scalar;

use llm_do_core::Schema;
use serde_json::{Value, json};

use scalar::{Keywords, Rounding, length, number, text};

/// How often other alternatives are tried.
const ATTEMPTS: usize = 6;
/// How deep a value may nest.
const MAX_DEPTH: usize = 64;
/// How many schemas may hold at once for one value.
const MAX_PARTS: usize = 200;
/// How many schemas are looked at in one attempt.
const MAX_WORK: usize = 10_000;

/// Returns a minimal value for a schema; null where none can be made.
pub(crate) fn minimal_value(schema: &Schema) -> Value {
    let mut attempts = (0..ATTEMPTS).map(|preferred| attempt(schema, preferred));
    let first = attempts.next().unwrap_or_default();
    if schema.fits(&first) {
        return first;
    }
    attempts.find(|value| schema.fits(value)).unwrap_or(first)
}

fn attempt(schema: &Schema, preferred: usize) -> Value {
    let mut maker = Maker { root: schema.source(), preferred, work: MAX_WORK };
    maker.value(schema.source(), &SchemaPosition::default()).unwrap_or_default()
}

/// Makes one value. Its methods return nothing where a schema cannot be met within the bounds.
struct Maker<'a> {
    /// The document in which references are looked up.
    root: &'a Value,
    /// Which of several alternatives is tried first.
    preferred: usize,
    /// Schemas that may still be looked at.
    work: usize,
}

/// Where in a value the maker is.
#[derive(Clone, Default)]
struct SchemaPosition {
    depth: usize,
    /// The references that were followed to get here.
    references: Vec<String>,
}

/// A schema without references and `allOf`.
#[derive(Default)]
struct Flat {
    keywords: Keywords,
    /// The references that were followed: first those of the enclosing schemas, then those followed here.
    references: Vec<String>,
    /// How many references are of the enclosing schemas.
    inherited: usize,
    /// How many schemas were put together.
    parts: usize,
}

impl Maker<'_> {
    fn value(&mut self, schema: &Value, position: &SchemaPosition) -> Option<Value> {
        self.work = self.work.checked_sub(1)?;
        match schema {
            Value::Bool(true) => Some(json!("a")),
            Value::Object(keywords) => self.value_of(keywords, position),
            _ => None,
        }
    }

    fn value_of(&mut self, keywords: &Keywords, position: &SchemaPosition) -> Option<Value> {
        if position.depth > MAX_DEPTH {
            return None;
        }
        let mut flat = Flat {
            references: position.references.clone(),
            inherited: position.references.len(),
            ..Flat::default()
        };
        self.flatten(keywords, &mut flat)?;
        let position = SchemaPosition { depth: position.depth + 1, references: flat.references };
        let mut flat = flat.keywords;
        if let Some(value) = self.given(&flat) {
            return Some(value);
        }
        for key in ["anyOf", "oneOf"] {
            if let Some(Value::Array(alternatives)) = flat.shift_remove(key) {
                return self.alternative(&flat, &alternatives, &position);
            }
        }
        match self.type_of(&flat) {
            "object" => self.object(&flat, &position),
            "array" => self.array(&flat, &position),
            "integer" => Some(number(&flat, Rounding::Whole)),
            "number" => Some(number(&flat, Rounding::None)),
            "boolean" => Some(json!(false)),
            "null" => Some(Value::Null),
            _ => Some(text(&flat).into()),
        }
    }

    /// Collects the keywords of a schema, of what it refers to and of all that must hold beside it.
    fn flatten(&mut self, keywords: &Keywords, flat: &mut Flat) -> Option<()> {
        self.work = self.work.checked_sub(1)?;
        flat.parts += 1;
        if flat.parts > MAX_PARTS {
            return None;
        }
        for (key, value) in keywords {
            match (key.as_str(), value) {
                // Definitions are looked up in the document.
                ("$defs" | "definitions", _) => {}
                ("$ref", Value::String(reference)) => self.follow(reference, flat)?,
                ("allOf", Value::Array(parts)) => {
                    parts.iter().try_for_each(|part| self.flatten_value(part, flat))?;
                }
                _ => merge(&mut flat.keywords, key, value),
            }
        }
        Some(())
    }

    fn flatten_value(&mut self, schema: &Value, flat: &mut Flat) -> Option<()> {
        match schema {
            Value::Object(keywords) => self.flatten(keywords, flat),
            Value::Bool(true) => Some(()),
            _ => None,
        }
    }

    /// Adds what a reference points to. One that encloses this position would never end; one that was already
    /// followed here adds nothing.
    fn follow(&mut self, reference: &str, flat: &mut Flat) -> Option<()> {
        match flat.references.iter().position(|followed| followed == reference) {
            Some(index) if index < flat.inherited => None,
            Some(_) => Some(()),
            None => {
                flat.references.push(reference.to_owned());
                let target = self.root.pointer(reference.strip_prefix('#')?)?;
                self.flatten_value(target, flat)
            }
        }
    }

    /// Returns a value that the schema itself gives.
    fn given(&self, keywords: &Keywords) -> Option<Value> {
        let options =
            || keywords.get("enum").and_then(Value::as_array).and_then(|options| self.choice(options));
        // A default need not fit its own schema: only the first attempt believes it.
        let default = || keywords.get("default").filter(|_| self.preferred == 0);
        keywords.get("const").or_else(default).or_else(options).cloned()
    }

    fn choice<'v>(&self, options: &'v [Value]) -> Option<&'v Value> {
        options.iter().cycle().nth(self.preferred)
    }

    /// Makes the first alternative that can be made, the preferred one before the others.
    fn alternative(
        &mut self,
        keywords: &Keywords,
        alternatives: &[Value],
        position: &SchemaPosition,
    ) -> Option<Value> {
        let count = alternatives.len();
        let ordered: Vec<&Value> = alternatives.iter().cycle().skip(self.preferred).take(count).collect();
        ordered.into_iter().find_map(|alternative| {
            let mut both = keywords.clone();
            push_requirement(&mut both, alternative.clone());
            self.value_of(&both, position)
        })
    }

    fn type_of<'v>(&self, keywords: &'v Keywords) -> &'v str {
        match keywords.get("type") {
            Some(Value::String(one)) => one,
            Some(Value::Array(several)) => {
                let mut types = several.iter().cycle().skip(self.preferred).take(several.len());
                types.find_map(|one| one.as_str().filter(|one| *one != "null")).unwrap_or("null")
            }
            _ => implied_type(keywords),
        }
    }

    fn object(&mut self, keywords: &Keywords, position: &SchemaPosition) -> Option<Value> {
        let mut object = Keywords::new();
        for name in required(keywords) {
            let value = self.value(&property(keywords, name), position)?;
            object.insert(name.to_owned(), value);
        }
        let least = length(keywords, "minProperties").unwrap_or(0);
        let mut more = optional(keywords).chain((1..=least).map(|count| "a".repeat(count)));
        while object.len() < least {
            let name = more.next()?;
            let value = self.value(&property(keywords, &name), position)?;
            object.insert(name, value);
        }
        Some(Value::Object(object))
    }

    fn array(&mut self, keywords: &Keywords, position: &SchemaPosition) -> Option<Value> {
        let unique = keywords.get("uniqueItems") == Some(&Value::Bool(true));
        let mut items = Vec::new();
        for index in 0..least_items(keywords) {
            let schema = item(keywords, index);
            let value =
                if unique { self.unlike(&items, &schema, position) } else { self.value(&schema, position) };
            items.push(value?);
        }
        Some(Value::Array(items))
    }

    /// Makes an item that differs from the others.
    fn unlike(&mut self, others: &[Value], schema: &Value, position: &SchemaPosition) -> Option<Value> {
        let preferred = self.preferred;
        let different = (0..=others.len()).find_map(|shift| {
            self.preferred = preferred + shift;
            let value = self.value(schema, position)?;
            [value.clone(), varied(value, shift)].into_iter().find(|value| !others.contains(value))
        });
        self.preferred = preferred;
        different
    }
}

/// Adds a keyword to others that must hold too.
fn merge(flat: &mut Keywords, key: &str, value: &Value) {
    let Some(present) = flat.get_mut(key) else {
        flat.insert(key.to_owned(), value.clone());
        return;
    };
    match (key, present, value) {
        ("properties", Value::Object(present), Value::Object(more)) => {
            more.iter().for_each(|(name, schema)| merge_property(present, name, schema));
        }
        ("required", Value::Array(present), Value::Array(more)) => present.extend(more.iter().cloned()),
        ("anyOf" | "oneOf", _, _) => {
            let mut other = Keywords::new();
            other.insert(key.to_owned(), value.clone());
            push_requirement(flat, Value::Object(other));
        }
        (_, present, value) if key.starts_with("min") && present.as_f64() >= value.as_f64() => {}
        (_, present, value) if key.starts_with("max") && present.as_f64() <= value.as_f64() => {}
        (_, present, value) => *present = value.clone(),
    }
}

fn merge_property(properties: &mut Keywords, name: &str, schema: &Value) {
    match properties.get_mut(name) {
        Some(present) => *present = json!({"allOf": [present.take(), schema]}),
        None => {
            properties.insert(name.to_owned(), schema.clone());
        }
    }
}

fn push_requirement(keywords: &mut Keywords, schema: Value) {
    match keywords.get_mut("allOf") {
        Some(Value::Array(parts)) => parts.push(schema),
        _ => {
            keywords.insert("allOf".to_owned(), Value::Array(vec![schema]));
        }
    }
}

fn implied_type(keywords: &Keywords) -> &'static str {
    let has = |keys: &[&str]| keys.iter().any(|key| keywords.contains_key(*key));
    if has(&["properties", "required", "minProperties"]) {
        "object"
    } else if has(&["items", "prefixItems", "minItems", "contains"]) {
        "array"
    } else if has(&["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"]) {
        "integer"
    } else {
        "string"
    }
}

fn required(keywords: &Keywords) -> impl Iterator<Item = &str> {
    let names = keywords.get("required").and_then(Value::as_array);
    names.into_iter().flatten().filter_map(Value::as_str)
}

fn optional(keywords: &Keywords) -> impl Iterator<Item = String> {
    let properties = keywords.get("properties").and_then(Value::as_object);
    properties.into_iter().flat_map(|properties| properties.keys().cloned())
}

fn property(keywords: &Keywords, name: &str) -> Value {
    let declared = keywords.get("properties").and_then(|properties| properties.get(name));
    declared.or_else(|| keywords.get("additionalProperties")).cloned().unwrap_or(Value::Bool(true))
}

fn least_items(keywords: &Keywords) -> usize {
    let contained = match keywords.contains_key("contains") {
        true => length(keywords, "minContains").unwrap_or(1),
        false => 0,
    };
    length(keywords, "minItems").unwrap_or(0).max(contained)
}

/// Returns the schema of an item: by its position, or what all items and the contained ones must be.
fn item(keywords: &Keywords, index: usize) -> Value {
    let by_index = ["prefixItems", "items"].into_iter().find_map(|key| keywords.get(key)?.as_array());
    if let Some(schema) = by_index.and_then(|schemas| schemas.get(index)) {
        return schema.clone();
    }
    let all: Vec<&Value> = ["items", "contains"]
        .into_iter()
        .filter_map(|key| keywords.get(key))
        .filter(|s| !s.is_array())
        .collect();
    if all.is_empty() { Value::Bool(true) } else { json!({"allOf": all}) }
}

fn varied(value: Value, shift: usize) -> Value {
    match &value {
        Value::String(text) => format!("{text}{}", "a".repeat(shift)).into(),
        Value::Number(number) => {
            number.as_i64().map_or(value, |number| number.saturating_add(shift as i64).into())
        }
        _ => value,
    }
}

#[cfg(test)]
mod tests;
