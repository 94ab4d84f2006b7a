//! Chat Completions at OpenAI and Azure.

use serde_json::Value;

use super::models::{self, OpenAiModel};
use super::{parameters, schema::StrictLimits, tools};
use crate::chat_body::parts;
use crate::json::{is_set, items, text};
use crate::refusal::Check;
use crate::{Account, ProviderRefusal, ProviderRequest};

const KNOWN: &[&str] = &[
    "model",
    "messages",
    "audio",
    "frequency_penalty",
    "function_call",
    "functions",
    "logit_bias",
    "logprobs",
    "max_completion_tokens",
    "max_tokens",
    "metadata",
    "modalities",
    "n",
    "parallel_tool_calls",
    "prediction",
    "presence_penalty",
    "prompt_cache_key",
    "prompt_cache_options",
    "prompt_cache_retention",
    "reasoning_effort",
    "response_format",
    "safety_identifier",
    "seed",
    "service_tier",
    "stop",
    "store",
    "stream",
    "stream_options",
    "temperature",
    "tool_choice",
    "tools",
    "top_logprobs",
    "top_p",
    "user",
    "verbosity",
    "web_search_options",
];
/// Models that know no JSON Schema.
const WITHOUT_JSON_SCHEMA: &[&str] = &["gpt-3.5", "gpt-4-", "gpt-4o-2024-05-13", "o1-mini", "o1-preview"];
const MAX_STOPS: usize = 4;

pub(crate) fn check(request: &ProviderRequest<'_>, account: &Account) -> Check {
    let (body, name) = (request.body, request.model());
    let (model, effort) = (models::find(name), body["reasoning_effort"].as_str());
    let limits = StrictLimits::for_model(name, account.optional.openai_schema_limits);
    if request.provider != "azure" {
        parameters::check_known(body, KNOWN)?;
    }
    check_messages(items(body, "messages"), request)?;
    parameters::check_effort(effort, "reasoning_effort", model)?;
    check_function_tools(body, name, model)?;
    check_max_tokens(body, model)?;
    check_stop(body, model)?;
    parameters::check_sampling(body, effort, model)?;
    parameters::check_ranges(body)?;
    parameters::check_metadata(body)?;
    check_search(body, name)?;
    check_format(body, name, limits)?;
    tools::check(body, limits, |tool| &tool["function"], |index| format!("tools[{index}].function"))?;
    if account.optional.openai_dependent_parameters { parameters::check_dependent(body) } else { Ok(()) }
}

fn check_messages(messages: &[Value], request: &ProviderRequest<'_>) -> Check {
    let model = request.model();
    for (index, message) in messages.iter().enumerate() {
        let role = text(message, "role");
        if model.starts_with("o1-mini") && matches!(role, "system" | "developer") {
            return Err(ProviderRefusal::openai(
                "openai.system_role",
                format!("messages[{index}].role"),
                "unsupported_value",
                format!(
                    "Unsupported value: 'messages[{index}].role' does not support '{role}' with this model."
                ),
            ));
        }
        for (position, part) in parts(message).iter().enumerate() {
            let param = format!("messages[{index}].content[{position}].type");
            check_part(part, role, request).map_err(|message| {
                ProviderRefusal::openai("openai.content_part", param, "invalid_value", message)
            })?;
        }
    }
    Ok(())
}

fn check_part(part: &Value, role: &str, request: &ProviderRequest<'_>) -> Result<(), String> {
    let kind = text(part, "type");
    let allowed: &[&str] = match role {
        "user" => &["text", "image_url", "input_audio", "file"],
        "assistant" => &["text", "refusal"],
        _ => &["text"],
    };
    if !allowed.contains(&kind) {
        return Err(format!("Invalid value: '{kind}'. Supported values are: '{}'.", allowed.join("', '")));
    }
    let is_deaf = !request.model().contains("audio") && models::find(request.model()).is_some();
    match kind {
        "input_audio" if is_deaf => {
            Err("Content blocks are expected to be either text or image_url type.".to_owned())
        }
        "file" if request.provider == "azure" => Err("Invalid value: 'file'.".to_owned()),
        "file" => check_file(&part["file"]),
        _ => Ok(()),
    }
}

