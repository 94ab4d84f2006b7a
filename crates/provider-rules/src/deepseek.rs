//! DeepSeek's Chat Completions.

use serde_json::Value;

use crate::chat_body::{forces_tool, parts};
use crate::json::items;
use crate::refusal::Check;
use crate::{Account, ProviderRefusal, ProviderRequest, Reasoning};

pub(crate) fn check(request: &ProviderRequest<'_>, account: &Account) -> Check {
    let body = request.body;
    check_text_only(body)?;
    if thinks(request.model(), body) {
        check_thinking(body)?;
    }
    match account.optional.deepseek_json_schema && body["response_format"]["type"] == "json_schema" {
        true => Err(refusal("deepseek.json_schema", "This response_format type is unavailable now")),
        false => Ok(()),
    }
}

fn refusal(rule: &'static str, message: impl Into<String>) -> ProviderRefusal {
    ProviderRefusal::openai(rule, "", "invalid_request_error", message)
}

fn check_text_only(body: &Value) -> Check {
    let kinds = items(body, "messages").iter().flat_map(parts).filter_map(|part| part["type"].as_str());
    match kinds.into_iter().find(|kind| *kind != "text") {
        Some(kind) => Err(refusal(
            "deepseek.media",
            format!(
                "Failed to deserialize the JSON body into the target type: messages: unknown variant `{kind}`, expected \
                 `text`"
            ),
        )),
        None => Ok(()),
    }
}

/// Returns whether a request makes the model think: V4 and newer do unless it is switched off.
fn thinks(model: &str, body: &Value) -> bool {
    let version =
        model.strip_prefix("deepseek-v").and_then(|rest| rest.split(['-', '.']).next()?.parse().ok());
    version.is_some_and(|version: u32| version >= 4) && body["thinking"]["type"] != "disabled"
}

/// Returns whether the model thinks before it answers.
pub(crate) fn reasoning(request: &ProviderRequest<'_>) -> Reasoning {
    if thinks(request.model(), request.body) { Reasoning::Always } else { Reasoning::Off }
}

fn check_thinking(body: &Value) -> Check {
    if forces_tool(body) {
        return Err(refusal(
            "deepseek.forced_tool_choice",
            "Thinking mode does not support this tool_choice",
        ));
    }
    let lacks_reasoning =
        |message: &Value| message["role"] == "assistant" && !message["reasoning_content"].is_string();
    match items(body, "messages").iter().any(lacks_reasoning) {
        true => Err(refusal(
            "deepseek.reasoning_content",
            "The `reasoning_content` in the thinking mode must be passed back to the API.",
        )),
        false => Ok(()),
    }
}
