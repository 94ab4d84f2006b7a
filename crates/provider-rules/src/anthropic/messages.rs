//! Roles, content and the pairing of calls and results.

use std::collections::HashSet;

use serde_json::Value;

use super::models::AnthropicModel;
use super::{blocks, has_format, is_type};
use crate::ProviderRefusal;
use crate::json::text;
use crate::refusal::Check;

/// Checks each message and its neighbors.
pub(super) fn check(messages: &[Value], model: Option<&AnthropicModel>, results_first: bool) -> Check {
    for (index, message) in messages.iter().enumerate() {
        check_role(messages, index, model)?;
        check_content(message, index, index + 1 == messages.len())?;
        check_results(messages, index)?;
        check_calls(messages, index)?;
        if results_first {
            check_results_first(message, index)?;
        }
    }
    check_unique_ids(messages)
}

fn check_role(messages: &[Value], index: usize, model: Option<&AnthropicModel>) -> Check {
    match text(&messages[index], "role") {
        "user" | "assistant" => Ok(()),
        "system" => check_system(messages, index, model),
        _ => Err(ProviderRefusal::anthropic(
            "anthropic.role",
            format!("messages.{index}.role: Input should be 'user' or 'assistant'"),
        )),
    }
}

/// A system message follows the user's (or a server tool's turn), and is the last or before the assistant's.
fn check_system(messages: &[Value], index: usize, model: Option<&AnthropicModel>) -> Check {
    let refuse = |message: String| Err(ProviderRefusal::anthropic("anthropic.system_role", message));
    if model.is_some_and(|model| !model.has_system_role) {
        return refuse("role 'system' is not supported on this model".to_owned());
    }
    let Some(before) = index.checked_sub(1).map(|index| &messages[index]) else {
        return refuse(
            "messages.0: use the top-level 'system' parameter for the initial system prompt".to_owned(),
        );
    };
    let follows_user = before["role"] == "user" || ends_with_server_tool(before);
    let is_followed = messages.get(index + 1).is_none_or(|after| after["role"] == "assistant");
    if !follows_user || !is_followed {
        return refuse(format!(
            "messages.{index}: a 'system' message must follow a 'user' message and precede an 'assistant' message"
        ));
    }
    match blocks(&messages[index]).iter().all(|block| is_type(block, "text")) {
        true => Ok(()),
        false => refuse(format!("messages.{index}: a 'system' message may only contain text")),
    }
}

fn check_content(message: &Value, index: usize, is_last: bool) -> Check {
    let refuse = |message: &str| Err(ProviderRefusal::anthropic("anthropic.empty_content", message));
    let is_empty = blocks(message).is_empty() && text(message, "content").is_empty();
    if is_empty && !(is_last && message["role"] == "assistant") {
        return refuse(&format!(
            "messages.{index}: all messages must have non-empty content except for the optional final assistant message"
        ));
    }
    let texts =
        blocks(message).iter().filter(|block| is_type(block, "text")).map(|block| text(block, "text"));
    let texts: Vec<&str> = texts.chain(message["content"].as_str().filter(|text| !text.is_empty())).collect();
    if texts.iter().any(|text| text.is_empty()) {
        return refuse("messages: text content blocks must be non-empty");
    }
    if texts.iter().any(|text| text.trim().is_empty()) {
        return refuse("messages: text content blocks must contain non-whitespace text");
    }
    let is_empty_result = |block: &Value| {
        is_type(block, "tool_result") && block["content"].as_array().is_some_and(Vec::is_empty)
    };
    match blocks(message).iter().position(is_empty_result) {
        Some(position) => {
            refuse(&format!("messages.{index}.content.{position}.tool_result.content: must not be empty"))
        }
        None => Ok(()),
    }
}

fn call_ids(message: &Value) -> Vec<&str> {
    blocks(message).iter().filter(|block| is_type(block, "tool_use")).map(|block| text(block, "id")).collect()
}

