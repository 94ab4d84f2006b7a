//! Walking through JSON Schemas.

use serde_json::Value;

/// Keywords whose value is a map of schemas.
const MAPS: &[&str] = &["properties", "patternProperties", "$defs", "definitions"];
/// Keywords whose value is a list of schemas.
const LISTS: &[&str] = &["anyOf", "allOf", "oneOf", "prefixItems"];
/// Keywords whose value is a schema.
const SINGLES: &[&str] =
    &["items", "additionalProperties", "not", "contains", "propertyNames", "if", "then", "else"];

/// Calls `visit` for a schema and all schemas within it, outermost first.
pub(crate) fn walk<E>(schema: &Value, visit: &mut dyn FnMut(&Value) -> Result<(), E>) -> Result<(), E> {
    visit(schema)?;
    children(schema).into_iter().try_for_each(|child| walk(child, visit))
}

/// Returns the schemas directly within a schema. `additionalProperties: false` is not one.
pub(crate) fn children(schema: &Value) -> Vec<&Value> {
    let maps = MAPS.iter().filter_map(|key| schema[key].as_object()).flat_map(|map| map.values());
    let lists = LISTS.iter().filter_map(|key| schema[key].as_array()).flatten();
    let singles = SINGLES.iter().map(|key| &schema[key]).filter(|child| child.is_object());
    maps.chain(lists).chain(singles).collect()
}

/// Returns whether `type` is, or lists, a type.
pub(crate) fn has_type(schema: &Value, wanted: &str) -> bool {
    let is_wanted = |kind: &Value| kind.as_str().is_some_and(|kind| kind.eq_ignore_ascii_case(wanted));
    is_wanted(&schema["type"]) || schema["type"].as_array().is_some_and(|kinds| kinds.iter().any(is_wanted))
}

/// Returns whether a schema describes objects.
pub(crate) fn is_object(schema: &Value) -> bool {
    has_type(schema, "object") || schema["properties"].is_object()
}

/// Finds a definition that refers to itself, directly or through others, as `A -> B -> A`.
pub(crate) fn circular_reference(schema: &Value) -> Option<String> {
    let definitions = ["$defs", "definitions"].iter().filter_map(|key| schema[key].as_object()).flatten();
    let names: Vec<&String> = definitions.map(|(name, _)| name).collect();
    if references(without_definitions(schema)).contains(&"#".to_owned()) {
        return Some("# -> #".to_owned());
    }
    names.iter().find_map(|name| circle_from(schema, name, vec![(*name).clone()]))
}

fn circle_from(root: &Value, name: &str, path: Vec<String>) -> Option<String> {
    let definition =
        ["$defs", "definitions"].iter().map(|key| &root[key][name]).find(|value| !value.is_null())?;
    references(vec![definition]).into_iter().find_map(|next| {
        let next = next.rsplit('/').next().unwrap_or_default().to_owned();
        let path_to_next: Vec<String> = path.iter().cloned().chain([next.clone()]).collect();
        if next == "#" || path[0] == next {
            return Some(path_to_next.join(" -> "));
        }
        // A circle that does not go through the start is found from its own names.
        if path.contains(&next) { None } else { circle_from(root, &next, path_to_next) }
    })
}

fn without_definitions(schema: &Value) -> Vec<&Value> {
    let definitions: Vec<&Value> = ["$defs", "definitions"]
        .iter()
        .filter_map(|key| schema[key].as_object())
        .flat_map(|map| map.values())
        .collect();
    children(schema)
        .into_iter()
        .filter(|child| !definitions.iter().any(|it| std::ptr::eq(*it, *child)))
        .collect()
}

fn references(schemas: Vec<&Value>) -> Vec<String> {
    let mut found = Vec::new();
    for schema in schemas {
        let _: Result<(), ()> = walk(schema, &mut |schema| {
            found.extend(schema["$ref"].as_str().map(str::to_owned));
            Ok(())
        });
    }
    found
}
