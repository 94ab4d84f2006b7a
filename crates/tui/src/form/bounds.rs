//! Says in a few words what a value may be: how large, how long, how many.

use llm_do_core::visible_line;
use serde_json::{Map, Value};

/// Returns the limits that a schema sets, as a person would say them; empty where it sets none.
pub(super) fn bounds(schema: &Map<String, Value>) -> String {
    let parts = match schema.get("type").and_then(Value::as_str) {
        Some("integer") => vec![whole_range(schema), multiple(schema)],
        Some("number") => vec![range(schema), multiple(schema)],
        Some("string") => {
            vec![count(schema, "Length", "character", "characters"), pattern(schema), format(schema)]
        }
        Some("array") => vec![list(schema), unique(schema)],
        Some("object") => vec![Some("an object".to_owned()), count(schema, "Properties", "entry", "entries")],
        _ => Vec::new(),
    };
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// Whole numbers have a last one before a limit that is not reached.
fn whole_range(schema: &Map<String, Value>) -> Option<String> {
    let mut schema = schema.clone();
    for (reached, not_reached, step) in
        [("minimum", "exclusiveMinimum", 1), ("maximum", "exclusiveMaximum", -1)]
    {
        let limit = schema.get(not_reached).and_then(Value::as_i64).and_then(|limit| limit.checked_add(step));
        if let (Some(limit), false) = (limit, schema.contains_key(reached)) {
            schema.remove(not_reached);
            schema.insert(reached.to_owned(), limit.into());
        }
    }
    range(&schema)
}

fn range(schema: &Map<String, Value>) -> Option<String> {
    let limit = |key: &str| schema.get(key).filter(|limit| limit.is_number());
    if let (Some(least), Some(most), None, None) =
        (limit("minimum"), limit("maximum"), limit("exclusiveMinimum"), limit("exclusiveMaximum"))
    {
        return Some(format!("{least} to {most}"));
    }
    let limits = [
        ("minimum", "at least"),
        ("exclusiveMinimum", "more than"),
        ("maximum", "at most"),
        ("exclusiveMaximum", "less than"),
    ];
    let parts: Vec<String> =
        limits.iter().filter_map(|(key, text)| Some(format!("{text} {}", limit(key)?))).collect();
    (!parts.is_empty()).then(|| parts.join(", "))
}

fn multiple(schema: &Map<String, Value>) -> Option<String> {
    Some(format!("a multiple of {}", schema.get("multipleOf").filter(|step| step.is_number())?))
}

/// How many of something, such as characters; a minimum of 0 does not count.
fn count(schema: &Map<String, Value>, of: &str, one: &str, many: &str) -> Option<String> {
    let limit = |end: &str| schema.get(&format!("{end}{of}")).and_then(Value::as_u64);
    let named = |number: u64| format!("{number} {}", if number == 1 { one } else { many });
    match (limit("min").filter(|least| *least > 0), limit("max")) {
        (Some(least), Some(most)) if least == most => Some(format!("exactly {}", named(most))),
        (Some(least), Some(most)) => Some(format!("{least} to {}", named(most))),
        (Some(least), None) => Some(format!("at least {}", named(least))),
        (None, Some(most)) => Some(format!("at most {}", named(most))),
        (None, None) => None,
    }
}

fn pattern(schema: &Map<String, Value>) -> Option<String> {
    Some(format!("matches {}", visible_line(schema.get("pattern")?.as_str()?)))
}

fn format(schema: &Map<String, Value>) -> Option<String> {
    Some(format!("format {}", visible_line(schema.get("format")?.as_str()?)))
}

fn list(schema: &Map<String, Value>) -> Option<String> {
    let items = count(schema, "Items", "item", "items");
    Some(items.map_or("a list".to_owned(), |items| format!("a list of {items}")))
}

fn unique(schema: &Map<String, Value>) -> Option<String> {
    let is_set = schema.get("uniqueItems") == Some(&Value::Bool(true));
    is_set.then(|| "no item twice".to_owned())
}