fn result_ids(message: &Value) -> Vec<&str> {
    let results = blocks(message).iter().filter(|block| is_type(block, "tool_result"));
    results.map(|block| text(block, "tool_use_id")).collect()
}

/// Every result of a message has its call in the message before.
fn check_results(messages: &[Value], index: usize) -> Check {
    let calls = index.checked_sub(1).map(|index| call_ids(&messages[index])).unwrap_or_default();
    let results = result_ids(&messages[index]);
    if let Some(id) = results.iter().find(|id| !calls.contains(id)) {
        let message = format!(
            "messages.{index}: unexpected `tool_use_id` found in `tool_result` blocks: {id}. Each `tool_result` block \
             must have a corresponding `tool_use` block in the previous message."
        );
        return Err(ProviderRefusal::anthropic("anthropic.result_without_call", message));
    }
    let mut seen = HashSet::new();
    match results.iter().find(|id| !seen.insert(**id)) {
        Some(id) => {
            let message = format!(
                "messages.{index}: each tool_use must have a single result. Found multiple `tool_result` blocks with \
                 id: {id}"
            );
            Err(ProviderRefusal::anthropic("anthropic.result_without_call", message))
        }
        None => Ok(()),
    }
}

/// Every call of a message has its result in the next message.
fn check_calls(messages: &[Value], index: usize) -> Check {
    let results = messages.get(index + 1).map(result_ids).unwrap_or_default();
    let open: Vec<&str> = call_ids(&messages[index]).into_iter().filter(|id| !results.contains(id)).collect();
    match open.is_empty() {
        true => Ok(()),
        false => Err(ProviderRefusal::anthropic(
            "anthropic.call_without_result",
            format!(
                "messages.{index}: `tool_use` ids were found without `tool_result` blocks immediately after: {}. Each \
                 `tool_use` block must have a corresponding `tool_result` block in the next message.",
                open.join(", ")
            ),
        )),
    }
}

fn check_results_first(message: &Value, index: usize) -> Check {
    let count = result_ids(message).len();
    match blocks(message)[..count].iter().all(|block| is_type(block, "tool_result")) {
        true => Ok(()),
        false => Err(ProviderRefusal::anthropic(
            "anthropic.results_first",
            format!("messages.{index}: `tool_result` blocks must come before other content"),
        )),
    }
}

fn check_unique_ids(messages: &[Value]) -> Check {
    let mut seen = HashSet::new();
    match messages.iter().flat_map(call_ids).find(|id| !seen.insert(*id)) {
        Some(_) => {
            Err(ProviderRefusal::anthropic("anthropic.unique_ids", "messages: `tool_use` ids must be unique"))
        }
        None => Ok(()),
    }
}

/// Only the last message can be a prefill.
pub(super) fn check_prefill(body: &Value, messages: &[Value], model: Option<&AnthropicModel>) -> Check {
    let Some(last) = messages.last().filter(|last| last["role"] == "assistant") else { return Ok(()) };
    if ends_with_server_tool(last) {
        return Ok(());
    }
    let refuse = |message: &str| Err(ProviderRefusal::anthropic("anthropic.prefill", message));
    if model.is_some_and(|model| !model.takes_prefill) {
        return refuse(
            "This model does not support assistant message prefill. The conversation must end with a user message.",
        );
    }
    if has_format(body) {
        return refuse("output_config.format: assistant message prefill is incompatible with output formats");
    }
    let end = match blocks(last).last() {
        Some(block) => text(block, "text"),
        None => text(last, "content"),
    };
    match end.ends_with(char::is_whitespace) {
        true => refuse("messages: final assistant content cannot end with trailing whitespace"),
        false => Ok(()),
    }
}

fn ends_with_server_tool(message: &Value) -> bool {
    blocks(message)
        .last()
        .is_some_and(|block| is_type(block, "server_tool_use") || is_type(block, "mcp_tool_use"))
}
