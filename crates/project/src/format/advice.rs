//! What to do about a value that does not fit its schema.

use llm_do_core::{SchemaProblem, misspelled};
use serde_json::{Map, Value};

use crate::document::{self, Language};
use crate::format::schema::{Format, python_hint};

/// How many schemas may lie between a key and its properties: one may name itself.
const MAX_FORMS: usize = 4;

/// What to do about a problem.
pub(crate) enum Advice {
    /// A hint as it is shown.
    Text(String),
    /// Another value for a key, which is shown as it is written where the value came from.
    Write {
        /// The key, with dots between its parts.
        key: String,
        /// The value.
        value: Value,
    },
}

impl Advice {
    /// Returns the hint for a value of a file, or of a `--set` of the command line.
    pub(crate) fn into_text(self, is_override: bool) -> String {
        match self {
            Self::Text(text) => text,
            Self::Write { key, value } if is_override => {
                format!("a value is JSON, or else text: write `--set '{key}={value}'`")
            }
            Self::Write { key, value } => {
                let last = key.rsplit('.').next().unwrap_or(&key);
                format!("write `{last}: {}`", flow(&value))
            }
        }
    }
}

/// Returns what can be said about a problem of any document.
pub(crate) fn about<T: Format>(problem: &SchemaProblem, document: &Value) -> Option<Advice> {
    let key = problem.pointer.strip_prefix('/')?.replace('/', ".");
    if problem.message.starts_with("unknown field") {
        // What replaces a key of the Python programs is known for certain.
        return nested_key(T::schema()?.source(), &key)
            .filter(|_| python_hint(&problem.pointer).is_none())
            .map(|meant| Advice::Text(format!("did you mean `{meant}`?")));
    }
    let written = document.pointer(&problem.pointer)?.as_str()?;
    if let Some(value) = flow_value(written) {
        return Some(Advice::Write { key, value });
    }
    let wants_list = problem.message.starts_with("expected array, got");
    wants_list.then(|| Advice::Write { key, value: Value::from(vec![written]) })
}

/// Reads a text that was meant as a mapping or a list of YAML.
fn flow_value(written: &str) -> Option<Value> {
    let is_flow = written.starts_with(['{', '[']);
    let node = document::read(written, Language::Yaml).ok().filter(|_| is_flow)?;
    let value = node.to_value();
    (value.is_object() || value.is_array()).then_some(value)
}

/// Returns the key below another one that was written at the top, as `model_settings.temperature`. A key of the top
/// that is as near goes before.
fn nested_key(schema: &Value, written: &str) -> Option<String> {
    let top = schema.get("properties")?.as_object()?;
    let nested: Vec<(&str, &str)> = top
        .iter()
        .flat_map(|(key, value)| {
            properties(schema, value, MAX_FORMS).into_iter().map(move |name| (key.as_str(), name))
        })
        .collect();
    let names = top.keys().map(String::as_str).chain(nested.iter().map(|(_, name)| *name));
    let near = misspelled(written, names).filter(|near| !top.contains_key(*near))?;
    let (key, _) = nested.iter().find(|(_, name)| *name == near)?;
    Some(format!("{key}.{near}"))
}

/// The keys of a schema, also if it is named elsewhere or is one of several.
fn properties<'s>(root: &'s Value, schema: &'s Value, depth: usize) -> Vec<&'s str> {
    let Some(below) = depth.checked_sub(1) else { return Vec::new() };
    let named = schema["$ref"].as_str().and_then(|name| root.pointer(name.strip_prefix('#')?));
    let forms = ["anyOf", "oneOf", "allOf"].into_iter().filter_map(|key| schema[key].as_array()).flatten();
    let of_forms = forms.chain(named).flat_map(|form| properties(root, form, below));
    let own = schema["properties"].as_object().into_iter().flat_map(Map::keys).map(String::as_str);
    own.chain(of_forms).collect()
}

/// Writes a value as it can be written on one line of YAML.
fn flow(value: &Value) -> String {
    match value {
        Value::String(text) if is_plain(text) => text.clone(),
        Value::Array(items) => format!("[{}]", items.iter().map(flow).collect::<Vec<_>>().join(", ")),
        Value::Object(fields) => {
            let fields: Vec<String> =
                fields.iter().map(|(key, value)| format!("{key}: {}", flow(value))).collect();
            format!("{{{}}}", fields.join(", "))
        }
        other => other.to_string(),
    }
}

/// Returns whether YAML reads a text as that text without quotes.
fn is_plain(text: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '/');
    text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text.chars().all(is_part)
        && !["true", "false", "null", "yes", "no", "on", "off"].contains(&text.to_lowercase().as_str())
}
