//! The items of `input`: calls and outputs, reasoning and what it belongs to, ids.

use std::collections::HashSet;

use serde_json::Value;

use super::super::issued::{Follower, IssuedReasoning, StoredResponse};
use crate::json::{is_name, is_set, items, text};
use crate::refusal::Check;
use crate::{Account, ProviderRefusal, ProviderRequest};

const MAX_CALL_ID_LEN: usize = 64;
const MAX_NAME_LEN: usize = 128;
const MAX_NAMESPACE_LEN: usize = 64;
const MAX_OUTPUT_LEN: usize = 10_485_760;
/// The prefix of the ids of each type of item.
const PREFIXES: &[(&str, &str)] = &[("function_call", "fc"), ("reasoning", "rs"), ("message", "msg")];

pub(super) fn check(request: &ProviderRequest<'_>, account: &Account) -> Check {
    let body = request.body;
    let input = items(body, "input");
    let stored = body["previous_response_id"].as_str().and_then(|id| account.responses.stored.get(id));
    let continues = stored.is_some() || is_set(&body["conversation"]);
    if input.is_empty() && text(body, "input").is_empty() && !continues {
        return Err(refusal(
            "responses.empty",
            "One of \"input\" or \"previous_response_id\" or 'prompt' must be provided.",
        ));
    }
    for item in input {
        check_item(item)?;
    }
    check_unique_ids(input, stored)?;
    check_pairs(input, stored, is_set(&body["conversation"]))?;
    for index in 0..input.len() {
        match item_type(&input[index]) {
            "reasoning" => check_reasoning(input, index, &account.responses)?,
            _ => check_reasoning_before(input, index, &account.responses)?,
        }
    }
    if request.provider == "deepseek" { check_grouped(input) } else { Ok(()) }
}

fn refusal(rule: &'static str, message: impl Into<String>) -> ProviderRefusal {
    ProviderRefusal::openai(rule, "input", "", message)
}

/// A message may leave its type out.
fn item_type(item: &Value) -> &str {
    match item["type"].as_str() {
        Some(kind) => kind,
        None if is_set(&item["role"]) => "message",
        None => "",
    }
}

fn check_item(item: &Value) -> Check {
    let kind = item_type(item);
    let prefix = PREFIXES.iter().find(|(of, _)| *of == kind).map(|(_, prefix)| *prefix);
    if let (Some(id), Some(prefix)) = (item["id"].as_str(), prefix)
        && !id.starts_with(prefix)
    {
        let message = format!("Invalid 'input[].id': '{id}'. Expected an ID that begins with '{prefix}'.");
        return Err(refusal("responses.id_prefix", message));
    }
    match kind {
        "function_call" | "function_call_output" => check_call_item(item, kind),
        "message" => check_content(items(item, "content")),
        _ => Ok(()),
    }
}

fn check_call_item(item: &Value, kind: &str) -> Check {
    let refuse = |message: String| Err(refusal("responses.call_item", message));
    let call_id = text(item, "call_id");
    if !(1..=MAX_CALL_ID_LEN).contains(&call_id.len()) {
        return refuse(format!(
            "Invalid 'input[].call_id': string too long. Expected a string with maximum length 64, but got a string with \
             length {} instead.",
            call_id.len()
        ));
    }
    if kind == "function_call" && !(1..=MAX_NAME_LEN).contains(&text(item, "name").len()) {
        return refuse("Invalid 'input[].name': expected a string of 1 to 128 characters.".to_owned());
    }
    if item["namespace"].as_str().is_some_and(|name| !is_name(name, MAX_NAMESPACE_LEN, "_-")) {
        return refuse(
            "Invalid 'input[].namespace': string does not match pattern '^[a-zA-Z0-9_-]+$'.".to_owned(),
        );
    }
    if text(item, "output").len() > MAX_OUTPUT_LEN {
        return refuse("Invalid 'input[].output': string too long.".to_owned());
    }
    check_content(items(item, "output"))
}

/// Files of sound and video are refused.
fn check_content(parts: &[Value]) -> Check {
    let mut kinds = parts.iter().filter(|part| part["type"] == "input_file").filter_map(|part| {
        text(part, "file_data").strip_prefix("data:").and_then(|data| data.split(';').next())
    });
    match kinds.find(|kind| kind.starts_with("audio/") || kind.starts_with("video/")) {
        Some(kind) => Err(ProviderRefusal::openai(
            "responses.file",
            "input",
            "unsupported_file",
            format!("Invalid file data: 'file_data'. Got unsupported MIME type '{kind}'."),
        )),
        None => Ok(()),
    }
}

