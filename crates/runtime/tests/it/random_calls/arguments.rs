//! Random arguments, and what they are when they are read and completed.
//!
//! What a text or value must be read as is known from how it was made, and schemas are checked by hand:
//! nothing here asks the code under test.

use std::sync::OnceLock;

use llm_do_core::{Digest, Schema};
use serde_json::{Map, Value, json};

use llm_do_testing::Chance;

/// The input schemas of a case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape {
    /// Any object.
    Any,
    /// A path, and a mode with a default.
    Path,
    /// A number, and perhaps a note.
    Count,
    /// A task for an agent, with a level that has a default.
    Task,
    /// The input of an agent without a schema.
    Prompt,
    /// The input of the entry.
    Entry,
}

impl Shape {
    /// Returns the schema, where the callable declares one. Compiled once for all cases.
    pub(crate) fn schema(self) -> Option<Schema> {
        static COMPILED: OnceLock<[Option<Schema>; 4]> = OnceLock::new();
        let compiled = COMPILED.get_or_init(|| SHAPES.map(|shape| Schema::new(shape.source()).ok()));
        SHAPES.iter().position(|shape| *shape == self).and_then(|place| compiled[place].clone())
    }

    fn source(self) -> Value {
        let (properties, required) = match self {
            Self::Path => {
                let mode = json!({"type": "string", "enum": ["soft", "hard"], "default": "soft"});
                (json!({"path": {"type": "string"}, "mode": mode}), json!(["path"]))
            }
            Self::Count => (json!({"n": {"type": "integer"}, "note": {"type": "string"}}), json!(["n"])),
            Self::Task => {
                let level = json!({"type": "integer", "default": 1});
                (json!({"task": {"type": "string"}, "level": level}), json!(["task"]))
            }
            Self::Any | Self::Prompt | Self::Entry => return json!({"type": "object"}),
        };
        json!({"type": "object", "properties": properties, "required": required, "additionalProperties": false})
    }
}

const SHAPES: [Shape; 4] = [Shape::Any, Shape::Path, Shape::Count, Shape::Task];

/// Completes a value as a schema says, or says that it does not fit.
///
/// `free` holds for code that gives an agent without a schema any object.
pub(crate) fn complete(shape: Shape, value: &Value, free: bool) -> Option<Value> {
    let mut map = value.as_object()?.clone();
    let is_text = |map: &Map<String, Value>, name: &str| map.get(name).is_some_and(Value::is_string);
    let only = |map: &Map<String, Value>, names: &[&str]| map.keys().all(|key| names.contains(&key.as_str()));
    let drop_null = |map: &mut Map<String, Value>, name: &str| {
        if map.get(name) == Some(&Value::Null) {
            map.remove(name);
        }
    };
    let fits = match shape {
        Shape::Any => true,
        Shape::Prompt if free => true,
        Shape::Path => {
            drop_null(&mut map, "mode");
            let mode = map.entry("mode").or_insert_with(|| json!("soft"));
            (mode == "soft" || mode == "hard") && is_text(&map, "path") && only(&map, &["path", "mode"])
        }
        Shape::Count => {
            drop_null(&mut map, "note");
            let note = map.get("note").is_none_or(Value::is_string);
            note && map.get("n").is_some_and(Value::is_i64) && only(&map, &["n", "note"])
        }
        Shape::Task => {
            drop_null(&mut map, "level");
            let level = map.entry("level").or_insert_with(|| json!(1)).is_i64();
            level && is_text(&map, "task") && only(&map, &["task", "level"])
        }
        Shape::Prompt => {
            drop_null(&mut map, "attachments");
            is_text(&map, "input") && only(&map, &["input", "attachments"])
        }
        Shape::Entry => {
            map.entry("attachments").or_insert_with(|| json!([]));
            is_text(&map, "input")
        }
    };
    fits.then_some(Value::Object(map))
}

/// The digests of the files that a value attaches: all attach the same one.
pub(crate) fn attached(value: &Value) -> Vec<Digest> {
    let files = value.get("attachments").and_then(Value::as_array);
    files.into_iter().flatten().map(|_| Digest::hash(include_bytes!("oracle.rs"))).collect()
}

/// Makes up a value that fits. The values are few, so that equal calls are frequent.
pub(crate) fn valid(shape: Shape, chance: &mut Chance) -> Value {
    match shape {
        Shape::Any => match chance.below(4) {
            0 => json!({}),
            1 => json!({"b": [1, {"d": null, "c": "\u{7}\u{1f600}"}], "a": 0.5}),
            _ => json!({ "k": chance.below(4) }),
        },
        Shape::Path => {
            let usual = ["work/a", "work/b/c", "work/a", "workx/y", "secret/s"];
            let unusual = ["work/../out", "notes/n", "danger/d", "/work/a"];
            let path = if chance.percent(65) { chance.one_of(&usual) } else { chance.one_of(&unusual) };
            match chance.below(4) {
                0 => json!({"mode": "hard", "path": path}),
                1 => json!({"path": path, "mode": null}),
                _ => json!({ "path": path }),
            }
        }
        Shape::Count => match chance.below(4) {
            0 => json!({"n": chance.below(6), "note": "ok"}),
            1 => json!({"note": null, "n": 9_007_199_254_740_993_i64}),
            _ => json!({ "n": chance.below(6) }),
        },
        Shape::Task => match chance.below(3) {
            0 => json!({"task": "sort", "level": chance.below(3)}),
            _ => json!({ "task": *chance.one_of(&["sort", "tidy", "name"]) }),
        },
        Shape::Prompt | Shape::Entry => {
            let text = *chance.one_of(&["sort", "tidy", "name"]);
            match shape {
                Shape::Prompt if chance.percent(15) => json!({"input": text, "attachments": ["oracle.rs"]}),
                _ => json!({ "input": text }),
            }
        }
    }
}

/// Makes up a value that may fit or not.
pub(crate) fn any(shape: Shape, chance: &mut Chance) -> Value {
    if !chance.percent(10) {
        return valid(shape, chance);
    }
    match chance.below(5) {
        0 => json!({}),
        1 => json!({"path": 7, "n": "7", "task": [], "input": {}}),
        2 => json!({"path": "work/a", "n": 2.5, "task": "sort", "input": "sort", "more": true}),
        3 => json!({"path": "work/a", "mode": "loud"}),
        _ => json!({"n": null, "task": null, "input": null}),
    }
}

/// An argument text of a model, with what it must be read as; nothing where it must not be read.
pub(crate) fn spelled(value: &Value, chance: &mut Chance) -> (String, Option<Value>) {
    let text = value.to_string();
    let read = Some(value.clone());
    match chance.below(40) {
        0 => (String::new(), Some(json!({}))),
        1 => ("null".to_owned(), Some(json!({}))),
        2 => (format!("```json\n{text}\n```"), read),
        3 => (Value::String(text).to_string(), read),
        4 | 5 => (serde_json::to_string_pretty(value).unwrap_or_default(), read),
        6 => (cut(&text, chance), None),
        7 => (r#"{"path": "work/a", "path": "danger/d"}"#.to_owned(), None),
        8 => (format!("{text} and more"), None),
        9 => (format!("[{text}]"), None),
        10 => (text.replace('"', "'").replace("{}", "{'"), None),
        _ => (text, read),
    }
}

fn cut(text: &str, chance: &mut Chance) -> String {
    let end = chance.between(1, text.len() - 1);
    text[..text.floor_char_boundary(end).max(1)].to_owned()
}
