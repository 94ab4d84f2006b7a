//! `llm-do schema`: the JSON Schemas of project files, for editors, and of the output.

use llm_do::{header_schema, manifest_schema};
use serde_json::json;

use crate::arguments::{SchemaArguments, SchemaKind};
use crate::exit::Exit;
use crate::output;
use crate::problem::Problem;
use crate::run_object::RunObject;

/// Prints a schema.
pub(crate) fn schema(arguments: &SchemaArguments) -> Result<Exit, Problem> {
    let schema = match arguments.which {
        Some(SchemaKind::Manifest) => manifest_schema(),
        Some(SchemaKind::Agent) => header_schema(),
        Some(SchemaKind::Output) => RunObject::schema(),
        None => json!({
            "manifest": manifest_schema(),
            "agent": header_schema(),
            "output": RunObject::schema(),
        }),
    };
    output::to_stdout(&serde_json::to_string_pretty(&schema).unwrap_or_default());
    Ok(Exit::Done)
}