fn check_unique_ids(input: &[Value], stored: Option<&StoredResponse>) -> Check {
    let mut seen: HashSet<&str> =
        stored.into_iter().flat_map(|stored| stored.items.iter().map(String::as_str)).collect();
    let ids = input
        .iter()
        .filter(|item| item_type(item) != "item_reference")
        .filter_map(|item| item["id"].as_str());
    match ids.into_iter().find(|id| !seen.insert(id)) {
        Some(id) => Err(refusal(
            "responses.duplicate_item",
            format!(
                "Duplicate item found with id {id}. Remove duplicate items from your input and try again."
            ),
        )),
        None => Ok(()),
    }
}

/// Every call has an output after it, and every output a call before it.
fn check_pairs(input: &[Value], stored: Option<&StoredResponse>, in_conversation: bool) -> Check {
    let mut called: HashSet<&str> =
        stored.into_iter().flat_map(|stored| stored.calls.iter().map(String::as_str)).collect();
    let mut answered = HashSet::new();
    for item in input {
        let id = text(item, "call_id");
        match item_type(item) {
            "function_call" => drop(called.insert(id)),
            "function_call_output" if !called.contains(id) && !in_conversation => {
                let message = format!("No tool call found for function call output with call_id {id}.");
                return Err(refusal("responses.output_without_call", message));
            }
            "function_call_output" => drop(answered.insert(id)),
            _ => {}
        }
    }
    match called.iter().find(|id| !answered.contains(*id)) {
        Some(id) => Err(refusal(
            "responses.call_without_output",
            format!("No tool output found for function call {id}."),
        )),
        None => Ok(()),
    }
}

/// A reasoning item can be verified, and is followed by the item that it was issued with.
fn check_reasoning(input: &[Value], index: usize, issued: &IssuedReasoning) -> Check {
    let item = &input[index];
    let (id, encrypted) = (text(item, "id"), text(item, "encrypted_content"));
    if !encrypted.is_empty() && !issued.encrypted.contains(encrypted) {
        return Err(ProviderRefusal::openai(
            "responses.encrypted_content",
            "",
            "invalid_encrypted_content",
            format!("The encrypted content for item {id} could not be verified."),
        ));
    }
    if id.is_empty() && encrypted.is_empty() {
        return Err(refusal("responses.reasoning_item", "Missing required parameter: 'input[].id'."));
    }
    let own_id = issued.reasoning_ids.get(encrypted).map_or(id, String::as_str);
    let next = input[index + 1..].iter().find(|item| item_type(item) != "reasoning");
    let is_followed = match (issued.followers.get(own_id), next) {
        (_, None) => false,
        (Some(Some(follower)), Some(next)) => is_follower(next, follower),
        (Some(None), Some(_)) => false,
        (None, Some(next)) => is_output(next),
    };
    match is_followed {
        true => Ok(()),
        false => Err(refusal(
            "responses.reasoning_without_follower",
            format!("Item '{own_id}' of type 'reasoning' was provided without its required following item."),
        )),
    }
}

fn is_follower(item: &Value, follower: &Follower) -> bool {
    let same = |sent: &str, issued: &str| sent.is_empty() || issued.is_empty() || sent == issued;
    item_type(item) == follower.kind
        && is_output(item)
        && same(text(item, "id"), &follower.id)
        && same(text(item, "call_id"), &follower.call_id)
}

/// Returns whether a model can have made an item.
fn is_output(item: &Value) -> bool {
    match item_type(item) {
        "message" => item["role"] == "assistant",
        kind => !kind.ends_with("_output"),
    }
}

/// An item that is sent with its id needs the reasoning item that it was issued with.
fn check_reasoning_before(input: &[Value], index: usize, issued: &IssuedReasoning) -> Check {
    let id = text(&input[index], "id");
    let Some(needed) = issued.reasoning_before.get(id) else { return Ok(()) };
    let is_needed = |item: &Value| {
        text(item, "id") == needed
            || issued.reasoning_ids.get(text(item, "encrypted_content")) == Some(needed)
    };
    match input[..index].iter().any(is_needed) {
        true => Ok(()),
        false => Err(refusal(
            "responses.item_without_reasoning",
            format!(
                "Item '{id}' of type '{}' was provided without its required 'reasoning' item: '{needed}'.",
                item_type(&input[index])
            ),
        )),
    }
}

/// DeepSeek: nothing of the assistant between the calls of a turn.
fn check_grouped(input: &[Value]) -> Check {
    let is_call = |item: &Value| item_type(item) == "function_call";
    for (index, item) in input.iter().enumerate().filter(|(_, item)| is_call(item)) {
        let next = input.get(index + 1).map(item_type).unwrap_or_default();
        if !["function_call", "function_call_output"].contains(&next) {
            let message = format!("No tool output found for tool call {}", text(item, "call_id"));
            return Err(refusal("deepseek.interleaved_calls", message));
        }
    }
    Ok(())
}
