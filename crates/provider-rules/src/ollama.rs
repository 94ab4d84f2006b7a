//! Ollama's own `/api/chat`.

use serde_json::Value;

use crate::json::{is_set, items};
use crate::refusal::Check;
use crate::{Account, ProviderRefusal, ProviderRequest, media};

const THINK_LEVELS: &[&str] = &["low", "medium", "high", "max"];
const MAX_TOP_LOGPROBS: i64 = 20;

pub(crate) fn check(request: &ProviderRequest<'_>, account: &Account) -> Check {
    let body = request.body;
    for message in items(body, "messages") {
        check_message(message)?;
    }
    check_format(body)?;
    check_think(request, account)?;
    let lacks_tools = account.capabilities(request.model()).is_some_and(|capabilities| !capabilities.tools);
    if lacks_tools && !items(body, "tools").is_empty() {
        let message = format!("{} does not support tools", request.model());
        return Err(ProviderRefusal::ollama("ollama.tools", message));
    }
    match body["top_logprobs"].as_i64().is_some_and(|count| !(0..=MAX_TOP_LOGPROBS).contains(&count)) {
        true => Err(ProviderRefusal::ollama("ollama.top_logprobs", "top_logprobs must be between 0 and 20")),
        false => Ok(()),
    }
}

fn check_message(message: &Value) -> Check {
    if is_set(&message["content"]) && !message["content"].is_string() {
        return Err(ProviderRefusal::ollama(
            "ollama.content",
            "json: cannot unmarshal array into Go struct field ChatRequest.messages.content of type string",
        ));
    }
    match items(message, "images").iter().all(|image| image.as_str().is_some_and(media::is_base64)) {
        true => Ok(()),
        false => Err(ProviderRefusal::ollama("ollama.images", "illegal base64 data at input byte 0")),
    }
}

fn check_format(body: &Value) -> Check {
    let format = &body["format"];
    match format.is_null() || format.is_object() || format == "json" || format == "" {
        true => Ok(()),
        false => Err(ProviderRefusal::ollama(
            "ollama.format",
            format!("invalid format: {format}; expected \"json\" or a valid JSON Schema object"),
        )),
    }
}

fn check_think(request: &ProviderRequest<'_>, account: &Account) -> Check {
    let think = &request.body["think"];
    if let Some(level) = think.as_str().filter(|level| !THINK_LEVELS.contains(level)) {
        let message = format!(
            "invalid think value: {level:?} (must be \"high\", \"medium\", \"low\", \"max\", true, or false)"
        );
        return Err(ProviderRefusal::ollama("ollama.think", message));
    }
    let cannot = account.capabilities(request.model()).is_some_and(|capabilities| !capabilities.thinking);
    match cannot && is_set(think) && think != false {
        true => Err(ProviderRefusal::ollama(
            "ollama.think",
            format!("\"{}\" does not support thinking", request.model()),
        )),
        false => Ok(()),
    }
}
