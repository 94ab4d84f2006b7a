//! Parameters that both endpoints have: reasoning, sampling, ranges.

use serde_json::Value;

use super::models::OpenAiModel;
use crate::ProviderRefusal;
use crate::json::{contains_text, is_set};
use crate::refusal::Check;

/// What a reasoning model does not take.
const SAMPLING: &[&str] = &[
    "temperature",
    "top_p",
    "presence_penalty",
    "frequency_penalty",
    "logit_bias",
    "logprobs",
    "top_logprobs",
];
/// What a reasoning model does not take even with effort `none`.
const PENALTIES: &[&str] = &["presence_penalty", "frequency_penalty"];
/// Numbers with their least and greatest value.
const RANGES: &[(&str, f64, f64)] = &[
    ("temperature", 0.0, 2.0),
    ("top_p", 0.0, 1.0),
    ("presence_penalty", -2.0, 2.0),
    ("frequency_penalty", -2.0, 2.0),
    ("top_logprobs", 0.0, 20.0),
    ("n", 1.0, 128.0),
];
const MAX_METADATA: usize = 16;
const MAX_METADATA_KEY: usize = 64;
const MAX_METADATA_VALUE: usize = 512;

/// Refuses parameters that the endpoint does not know.
pub(super) fn check_known(body: &Value, known: &[&str]) -> Check {
    let unknown = body.as_object().and_then(|body| body.keys().find(|key| !known.contains(&key.as_str())));
    match unknown {
        Some(name) => Err(ProviderRefusal::openai(
            "openai.unknown_parameter",
            name,
            "unknown_parameter",
            format!("Unknown parameter: '{name}'."),
        )),
        None => Ok(()),
    }
}

/// Refuses an effort that the model does not take. `param` is the name of the parameter at this endpoint.
pub(super) fn check_effort(effort: Option<&str>, param: &str, model: Option<&OpenAiModel>) -> Check {
    let (Some(effort), Some(model)) = (effort, model) else { return Ok(()) };
    if model.efforts.is_empty() {
        return Err(ProviderRefusal::openai(
            "openai.effort",
            param,
            "unsupported_value",
            format!("Unsupported parameter: '{param}' is not supported with this model."),
        ));
    }
    match model.efforts.contains(&effort) {
        true => Ok(()),
        false => Err(ProviderRefusal::openai(
            "openai.effort",
            param,
            "unsupported_value",
            format!(
                "Unsupported value: '{effort}' is not supported with this model. Supported values are: '{}'.",
                model.efforts.join("', '")
            ),
        )),
    }
}

/// Returns whether a request makes the model reason.
pub(super) fn is_reasoning(effort: Option<&str>, model: Option<&OpenAiModel>) -> bool {
    let effort = effort.or_else(|| model?.default_effort);
    model.is_some_and(OpenAiModel::reasons) && effort != Some("none")
}

/// Refuses sampling while the model reasons.
pub(super) fn check_sampling(body: &Value, effort: Option<&str>, model: Option<&OpenAiModel>) -> Check {
    let Some(model) = model.filter(|model| model.reasons()) else { return Ok(()) };
    let refused = if is_reasoning(effort, Some(model)) { SAMPLING } else { PENALTIES };
    let passes = |name: &str| {
        name == "temperature" && body[name].as_f64() == Some(1.0) && model.passes_default_temperature()
    };
    let is_sent = |name: &&&str| is_set(&body[**name]) && body[**name] != false && !passes(name);
    match refused.iter().find(is_sent) {
        Some(name) if *name == "temperature" => Err(ProviderRefusal::openai(
            "openai.sampling",
            *name,
            "unsupported_value",
            format!(
                "Unsupported value: 'temperature' does not support {} with this model. Only the default (1) value is \
                 supported.",
                body["temperature"]
            ),
        )),
        Some(name) => Err(ProviderRefusal::openai(
            "openai.sampling",
            *name,
            "unsupported_parameter",
            format!("Unsupported parameter: '{name}' is not supported with this model."),
        )),
        None => Ok(()),
    }
}

/// Refuses numbers that are out of range.
pub(super) fn check_ranges(body: &Value) -> Check {
    for (name, least, greatest) in RANGES {
        let Some(value) = body[*name].as_f64() else { continue };
        let (code, bound, limit) = match () {
            () if value > *greatest => ("decimal_above_max_value", "<=", greatest),
            () if value < *least => ("decimal_below_min_value", ">=", least),
            () => continue,
        };
        let message = format!("Invalid '{name}': expected a value {bound} {limit}, but got {value} instead.");
        return Err(ProviderRefusal::openai("openai.range", *name, code, message));
    }
    Ok(())
}

/// Refuses too much metadata.
pub(super) fn check_metadata(body: &Value) -> Check {
    let refuse =
        |message: &str| Err(ProviderRefusal::openai("openai.metadata", "metadata", "invalid_value", message));
    let Some(metadata) = body["metadata"].as_object() else { return Ok(()) };
    if metadata.len() > MAX_METADATA {
        return refuse(
            "Invalid 'metadata': too many properties. Expected an object with at most 16 properties.",
        );
    }
    let is_long = |(key, value): (&String, &Value)| {
        key.len() > MAX_METADATA_KEY || value.as_str().is_some_and(|value| value.len() > MAX_METADATA_VALUE)
    };
    match metadata.iter().any(is_long) {
        true => refuse("Invalid 'metadata': string too long."),
        false => Ok(()),
    }
}

/// JSON mode needs the word in the messages.
pub(super) fn check_json_mode(format: &Value, messages: &Value, param: &str) -> Check {
    match format["type"] == "json_object" && !contains_text(messages, "json") {
        true => Err(ProviderRefusal::openai(
            "openai.json_mode",
            param,
            "",
            format!(
                "'{param}' must contain the word 'json' in some form, to use '{}' of type 'json_object'.",
                if param == "messages" { "response_format" } else { "text.format" }
            ),
        )),
        false => Ok(()),
    }
}

/// Parameters that need another one.
pub(super) fn check_dependent(body: &Value) -> Check {
    let refuse = |name: &str, needed: &str| {
        let message =
            format!("Invalid value for '{name}': '{name}' is only allowed when '{needed}' are specified.");
        Err(ProviderRefusal::openai("openai.dependent_parameter", name, "", message))
    };
    let lacks_tools = body["tools"].as_array().is_none_or(Vec::is_empty);
    for name in ["tool_choice", "parallel_tool_calls"] {
        if lacks_tools && is_set(&body[name]) {
            return refuse(name, "tools");
        }
    }
    if is_set(&body["stream_options"]) && body["stream"] != true {
        return refuse("stream_options", "stream");
    }
    match is_set(&body["top_logprobs"]) && body["logprobs"] == false {
        true => refuse("top_logprobs", "logprobs"),
        false => Ok(()),
    }
}
