//! Mistral's Chat Completions.

use std::collections::HashSet;

use serde_json::{Value, json};

use crate::json::{is_name, is_set, items, text};
use crate::refusal::Check;
use crate::{Account, ProviderRefusal, ProviderRequest};

const CALL_ID_LEN: usize = 9;
const MAX_NAME_LEN: usize = 64;
/// Parameters that have other names here.
const UNKNOWN: &[&str] = &["seed", "max_completion_tokens"];

pub(crate) fn check(request: &ProviderRequest<'_>, account: &Account) -> Check {
    let body = request.body;
    let messages = items(body, "messages");
    if let Some(name) = UNKNOWN.iter().find(|name| is_set(&body[**name])) {
        return Err(unknown_field(name));
    }
    check_order(messages, account.optional.mistral_user_after_tool)?;
    check_last(messages)?;
    for (index, message) in messages.iter().enumerate().filter(|(_, message)| message["role"] == "assistant")
    {
        check_assistant(message, index + 1 == messages.len())?;
        check_results(messages, index)?;
    }
    check_unique_ids(messages)?;
    check_tools(body)?;
    check_effort(request)
}

fn order(message: impl Into<String>) -> ProviderRefusal {
    ProviderRefusal::mistral("mistral.order", "invalid_request_message_order", "3230", message)
}

fn unknown_field(name: &str) -> ProviderRefusal {
    let detail =
        json!([{"type": "extra_forbidden", "loc": ["body", name], "msg": "Extra inputs are not permitted"}]);
    ProviderRefusal {
        rule: "mistral.parameter",
        status: 422,
        body: json!({"object": "error", "detail": detail}),
    }
}

fn check_order(messages: &[Value], old_server: bool) -> Check {
    let roles: Vec<&str> = messages.iter().map(|message| text(message, "role")).collect();
    let Some(first) = roles.first() else { return Err(order("Conversation must have at least one message")) };
    if !["user", "system"].contains(first) {
        return Err(order(format!("Expected last role User or System as the first role but got {first}")));
    }
    for pair in roles.windows(2) {
        let allowed: &[&str] = match pair[0] {
            "system" => &["system", "user", "assistant"],
            "user" => &["user", "assistant", "system"],
            "assistant" => &["assistant", "user", "tool"],
            "tool" if old_server => &["tool", "assistant"],
            _ => &["tool", "assistant", "user"],
        };
        if !allowed.contains(&pair[1]) {
            return Err(order(format!("Unexpected role '{}' after role '{}'", pair[1], pair[0])));
        }
    }
    Ok(())
}

fn check_last(messages: &[Value]) -> Check {
    let Some(last) = messages.last() else { return Ok(()) };
    let is_prefix = |message: &Value| message["prefix"] == true;
    if messages[..messages.len() - 1].iter().any(is_prefix) {
        return Err(order("Only the last assistant message can be a prefix"));
    }
    match text(last, "role") {
        "user" | "tool" => Ok(()),
        "assistant" if is_prefix(last) => Ok(()),
        role => Err(order(format!(
            "Expected last role User or Tool (or Assistant with prefix True) for serving but got {role}"
        ))),
    }
}

fn check_assistant(message: &Value, is_last: bool) -> Check {
    let content = &message["content"];
    let has_content =
        !text(message, "content").is_empty() || content.as_array().is_some_and(|parts| !parts.is_empty());
    if !has_content && items(message, "tool_calls").is_empty() && !is_last {
        return Err(ProviderRefusal::mistral(
            "mistral.empty_assistant",
            "invalid_request_assistant_message",
            "3240",
            "Assistant message must have either content or tool_calls, but not none.",
        ));
    }
    match items(message, "tool_calls").iter().map(|call| text(call, "id")).find(|id| !is_call_id(id)) {
        Some(id) => Err(ProviderRefusal::mistral(
            "mistral.call_id",
            "invalid_function_call",
            "3280",
            format!("Tool call id was {id} but must be a-z, A-Z, 0-9, with a length of 9."),
        )),
        None => Ok(()),
    }
}

fn is_call_id(id: &str) -> bool {
    id.len() == CALL_ID_LEN && is_name(id, CALL_ID_LEN, "")
}

/// As many results follow as there are calls, with the same ids.
fn check_results(messages: &[Value], index: usize) -> Check {
    let calls: Vec<&str> =
        items(&messages[index], "tool_calls").iter().map(|call| text(call, "id")).collect();
    let after = messages[index + 1..].iter().take_while(|message| message["role"] == "tool");
    let results: Vec<&str> = after.map(|message| text(message, "tool_call_id")).collect();
    if calls.len() != results.len() {
        return Err(order("Not the same number of function calls and responses"));
    }
    match results.iter().find(|id| !calls.contains(id)) {
        Some(id) => Err(order(format!("Unexpected tool call id {id} in tool results"))),
        None => Ok(()),
    }
}

fn check_unique_ids(messages: &[Value]) -> Check {
    for message in messages {
        let mut seen = HashSet::new();
        let mut ids = items(message, "tool_calls").iter().map(|call| text(call, "id"));
        if let Some(id) = ids.find(|id| !seen.insert(*id)) {
            return Err(order(format!("Duplicate tool call id {id}")));
        }
    }
    Ok(())
}

fn check_tools(body: &Value) -> Check {
    let names = items(body, "tools").iter().filter(|tool| tool["type"] == "function");
    match names.map(|tool| text(&tool["function"], "name")).find(|name| !is_name(name, MAX_NAME_LEN, "_-")) {
        Some(name) => Err(ProviderRefusal::mistral(
            "mistral.tool_name",
            "invalid_tool",
            "3250",
            format!(
                "Function name was {name} but must be a-z, A-Z, 0-9, or contain underscores and dashes, with a maximum length of 64."
            ),
        )),
        None => Ok(()),
    }
}

fn check_effort(request: &ProviderRequest<'_>) -> Check {
    let Some(effort) = request.body["reasoning_effort"].as_str() else { return Ok(()) };
    let accepted: Option<&[&str]> = match reasons(request.model()) {
        Some(true) => Some(&["none", "high"]),
        Some(false) => Some(&[]),
        None => None,
    };
    match accepted.is_some_and(|accepted| !accepted.contains(&effort)) {
        true => Err(ProviderRefusal::mistral(
            "mistral.effort",
            "invalid_request_error",
            "3051",
            format!("reasoning_effort={effort} is not supported for this model"),
        )),
        false => Ok(()),
    }
}

/// Returns whether a model takes `reasoning_effort`, if its family is known.
fn reasons(model: &str) -> Option<bool> {
    let release = model.rsplit('-').next().unwrap_or_default();
    let is_latest = release == "latest";
    let is_since =
        |first: u32| release.len() == 4 && release.parse::<u32>().is_ok_and(|month| month >= first);
    if model.starts_with("mistral-small") {
        return Some(is_latest || is_since(2603));
    }
    if model.starts_with("mistral-medium") {
        return Some(is_latest || model.contains("3.5") || model.contains("3-5") || is_since(2604));
    }
    let others = ["mistral-large", "ministral", "codestral", "devstral", "pixtral", "open-mi", "magistral"];
    others.iter().any(|family| model.starts_with(family)).then_some(false)
}