fn check_file(file: &Value) -> Result<(), String> {
    if is_set(&file["file_id"]) {
        return Ok(());
    }
    let Some(kind) = text(file, "file_data").strip_prefix("data:").and_then(|data| data.split(';').next())
    else {
        return Err("Invalid file data: expected a base64-encoded data URL.".to_owned());
    };
    match kind.starts_with("audio/") || kind.starts_with("video/") {
        true => Err(format!("Invalid file data: unsupported MIME type '{kind}'.")),
        false if text(file, "filename").is_empty() => {
            Err("Missing required parameter: 'filename'.".to_owned())
        }
        false => Ok(()),
    }
}

/// From gpt-5.4 on, functions and reasoning do not go together at this endpoint.
fn check_function_tools(body: &Value, name: &str, model: Option<&OpenAiModel>) -> Check {
    let has_functions = items(body, "tools").iter().any(|tool| tool["type"] == "function");
    let reasons = parameters::is_reasoning(body["reasoning_effort"].as_str(), model);
    match has_functions && reasons && model.is_some_and(|model| model.chat_tools_need_none) {
        true => Err(ProviderRefusal::openai(
            "openai.chat_tools_while_reasoning",
            "reasoning_effort",
            "",
            format!(
                "Function tools with reasoning_effort are not supported for {name} in /v1/chat/completions. To use \
                 function tools, use /v1/responses or set reasoning_effort to 'none'."
            ),
        )),
        false => Ok(()),
    }
}

fn check_max_tokens(body: &Value, model: Option<&OpenAiModel>) -> Check {
    match is_set(&body["max_tokens"]) && model.is_some_and(OpenAiModel::reasons) {
        true => Err(ProviderRefusal::openai(
            "openai.max_tokens",
            "max_tokens",
            "unsupported_parameter",
            "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
        )),
        false => Ok(()),
    }
}

fn check_stop(body: &Value, model: Option<&OpenAiModel>) -> Check {
    if !is_set(&body["stop"]) {
        return Ok(());
    }
    if model.is_some_and(|model| !model.takes_stop) {
        return Err(ProviderRefusal::openai(
            "openai.stop",
            "stop",
            "unsupported_parameter",
            "Unsupported parameter: 'stop' is not supported with this model.",
        ));
    }
    let count = body["stop"].as_array().map_or(1, Vec::len);
    match (1..=MAX_STOPS).contains(&count) {
        true => Ok(()),
        false => Err(ProviderRefusal::openai(
            "openai.stop",
            "stop",
            "array_above_max_length",
            format!(
                "Invalid 'stop': array too long. Expected at most {MAX_STOPS} elements, but got {count}."
            ),
        )),
    }
}

fn check_search(body: &Value, name: &str) -> Check {
    match is_set(&body["web_search_options"]) && !name.contains("search") {
        true => Err(ProviderRefusal::openai(
            "openai.web_search_options",
            "web_search_options",
            "",
            "Web search options not supported with this model.",
        )),
        false => Ok(()),
    }
}

fn check_format(body: &Value, name: &str, limits: StrictLimits) -> Check {
    let format = &body["response_format"];
    parameters::check_json_mode(format, &body["messages"], "messages")?;
    if format["type"] != "json_schema" {
        return Ok(());
    }
    if name == "gpt-4" || WITHOUT_JSON_SCHEMA.iter().any(|model| name.starts_with(model)) {
        return Err(ProviderRefusal::openai(
            "openai.json_schema_model",
            "response_format",
            "",
            "Invalid parameter: 'response_format' of type 'json_schema' is not supported with this model.",
        ));
    }
    tools::check_format(&format["json_schema"], "response_format.json_schema", limits)
}
