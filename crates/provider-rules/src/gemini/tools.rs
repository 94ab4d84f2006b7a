//! Function declarations, server tools and `toolConfig`.

use serde_json::Value;

use super::models::GeminiModel;
use super::schema;
use crate::ProviderRefusal;
use crate::json::{is_set, items, text};
use crate::refusal::Check;

const MAX_NAME_LEN: usize = 128;
const MODES: &[&str] = &["MODE_UNSPECIFIED", "AUTO", "ANY", "NONE", "VALIDATED"];
const SERVER_TOOLS: &[&str] = &[
    "googleSearch",
    "urlContext",
    "codeExecution",
    "fileSearch",
    "googleMaps",
    "googleSearchRetrieval",
    "computerUse",
];

pub(super) fn check(body: &Value, name: &str, model: Option<&GeminiModel>) -> Check {
    let tools = items(body, "tools");
    let functions: Vec<&Value> = tools.iter().flat_map(|tool| items(tool, "functionDeclarations")).collect();
    for (index, function) in functions.iter().enumerate() {
        check_function(function, index)?;
    }
    if !functions.is_empty() && name.contains("image") {
        return Err(ProviderRefusal::gemini(
            "gemini.functions",
            format!("Function calling is not enabled for models/{name}"),
        ));
    }
    check_config(&body["toolConfig"], functions.is_empty())?;
    let has_server_tools = tools.iter().any(|tool| SERVER_TOOLS.iter().any(|key| is_set(&tool[*key])));
    check_mix(&body["toolConfig"], has_server_tools && !functions.is_empty(), model)
}

fn check_function(function: &Value, index: usize) -> Check {
    let path = format!("tools[0].function_declarations[{index}]");
    let name = text(function, "name");
    let starts = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || "_.:-".contains(c);
    if !starts || name.len() > MAX_NAME_LEN || !name.chars().all(is_allowed) {
        return Err(ProviderRefusal::gemini(
            "gemini.function_name",
            format!(
                "* GenerateContentRequest.{path}.name: Invalid function name. Must start with a letter or an underscore. \
                 Must be alphanumeric, underscores, dots, colons or dashes, with a maximum length of {MAX_NAME_LEN}."
            ),
        ));
    }
    for (openapi, json_schema) in [("parameters", "parametersJsonSchema"), ("response", "responseJsonSchema")]
    {
        if is_set(&function[openapi]) && is_set(&function[json_schema]) {
            let message = format!("{path}: only one of {openapi} and {json_schema} can be set");
            return Err(ProviderRefusal::gemini("gemini.both_schemas", message));
        }
    }
    if is_set(&function["parameters"]) {
        schema::check(&function["parameters"], &format!("{path}.parameters"))?;
    }
    check_root(function, &path)
}

fn check_root(function: &Value, path: &str) -> Check {
    for key in ["parameters", "parametersJsonSchema"] {
        let kind = function[key]["type"].as_str();
        if kind.is_some_and(|kind| !kind.eq_ignore_ascii_case("object")) {
            let message =
                format!("* GenerateContentRequest.{path}.{key}.type: schema should be of type OBJECT");
            return Err(ProviderRefusal::gemini("gemini.schema", message));
        }
    }
    Ok(())
}

fn check_config(config: &Value, lacks_functions: bool) -> Check {
    let calling = &config["functionCallingConfig"];
    let refuse = |message: &str| Err(ProviderRefusal::gemini("gemini.tool_config", message));
    if !is_set(calling) {
        return Ok(());
    }
    if lacks_functions {
        return refuse("Function calling config is set without function_declarations.");
    }
    let mode = calling["mode"].as_str().map(str::to_uppercase);
    if mode.as_deref().is_some_and(|mode| !MODES.contains(&mode)) {
        return refuse("Invalid value at 'tool_config.function_calling_config.mode'");
    }
    let is_restricting = matches!(mode.as_deref(), Some("ANY" | "VALIDATED"));
    match !items(calling, "allowedFunctionNames").is_empty() && !is_restricting {
        true => refuse(
            "Allowed function names should be set only when function calling mode is ANY or VALIDATED.",
        ),
        false => Ok(()),
    }
}

/// Functions beside server tools: from Gemini 3 on, and then only with a flag.
fn check_mix(config: &Value, is_mixed: bool, model: Option<&GeminiModel>) -> Check {
    let Some(model) = model else { return Ok(()) };
    let has_flag = config["includeServerSideToolInvocations"] == true;
    let refuse = |message: &str| Err(ProviderRefusal::gemini("gemini.mixed_tools", message));
    match model.is_since_3() {
        false if has_flag => refuse("Tool call context circulation is not enabled."),
        false if is_mixed => {
            refuse("Built-in tools and function calling cannot be combined in the same request.")
        }
        true if is_mixed && !has_flag => refuse(
            "Please enable tool_config.include_server_side_tool_invocations to use built-in tools with function calling.",
        ),
        _ => Ok(()),
    }
}
