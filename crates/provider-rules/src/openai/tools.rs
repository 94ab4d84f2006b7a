//! Tool definitions of both endpoints.

use serde_json::Value;

use super::schema;
use crate::ProviderRefusal;
use crate::json::{is_name, is_set, items, text};
use crate::refusal::Check;

const MAX_TOOLS: usize = 128;
const MAX_NAME_LEN: usize = 64;

/// Checks the tools. `function` returns the definition in a tool of the type `function`, and `path` its parameter.
pub(super) fn check(
    body: &Value,
    limits: schema::StrictLimits,
    function: impl Fn(&Value) -> &Value,
    path: impl Fn(usize) -> String,
) -> Check {
    let tools = items(body, "tools");
    if tools.len() > MAX_TOOLS {
        let message = format!(
            "Invalid 'tools': array too long. Expected an array with maximum length 128, but got an array with length {} \
             instead.",
            tools.len()
        );
        return Err(ProviderRefusal::openai("openai.tool_count", "tools", "array_above_max_length", message));
    }
    for (index, tool) in tools.iter().enumerate().filter(|(_, tool)| tool["type"] == "function") {
        check_function(function(tool), &path(index), limits)?;
    }
    Ok(())
}

fn check_function(function: &Value, path: &str, limits: schema::StrictLimits) -> Check {
    let name = text(function, "name");
    if !is_name(name, MAX_NAME_LEN, "_-") {
        let message = format!(
            "Invalid '{path}.name': string does not match pattern. Expected a string that matches the pattern \
             '^[a-zA-Z0-9_-]+$' with maximum length 64."
        );
        return Err(ProviderRefusal::openai(
            "openai.tool_name",
            format!("{path}.name"),
            "invalid_value",
            message,
        ));
    }
    let parameters = &function["parameters"];
    let refuse = |message: String| {
        let message = format!("Invalid schema for function '{name}': {message}");
        let param = format!("{path}.parameters");
        Err(ProviderRefusal::openai("openai.function_schema", param, "invalid_function_parameters", message))
    };
    if is_set(parameters) && parameters["type"] != "object" && !is_set(&parameters["$ref"]) {
        return refuse(format!(
            "schema must be a JSON Schema of 'type: \"object\"', got 'type: {}'.",
            parameters["type"]
        ));
    }
    match function["strict"] == true {
        true => schema::check(parameters, limits).or_else(refuse),
        false => Ok(()),
    }
}

/// Checks an output format: the object with `name`, `schema` and `strict`.
pub(super) fn check_format(format: &Value, param: &str, limits: schema::StrictLimits) -> Check {
    let name = text(format, "name");
    if !is_name(name, MAX_NAME_LEN, "_-") {
        let message = format!("Invalid '{param}.name': string does not match pattern '^[a-zA-Z0-9_-]+$'.");
        return Err(ProviderRefusal::openai(
            "openai.format_name",
            format!("{param}.name"),
            "invalid_value",
            message,
        ));
    }
    if format["strict"] != true {
        return Ok(());
    }
    schema::check(&format["schema"], limits).map_err(|message| {
        let message = format!("Invalid schema for response_format '{name}': {message}");
        ProviderRefusal::openai("openai.format_schema", param, "invalid_json_schema", message)
    })
}
