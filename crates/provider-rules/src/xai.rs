//! xAI: parameters that its models refuse.

use serde_json::Value;

use crate::json::is_set;
use crate::refusal::Check;
use crate::{ProviderRefusal, ProviderRequest};

const MAX_TOP_LOGPROBS: u64 = 8;

pub(crate) fn check(request: &ProviderRequest<'_>) -> Check {
    let (body, model) = (request.body, request.model());
    if !model.starts_with("grok") {
        return Ok(());
    }
    let refused = [("presence_penalty", "presencePenalty"), ("frequency_penalty", "frequencyPenalty")];
    let stop = reasons(model).then_some(("stop", "stop"));
    if let Some((_, name)) = refused.into_iter().chain(stop).find(|(key, _)| is_set(&body[*key])) {
        return Err(ProviderRefusal::xai(
            "xai.parameter",
            format!("Model {model} does not support parameter {name}."),
        ));
    }
    if is_set(&body["search_parameters"]) {
        return Err(ProviderRefusal::xai(
            "xai.parameter",
            "Live search is deprecated. Please switch to the Agent Tools API.",
        ));
    }
    if body["top_logprobs"].as_u64().is_some_and(|count| count > MAX_TOP_LOGPROBS) {
        return Err(ProviderRefusal::xai("xai.parameter", "top_logprobs must be at most 8"));
    }
    check_effort(body, model)
}

fn reasons(model: &str) -> bool {
    !model.contains("non-reasoning") && (model.starts_with("grok-3-mini") || !model.starts_with("grok-3"))
}

fn check_effort(body: &Value, model: &str) -> Check {
    let effort = body["reasoning_effort"].as_str().or_else(|| body["reasoning"]["effort"].as_str());
    if is_set(&body["reasoning"]["summary"]) {
        return Err(ProviderRefusal::xai(
            "xai.effort",
            format!("Model {model} does not support parameter reasoning.summary."),
        ));
    }
    match effort.filter(|effort| !efforts(model).contains(effort)) {
        Some(effort) => Err(ProviderRefusal::xai(
            "xai.effort",
            format!("This model does not support 'reasoning_effort' value '{effort}'"),
        )),
        None => Ok(()),
    }
}

/// Returns the efforts that a model takes. Names before 4.3 are redirected to it.
fn efforts(model: &str) -> &'static [&'static str] {
    let starts = |prefix: &str| model.starts_with(prefix);
    match () {
        () if starts("grok-3-mini") => &["low", "high"],
        () if starts("grok-4.20") => &[],
        () if starts("grok-4.5") => &["low", "medium", "high"],
        () if starts("grok-3")
            || model == "grok-4"
            || starts("grok-4-")
            || starts("grok-4.1")
            || starts("grok-4.3") =>
        {
            &["none", "low", "medium", "high"]
        }
        () => &["low", "medium", "high", "xhigh"],
    }
}
