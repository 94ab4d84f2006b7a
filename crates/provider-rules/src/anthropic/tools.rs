//! Tool definitions and `tool_choice`.

use std::collections::HashSet;

use serde_json::Value;

use super::models::AnthropicModel;
use crate::ProviderRefusal;
use crate::json::{is_name, is_set, items, text};
use crate::refusal::Check;

/// Tools whose name is fixed by their type: the start of the type and the name.
const FIXED_NAMES: &[(&str, &str)] = &[
    ("web_search_", "web_search"),
    ("web_fetch_", "web_fetch"),
    ("code_execution_", "code_execution"),
    ("tool_search_tool_bm25_", "tool_search_tool_bm25"),
    ("tool_search_tool_regex_", "tool_search_tool_regex"),
    ("advisor_", "advisor"),
    ("bash_", "bash"),
    ("text_editor_20250728", "str_replace_based_edit_tool"),
    ("text_editor_20250124", "str_replace_editor"),
    ("memory_", "memory"),
    ("computer_", "computer"),
];
/// Versions of server tools that need a recent model.
const RECENT_TOOLS: &[(&str, (u32, u32))] =
    &[("web_search_20260209", (4, 6)), ("web_fetch_20260209", (4, 6)), ("code_execution_20260120", (4, 5))];
const MAX_NAME_LEN: usize = 128;
const MAX_PROPERTY_LEN: usize = 64;

pub(super) fn check(body: &Value, model: Option<&AnthropicModel>) -> Check {
    let tools = items(body, "tools");
    for (index, tool) in tools.iter().enumerate() {
        match tool["type"].as_str() {
            None | Some("custom") => check_custom(tool, index)?,
            Some("mcp_toolset") => {}
            Some(kind) => check_typed(tool, kind, index, model)?,
        }
        check_deferred(tool)?;
    }
    check_unique(tools)?;
    check_toolsets(body, tools)?;
    check_choice(body)?;
    match !tools.is_empty() && tools.iter().all(|tool| tool["defer_loading"] == true) {
        true => Err(ProviderRefusal::anthropic(
            "anthropic.all_deferred",
            "tools: at least one tool must not be deferred",
        )),
        false => Ok(()),
    }
}

fn check_custom(tool: &Value, index: usize) -> Check {
    let refuse = |rest: &str| {
        Err(ProviderRefusal::anthropic("anthropic.tool_definition", format!("tools.{index}.custom.{rest}")))
    };
    if !is_name(text(tool, "name"), MAX_NAME_LEN, "_-") {
        return refuse("name: String should match pattern '^[a-zA-Z0-9_-]{1,128}$'");
    }
    let schema = &tool["input_schema"];
    match schema {
        Value::Null => return refuse("input_schema: Field required"),
        Value::Object(_) => {}
        _ => return refuse("input_schema: Input does not match the expected shape."),
    }
    match &schema["type"] {
        Value::Null => return refuse("input_schema.type: Field required"),
        kind if kind != "object" => return refuse("input_schema.type: Input should be 'object'"),
        _ => {}
    }
    if ["oneOf", "allOf", "anyOf"].iter().any(|key| is_set(&schema[*key])) {
        return refuse("input_schema: input_schema does not support oneOf, allOf, or anyOf at the top level");
    }
    let names = schema["properties"].as_object().into_iter().flat_map(|properties| properties.keys());
    match names.into_iter().any(|name| !is_name(name, MAX_PROPERTY_LEN, "_.-")) {
        true => {
            refuse("input_schema.properties: Property keys should match pattern '^[a-zA-Z0-9_.-]{1,64}$'")
        }
        false => Ok(()),
    }
}

fn check_typed(tool: &Value, kind: &str, index: usize, model: Option<&AnthropicModel>) -> Check {
    let refuse = |message: String| {
        Err(ProviderRefusal::anthropic("anthropic.server_tool", format!("tools.{index}.{message}")))
    };
    let Some((_, name)) = FIXED_NAMES.iter().find(|(prefix, _)| kind.starts_with(prefix)) else {
        return refuse(format!("type: Input tag '{kind}' does not match any of the expected tags"));
    };
    if text(tool, "name") != *name {
        return refuse(format!("{kind}.name: Input should be '{name}'"));
    }
    if is_set(&tool["input_schema"]) {
        return refuse(format!("{kind}.input_schema: Extra inputs are not permitted"));
    }
    if is_set(&tool["allowed_domains"]) && is_set(&tool["blocked_domains"]) {
        return refuse(format!("{kind}: Only one of 'allowed_domains' and 'blocked_domains' can be set"));
    }
    let needed = RECENT_TOOLS.iter().find(|(recent, _)| *recent == kind);
    match needed.is_some_and(|(_, version)| model.is_some_and(|model| !model.is_since(*version))) {
        true => refuse(format!("{kind}: this tool is not supported for this model")),
        false => Ok(()),
    }
}

fn check_deferred(tool: &Value) -> Check {
    match tool["defer_loading"] == true && is_set(&tool["cache_control"]) {
        true => Err(ProviderRefusal::anthropic(
            "anthropic.cache_control",
            "Tools with defer_loading cannot use prompt caching",
        )),
        false => Ok(()),
    }
}

fn check_unique(tools: &[Value]) -> Check {
    let mut seen = HashSet::new();
    let mut names = tools.iter().filter_map(|tool| tool["name"].as_str());
    match names.any(|name| !seen.insert(name)) {
        true => {
            Err(ProviderRefusal::anthropic("anthropic.tool_definition", "tools: Tool names must be unique."))
        }
        false => Ok(()),
    }
}

/// Each MCP server has one toolset, and each toolset a server.
fn check_toolsets(body: &Value, tools: &[Value]) -> Check {
    let refuse = |message: String| Err(ProviderRefusal::anthropic("anthropic.mcp_toolset", message));
    let toolsets = tools.iter().filter(|tool| tool["type"] == "mcp_toolset");
    let mut toolsets: Vec<&str> = toolsets.map(|tool| text(tool, "mcp_server_name")).collect();
    for server in items(body, "mcp_servers").iter().map(|server| text(server, "name")) {
        match toolsets.iter().position(|name| *name == server) {
            Some(position) => drop(toolsets.remove(position)),
            None => {
                return refuse(format!("mcp_servers: MCP server '{server}' is not referenced by a toolset"));
            }
        }
    }
    match toolsets.first() {
        Some(name) => refuse(format!("tools: MCP toolset '{name}' has no server in 'mcp_servers'")),
        None => Ok(()),
    }
}

fn check_choice(body: &Value) -> Check {
    let choice = &body["tool_choice"];
    let refuse = |message: &str| Err(ProviderRefusal::anthropic("anthropic.tool_choice", message));
    match choice["type"].as_str() {
        Some("tool") if text(choice, "name").is_empty() => refuse("tool_choice.tool.name: Field required"),
        Some("none") if is_set(&choice["disable_parallel_tool_use"]) => {
            refuse("tool_choice.none.disable_parallel_tool_use: Extra inputs are not permitted")
        }
        Some("auto" | "any" | "tool" | "none") => Ok(()),
        None if choice.is_null() => Ok(()),
        _ => refuse(
            "tool_choice: Input tag does not match any of the expected tags: 'auto', 'any', 'tool', 'none'",
        ),
    }
}
