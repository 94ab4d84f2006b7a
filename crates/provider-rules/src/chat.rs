//! Chat Completions: what all hosts have in common, and which rules belong to which host.

use serde_json::Value;

use crate::json::{is_set, items, text};
use crate::refusal::Check;
use crate::{
    Account, ProviderRefusal, ProviderRequest, deepseek, groq, local, mistral, openai, openrouter, xai,
};

pub(crate) fn check(request: &ProviderRequest<'_>, account: &Account) -> Check {
    let messages = items(request.body, "messages");
    match request.provider {
        // It has an order of its own, with its own errors.
        "mistral" => return mistral::check(request, account),
        "xai" => check_common(messages, account)
            .map_err(|error| ProviderRefusal::xai(error.rule, error.message()))?,
        _ => check_common(messages, account)?,
    }
    match request.provider {
        "openai" | "openai-chat" | "azure" => openai::check_chat(request, account),
        "deepseek" => deepseek::check(request, account),
        "xai" => xai::check(request),
        "groq" => groq::check(request),
        "openrouter" => openrouter::check(request),
        "llamacpp" | "ollama" => local::check_template(request, account),
        "vllm" => local::check_vllm(request),
        _ => Ok(()),
    }
}

fn check_common(messages: &[Value], account: &Account) -> Check {
    if messages.is_empty() {
        let message = "Invalid 'messages': empty array. Expected an array with minimum length 1, but got an empty array instead.";
        return Err(ProviderRefusal::openai("chat.empty", "messages", "empty_array", message));
    }
    for (index, message) in messages.iter().enumerate() {
        match text(message, "role") {
            "assistant" => check_assistant(messages, index)?,
            "tool" if account.optional.chat_orphan_tool_message => check_orphan(messages, index)?,
            "system" | "developer" | "user" | "tool" | "function" => {}
            role => return Err(wrong_role(index, role)),
        }
    }
    Ok(())
}

/// The messages after one with calls are the results, one for each, in any order.
fn check_assistant(messages: &[Value], index: usize) -> Check {
    let message = &messages[index];
    let calls: Vec<&str> = items(message, "tool_calls").iter().map(|call| text(call, "id")).collect();
    if calls.is_empty() {
        return check_has_content(message, index);
    }
    let results: Vec<&str> = results_after(messages, index).collect();
    let open: Vec<&str> = calls.into_iter().filter(|id| !results.contains(id)).collect();
    match open.is_empty() {
        true => Ok(()),
        false => Err(ProviderRefusal::openai(
            "chat.call_without_result",
            format!("messages.[{}].role", index + 1 + results.len()),
            "",
            format!(
                "An assistant message with 'tool_calls' must be followed by tool messages responding to each \
                 'tool_call_id'. The following tool_call_ids did not have response messages: {}",
                open.join(", ")
            ),
        )),
    }
}

fn results_after(messages: &[Value], index: usize) -> impl Iterator<Item = &str> {
    let tools = messages[index + 1..].iter().take_while(|message| message["role"] == "tool");
    tools.map(|message| text(message, "tool_call_id"))
}

fn check_has_content(message: &Value, index: usize) -> Check {
    let content = &message["content"];
    let is_missing = content.is_null() || content.as_array().is_some_and(Vec::is_empty);
    let has_other = ["refusal", "audio", "function_call"].iter().any(|key| is_set(&message[*key]));
    match is_missing && !has_other {
        true => Err(ProviderRefusal::openai(
            "chat.assistant_without_content",
            format!("messages.[{index}].content"),
            "",
            "Invalid value for 'content': expected a string, got null.",
        )),
        false => Ok(()),
    }
}

fn check_orphan(messages: &[Value], index: usize) -> Check {
    let id = text(&messages[index], "tool_call_id");
    let caller = messages[..index].iter().rfind(|message| message["role"] != "tool");
    let is_called =
        caller.is_some_and(|caller| items(caller, "tool_calls").iter().any(|call| call["id"] == id));
    match is_called {
        true => Ok(()),
        false => Err(ProviderRefusal::openai(
            "chat.result_without_call",
            format!("messages.[{index}].role"),
            "",
            "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with 'tool_calls'.",
        )),
    }
}

fn wrong_role(index: usize, role: &str) -> ProviderRefusal {
    ProviderRefusal::openai(
        "chat.role",
        format!("messages[{index}].role"),
        "invalid_value",
        format!(
            "Invalid value: '{role}'. Supported values are: 'system', 'assistant', 'user', 'function', 'tool', and \
             'developer'."
        ),
    )
}
