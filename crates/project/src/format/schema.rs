//! Checks documents against the schema of their type, and reads them into it.

use std::sync::OnceLock;

use llm_do_core::{Schema, SchemaProblem};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::document::{Node, NodeContent};
use crate::format::advice::{self, Advice};
use crate::format::front_matter::Header;
use crate::format::manifest::Manifest;
use crate::format::model_settings;
use crate::python_names::{PythonName, PythonNameKind, find_python_name};
use crate::source::{SourceFile, Span};

/// A kind of document: its type and the schema made from it.
pub(crate) trait Format: DeserializeOwned + JsonSchema {
    /// What is wrong with a document that is not a mapping, and what to do about it.
    const NOT_A_MAPPING: (&'static str, &'static str);

    /// The schema, made once.
    fn schema() -> Option<&'static Schema>;

    /// What to do about a value that does not fit the schema, where more can be said than the schema knows.
    fn hint(problem: &SchemaProblem, document: &Value) -> Option<Advice>;
}

impl Format for Manifest {
    const NOT_A_MAPPING: (&'static str, &'static str) =
        ("the manifest must be a mapping (in JSON an object)", "write keys such as `version` and `entry`");

    fn schema() -> Option<&'static Schema> {
        static SCHEMA: OnceLock<Option<Schema>> = OnceLock::new();
        SCHEMA.get_or_init(|| Schema::for_type::<Self>().ok()).as_ref()
    }

    fn hint(problem: &SchemaProblem, document: &Value) -> Option<Advice> {
        if problem.message.starts_with("missing required field `version`") {
            return Some(Advice::Write { key: "version".to_owned(), value: json!(1) });
        }
        let entry = document.get("entry").filter(|_| problem.pointer == "/entry")?.as_str()?;
        // The text of a mapping is not a name.
        if entry.starts_with('{') {
            return None;
        }
        let key = if entry.contains(".py:") { "function" } else { "agent" };
        Some(Advice::Write { key: "entry".to_owned(), value: json!({key: entry}) })
    }
}

impl Format for Header {
    const NOT_A_MAPPING: (&'static str, &'static str) =
        ("front matter must be a mapping", "write one `key: value` per line");

    fn schema() -> Option<&'static Schema> {
        static SCHEMA: OnceLock<Option<Schema>> = OnceLock::new();
        SCHEMA.get_or_init(|| Schema::for_type::<Self>().ok()).as_ref()
    }

    fn hint(problem: &SchemaProblem, document: &Value) -> Option<Advice> {
        model_settings::hint(&problem.pointer, document).map(Advice::Text)
    }
}

/// Returns the JSON Schema of manifests, for editors.
pub fn manifest_schema() -> Value {
    titled::<Manifest>("llm-do project")
}

/// Returns the JSON Schema of the header of agent files, for editors.
pub fn header_schema() -> Value {
    titled::<Header>("llm-do agent")
}

fn titled<T: Format>(title: &str) -> Value {
    let mut schema = T::schema().map(|schema| schema.source().clone()).unwrap_or_default();
    schema["$schema"] = "https://json-schema.org/draft/2020-12/schema".into();
    schema["title"] = title.into();
    schema
}

/// Checks a document and reads it, or reports everything that is wrong with it.
pub(crate) fn read<T: Format>(source: &SourceFile, node: &Node, out: &mut Diagnostics) -> Option<T> {
    if !matches!(node.content, NodeContent::Table(_)) {
        let (message, hint) = T::NOT_A_MAPPING;
        out.push(Diagnostic::error_at(source, &node.span, message).with_hint(hint));
        return None;
    }
    let value = node.to_value();
    let problems = T::schema().map(|schema| schema.problems(&value)).unwrap_or_default();
    for problem in &problems {
        let advice = T::hint(problem, &value).or_else(|| advice::about::<T>(problem, &value));
        out.push(diagnostic(source, node, problem, advice));
    }
    if !problems.is_empty() {
        return None;
    }
    serde_json::from_value(value)
        .map_err(|error| out.push(Diagnostic::error_at(source, &node.span, error.to_string())))
        .ok()
}

fn diagnostic(
    source: &SourceFile,
    node: &Node,
    problem: &SchemaProblem,
    advice: Option<Advice>,
) -> Diagnostic {
    let mut message =
        problem.message.replace("expected array", "expected list").replace("an array", "a list");
    message =
        message.replace("unknown field", "unknown key").replace("missing required field", "missing key");
    if !problem.field.is_empty() && !message.contains(&format!("`{}`", last(&problem.field))) {
        message = format!("`{}`: {message}", problem.field);
    }
    let is_unknown = problem.message.starts_with("unknown field");
    let (message, hint) = match message.split_once(", did you mean ") {
        Some((message, meant)) => (message.to_owned(), Some(format!("did you mean {meant}"))),
        None => (message, None),
    };
    let span = node.span_at_pointer(&problem.pointer);
    let diagnostic = Diagnostic::error_at(source, &span, message);
    let better = advice.map(|advice| advice.into_text(span.is_override()));
    let of_python = is_unknown.then(|| python_hint(&problem.pointer)).flatten();
    match better.or(of_python).or(hint) {
        Some(hint) => diagnostic.with_hint(hint),
        None => diagnostic,
    }
}

/// What replaces a key of the Python programs, by its JSON pointer in the document.
pub(super) fn python_hint(pointer: &str) -> Option<String> {
    let path = pointer.trim_start_matches('/').replace('/', ".");
    find_python_name(&path, &[PythonNameKind::Key]).map(PythonName::hint)
}

fn last(field: &str) -> &str {
    field.rsplit('.').next().unwrap_or(field)
}

impl Node {
    /// Returns the span of a JSON pointer: of the key if the value is a field, else of the value.
    fn span_at_pointer(&self, pointer: &str) -> Span {
        let mut node = self;
        let mut span = self.span.clone();
        for part in pointer.split('/').skip(1).map(|part| part.replace("~1", "/").replace("~0", "~")) {
            match &node.content {
                NodeContent::Table(fields) => {
                    let Some(field) = fields.iter().find(|field| field.name == part) else { break };
                    span = field.span.clone();
                    node = &field.value;
                }
                NodeContent::List(items) => {
                    let Some(item) = part.parse::<usize>().ok().and_then(|index| items.get(index)) else {
                        break;
                    };
                    span = item.span.clone();
                    node = item;
                }
                _ => break,
            }
        }
        span
    }
}
