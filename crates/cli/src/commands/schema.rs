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

/// Prints a schema.
pub(crate) fn schema(arguments: &SchemaArguments) -> Result<Exit, CommandError> {
    let schema = match arguments.which {
        Some(SchemaKind::Manifest) => manifest_schema(),
        Some(SchemaKind::Agent) => header_schema(),
        Some(SchemaKind::Output) => RunObject::schema(),
        Some(SchemaKind::Config) => config_schema(),
        None => json!({
            "manifest": manifest_schema(),
            "agent": header_schema(),
            "config": config_schema(),
            "output": RunObject::schema(),
        }),
    };
    output::to_stdout(&serde_json::to_string_pretty(&schema).unwrap_or_default());
    Ok(Exit::Done)
}

fn config_schema() -> Value {
    let mut schema = schema_value_of::<Settings>();
    schema["$schema"] = "https://json-schema.org/draft/2020-12/schema".into();
    schema["title"] = "llm-do configuration".into();
    schema
}
