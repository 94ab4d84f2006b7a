//! `llm-do schema`: the JSON Schemas of project files, of the configuration and of the output.

use llm_do::value::schema_value_of;
use llm_do_project::{header_schema, manifest_schema};
use serde_json::{Value, json};

use crate::arguments::{SchemaArguments, SchemaKind};
use crate::command_error::CommandError;
use crate::config::Settings;
use crate::exit::Exit;
use crate::output;
use crate::run_object::RunObject;

/// Where the schemas of the newest version are published: `docs/reference` of the repository.
const PUBLISHED: &str = "https://raw.githubusercontent.com/llm-do/llm-do/main/docs/reference";

/// Prints a schema, or all of them by name.
pub(crate) fn schema(arguments: &SchemaArguments) -> Result<Exit, CommandError> {
    let schema = match arguments.which {
        Some(kind) => schema_of(kind),
        None => json!({
            "manifest": schema_of(SchemaKind::Manifest),
            "agent": schema_of(SchemaKind::Agent),
            "config": schema_of(SchemaKind::Config),
            "output": schema_of(SchemaKind::Output),
        }),
    };
    output::to_stdout(&serde_json::to_string_pretty(&schema).unwrap_or_default());
    Ok(Exit::Done)
}

fn schema_of(kind: SchemaKind) -> Value {
    match kind {
        SchemaKind::Manifest => published("manifest", "llm-do project", manifest_schema()),
        SchemaKind::Agent => published("agent", "llm-do agent", header_schema()),
        SchemaKind::Config => published("config", "llm-do configuration", schema_value_of::<Settings>()),
        SchemaKind::Output => published("output", "llm-do output", RunObject::schema()),
    }
}

/// Puts before a schema what an editor or validator finds it by.
fn published(name: &str, title: &str, schema: Value) -> Value {
    let mut published = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": format!("{PUBLISHED}/{name}.schema.json"),
        "title": title,
    });
    if let (Value::Object(published), Value::Object(schema)) = (&mut published, schema) {
        published.extend(schema.into_iter().filter(|(key, _)| !matches!(key.as_str(), "$schema" | "title")));
    }
    published
}
