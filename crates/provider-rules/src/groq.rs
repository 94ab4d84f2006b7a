//! Groq's Chat Completions.

use crate::chat_body::{parts, wants_json};
use crate::json::items;
use crate::refusal::Check;
use crate::{ProviderRefusal, ProviderRequest};

pub(crate) fn check(request: &ProviderRequest<'_>) -> Check {
    let (body, model) = (request.body, request.model());
    let is_raw = body["reasoning_format"] == "raw";
    if is_raw && (!items(body, "tools").is_empty() || wants_json(body)) {
        return Err(ProviderRefusal::openai(
            "groq.reasoning_format",
            "reasoning_format",
            "",
            "reasoning_format `raw` is not supported with tool calling or JSON mode; use `parsed` or `hidden`",
        ));
    }
    let mut parts = items(body, "messages").iter().flat_map(parts);
    if let Some(part) = parts.find(|part| part["type"] != "text" && part["type"] != "image_url") {
        let message = format!("unsupported content part type {}", part["type"]);
        return Err(ProviderRefusal::openai("groq.media", "messages", "", message));
    }
    match body["reasoning_effort"].as_str().filter(|effort| !accepts(model, effort)) {
        Some(effort) => Err(ProviderRefusal::openai(
            "groq.effort",
            "reasoning_effort",
            "",
            format!("`reasoning_effort` value `{effort}` is not supported with this model"),
        )),
        None => Ok(()),
    }
}

fn accepts(model: &str, effort: &str) -> bool {
    match () {
        () if model.contains("gpt-oss") => ["low", "medium", "high"].contains(&effort),
        () if model.contains("qwen3") || model.contains("qwen-3") => ["none", "default"].contains(&effort),
        () => true,
    }
}
