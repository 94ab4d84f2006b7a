//! The Responses endpoint.

mod items;

use serde_json::Value;

use super::models::{self, OpenAiModel};
use super::{parameters, schema::StrictLimits, tools};
use crate::json::{is_set, items, text};
use crate::refusal::Check;
use crate::{Account, ProviderRefusal, ProviderRequest, xai};

const KNOWN: &[&str] = &[
    "model",
    "input",
    "background",
    "context_management",
    "conversation",
    "include",
    "instructions",
    "max_output_tokens",
    "max_tool_calls",
    "metadata",
    "parallel_tool_calls",
    "previous_response_id",
    "prompt",
    "prompt_cache_key",
    "prompt_cache_options",
    "prompt_cache_retention",
    "reasoning",
    "safety_identifier",
    "service_tier",
    "store",
    "stream",
    "stream_options",
    "temperature",
    "text",
    "tool_choice",
    "tools",
    "top_logprobs",
    "top_p",
    "truncation",
    "user",
];
const MIN_OUTPUT_TOKENS: i64 = 16;

pub(crate) fn check(request: &ProviderRequest<'_>, account: &Account) -> Check {
    check_continuation(request.body, account)?;
    items::check(request, account)?;
    match request.provider {
        "openai" | "azure" => check_openai(request, account),
        "xai" => xai::check(request),
        _ => Ok(()),
    }
}

fn check_openai(request: &ProviderRequest<'_>, account: &Account) -> Check {
    let (body, name) = (request.body, request.model());
    let (model, effort) = (models::find(name), body["reasoning"]["effort"].as_str());
    let limits = StrictLimits::for_model(name, account.optional.openai_schema_limits);
    if request.provider != "azure" {
        parameters::check_known(body, KNOWN)?;
    }
    check_reasoning(body, model)?;
    parameters::check_sampling(body, effort, model)?;
    parameters::check_ranges(body)?;
    parameters::check_metadata(body)?;
    check_output_tokens(body)?;
    parameters::check_json_mode(&body["text"]["format"], &body["input"], "input")?;
    if body["text"]["format"]["type"] == "json_schema" {
        tools::check_format(&body["text"]["format"], "text.format", limits)?;
    }
    tools::check(body, limits, |tool| tool, |index| format!("tools[{index}]"))?;
    check_server_tools(body)?;
    if account.optional.openai_dependent_parameters { parameters::check_dependent(body) } else { Ok(()) }
}

fn check_reasoning(body: &Value, model: Option<&OpenAiModel>) -> Check {
    parameters::check_effort(body["reasoning"]["effort"].as_str(), "reasoning.effort", model)?;
    let is_asked = ["summary", "generate_summary"].iter().any(|key| is_set(&body["reasoning"][*key]));
    match is_asked && model.is_some_and(|model| !model.reasons()) {
        true => Err(ProviderRefusal::openai(
            "openai.effort",
            "reasoning.effort",
            "unsupported_value",
            "Unsupported parameter: 'reasoning.summary' is not supported with this model.",
        )),
        false => Ok(()),
    }
}

fn check_output_tokens(body: &Value) -> Check {
    match body["max_output_tokens"].as_i64().filter(|tokens| *tokens < MIN_OUTPUT_TOKENS) {
        Some(tokens) => Err(ProviderRefusal::openai(
            "openai.max_output_tokens",
            "max_output_tokens",
            "integer_below_min_value",
            format!(
                "Invalid 'max_output_tokens': integer below minimum value. Expected a value >= 16, but got {tokens} \
                 instead."
            ),
        )),
        None => Ok(()),
    }
}

/// A request continues at most one thing, and one that exists.
fn check_continuation(body: &Value, account: &Account) -> Check {
    let Some(id) = body["previous_response_id"].as_str() else { return Ok(()) };
    let refuse = |code: &str, message: String| {
        Err(ProviderRefusal::openai("responses.previous_response", "previous_response_id", code, message))
    };
    if is_set(&body["conversation"]) {
        return refuse(
            "mutually_exclusive_parameters",
            "Mutually exclusive parameters: 'previous_response_id' and 'conversation'.".to_owned(),
        );
    }
    match account.responses.stored.contains_key(id) {
        true => Ok(()),
        false => {
            refuse("previous_response_not_found", format!("Previous response with id '{id}' not found."))
        }
    }
}

fn check_server_tools(body: &Value) -> Check {
    for (index, tool) in items(body, "tools").iter().enumerate() {
        let refuse = |field: &str, code: &str, message: String| {
            Err(ProviderRefusal::openai(
                "openai.server_tool",
                format!("tools[{index}].{field}"),
                code,
                message,
            ))
        };
        match text(tool, "type") {
            "code_interpreter" if !is_set(&tool["container"]) => {
                return refuse(
                    "container",
                    "missing_required_parameter",
                    format!("Missing required parameter: 'tools[{index}].container'."),
                );
            }
            kind if kind.starts_with("web_search") => {
                let filters = tool["filters"].as_object().into_iter().flat_map(|filters| filters.keys());
                if let Some(key) = filters.into_iter().find(|key| *key != "allowed_domains") {
                    let message = format!("Unknown parameter: 'tools[{index}].filters.{key}'.");
                    return refuse("filters", "unknown_parameter", message);
                }
            }
            "mcp" => {
                let targets = ["server_url", "connector_id", "tunnel_id"];
                if targets.iter().filter(|key| is_set(&tool[**key])).count() != 1 {
                    let message =
                        "Exactly one of 'server_url', 'connector_id' and 'tunnel_id' must be provided.";
                    return refuse("server_url", "", message.to_owned());
                }
            }
            _ => {}
        }
    }
    Ok(())
}
