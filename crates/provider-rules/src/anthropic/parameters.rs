//! Sampling and the limits of numbers.

use serde_json::Value;

use super::models::{AnthropicModel, Sampling};
use super::{forces_tool, has_format, thinking_is_on};
use crate::ProviderRefusal;
use crate::json::is_set;
use crate::refusal::Check;

/// Parameters of other providers.
const FOREIGN: &[&str] =
    &["seed", "presence_penalty", "frequency_penalty", "logprobs", "top_logprobs", "logit_bias"];
const SAMPLING: &[&str] = &["temperature", "top_p", "top_k"];

pub(super) fn check(body: &Value, model: Option<&AnthropicModel>) -> Check {
    if let Some(name) = FOREIGN.iter().find(|name| is_set(&body[**name])) {
        return Err(ProviderRefusal::anthropic(
            "anthropic.parameter",
            format!("{name}: Extra inputs are not permitted"),
        ));
    }
    check_max_tokens(body, model)?;
    check_range(body)?;
    check_sampling(body, model)?;
    check_sampling_while_thinking(body, model)
}

fn check_max_tokens(body: &Value, model: Option<&AnthropicModel>) -> Check {
    let refuse = |message: String| Err(ProviderRefusal::anthropic("anthropic.max_tokens", message));
    let Some(max_tokens) = body["max_tokens"].as_u64() else {
        return refuse("max_tokens: Input should be a valid integer".to_owned());
    };
    let thinks = body["thinking"]["type"] == "enabled";
    if max_tokens == 0 && (body["stream"] == true || thinks || has_format(body) || forces_tool(body)) {
        return refuse("max_tokens: must be greater than 0 for this request".to_owned());
    }
    match model.and_then(|model| model.max_tokens).filter(|ceiling| max_tokens > *ceiling) {
        Some(ceiling) => refuse(format!(
            "max_tokens: {max_tokens} > {ceiling}, which is the maximum allowed number of output tokens for this model"
        )),
        None => Ok(()),
    }
}

fn check_range(body: &Value) -> Check {
    match body["temperature"].as_f64().is_some_and(|value| !(0.0..=1.0).contains(&value)) {
        true => Err(ProviderRefusal::anthropic("anthropic.temperature_range", "temperature: range: 0..1")),
        false => Ok(()),
    }
}

fn check_sampling(body: &Value, model: Option<&AnthropicModel>) -> Check {
    let refuse = |message: String| Err(ProviderRefusal::anthropic("anthropic.sampling", message));
    let set = SAMPLING.iter().find(|name| is_set(&body[**name]));
    let is_default = |name: &str| name != "top_k" && body[name].as_f64().is_none_or(|value| value == 1.0);
    match model.map(|model| model.sampling) {
        Some(Sampling::Refused) if set.is_some() => {
            refuse(format!("{}: is not supported for this model", set.unwrap_or(&"temperature")))
        }
        Some(Sampling::Defaults) => {
            match SAMPLING.iter().find(|name| is_set(&body[**name]) && !is_default(name)) {
                Some(name) => refuse(format!("{name}: only the default value is supported for this model")),
                None => Ok(()),
            }
        }
        Some(Sampling::NotBoth) if is_set(&body["temperature"]) && is_set(&body["top_p"]) => refuse(
            "`temperature` and `top_p` cannot both be specified for this model. Please use only one."
                .to_owned(),
        ),
        _ => Ok(()),
    }
}

fn check_sampling_while_thinking(body: &Value, model: Option<&AnthropicModel>) -> Check {
    if !thinking_is_on(body, model) {
        return Ok(());
    }
    let refuse =
        |message: &str| Err(ProviderRefusal::anthropic("anthropic.sampling_while_thinking", message));
    if body["temperature"].as_f64().is_some_and(|value| value != 1.0) {
        return refuse("`temperature` may only be set to 1 when thinking is enabled.");
    }
    match is_set(&body["top_k"]) {
        true => refuse("`top_k` must be unset when thinking is enabled."),
        false => Ok(()),
    }
}
