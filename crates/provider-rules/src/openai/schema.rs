//! Strict schemas.

use serde_json::Value;

use crate::json::{is_set, items};
use crate::schema;

const UNSUPPORTED: &[&str] = &[
    "minLength",
    "maxLength",
    "patternProperties",
    "unevaluatedProperties",
    "propertyNames",
    "minProperties",
    "maxProperties",
    "unevaluatedItems",
    "contains",
    "minContains",
    "maxContains",
    "uniqueItems",
    "default",
    "oneOf",
];
const FORMATS: &[&str] =
    &["date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"];
const LOOKAROUNDS: &[&str] = &["(?=", "(?!", "(?<=", "(?<!"];

/// How large a strict schema may be.
#[derive(Debug, Clone, Copy)]
pub(super) struct StrictLimits {
    /// Objects within objects, the outermost included.
    pub(super) levels: Option<usize>,
    /// Properties and enum values in all.
    pub(super) sizes: Option<(usize, usize)>,
}

impl StrictLimits {
    /// The limits of a model; those of newer ones are uncertain.
    pub(super) fn for_model(model: &str, uncertain: bool) -> Self {
        let levels = if model.starts_with("gpt-4o") { Some(5) } else { uncertain.then_some(10) };
        Self { levels, sizes: uncertain.then_some((5_000, 1_000)) }
    }
}

/// Checks a strict schema; the error is the reason for its refusal.
pub(super) fn check(root: &Value, limits: StrictLimits) -> Result<(), String> {
    if root["type"] != "object" {
        return Err(format!(
            "schema must be a JSON Schema of 'type: \"object\"', got 'type: {}'.",
            root["type"]
        ));
    }
    if is_set(&root["anyOf"]) {
        return Err("schema must have type 'object' and not have 'anyOf' at the top level.".to_owned());
    }
    schema::walk(root, &mut check_node)?;
    check_limits(root, limits)
}

fn check_node(schema: &Value) -> Result<(), String> {
    if let Some(keyword) = UNSUPPORTED.iter().find(|keyword| is_set(&schema[**keyword])) {
        return Err(format!("In context=(), '{keyword}' is not permitted."));
    }
    if is_set(&schema["$ref"]) && schema.as_object().is_some_and(|map| map.len() > 1 && !is_root(map)) {
        return Err("In context=(), $ref cannot have keywords beside it.".to_owned());
    }
    if let Some(format) = schema["format"].as_str().filter(|format| !FORMATS.contains(format)) {
        return Err(format!("In context=(), '{format}' is not a valid format."));
    }
    if schema["pattern"].as_str().is_some_and(|pattern| LOOKAROUNDS.iter().any(|it| pattern.contains(it))) {
        return Err("In context=(), lookaround is not supported in 'pattern'.".to_owned());
    }
    if schema::has_type(schema, "array") && !has_typed_items(schema) {
        return Err("In context=(), array schema missing items.".to_owned());
    }
    check_object(schema)
}

/// Definitions beside a reference belong to the root.
fn is_root(map: &serde_json::Map<String, Value>) -> bool {
    map.contains_key("$defs") || map.contains_key("definitions")
}

fn has_typed_items(schema: &Value) -> bool {
    let is_typed = |items: &Value| {
        ["type", "$ref", "anyOf", "enum", "const"].iter().any(|keyword| is_set(&items[*keyword]))
    };
    is_typed(&schema["items"]) || is_set(&schema["prefixItems"])
}

fn check_object(schema: &Value) -> Result<(), String> {
    if !schema::is_object(schema) {
        return Ok(());
    }
    if schema["additionalProperties"] != false {
        return Err(
            "In context=(), 'additionalProperties' is required to be supplied and to be false.".to_owned()
        );
    }
    let required = items(schema, "required");
    let mut names = schema["properties"].as_object().into_iter().flat_map(|properties| properties.keys());
    match names.find(|name| !required.iter().any(|required| required == *name)) {
        Some(name) => Err(format!(
            "In context=(), 'required' is required to be supplied and to be an array including every key in properties. \
             Missing '{name}'."
        )),
        None => Ok(()),
    }
}

fn check_limits(root: &Value, limits: StrictLimits) -> Result<(), String> {
    let levels = levels(root);
    if let Some(most) = limits.levels.filter(|most| levels > *most) {
        return Err(format!("{levels} levels of nesting exceeds limit of {most}."));
    }
    let (mut properties, mut values) = (0, 0);
    schema::walk(root, &mut |schema| {
        properties += schema["properties"].as_object().map_or(0, serde_json::Map::len);
        values += items(schema, "enum").len();
        Ok::<(), String>(())
    })?;
    match limits.sizes {
        Some((most, _)) if properties > most => {
            Err(format!("{properties} properties exceeds limit of {most}."))
        }
        Some((_, most)) if values > most => Err(format!("{values} enum values exceeds limit of {most}.")),
        _ => Ok(()),
    }
}

/// Returns how deep objects are nested.
fn levels(schema: &Value) -> usize {
    let below = schema::children(schema).into_iter().map(levels).max().unwrap_or(0);
    below + usize::from(schema::is_object(schema))
}
