//! Anthropic's Messages.

mod attachments;
mod cache;
mod messages;
mod models;
mod parameters;
mod schema;
mod server_calls;
mod thinking;
mod tools;

pub(crate) use thinking::IssuedThinking;

use serde_json::Value;

use crate::json::{is_set, items};
use crate::refusal::Check;
use crate::{Account, ProviderRefusal, ProviderRequest, Reasoning};
use models::AnthropicModel;

/// The most messages that a request may have.
const MAX_MESSAGES: usize = 100_000;

pub(crate) fn check(request: &ProviderRequest<'_>, account: &Account) -> Check {
    let (body, model) = (request.body, models::find(request.model()));
    let messages = items(body, "messages");
    check_required(body)?;
    attachments::check(body, messages)?;
    messages::check(messages, model, account.optional.anthropic_results_first)?;
    messages::check_prefill(body, messages, model)?;
    server_calls::check(body, messages)?;
    parameters::check(body, model)?;
    thinking::check(body, messages, model)?;
    thinking::check_replay(messages, &account.anthropic)?;
    tools::check(body, model)?;
    schema::check_request(body, model)?;
    cache::check(body, messages)
}

/// Returns whether the model thinks before it answers.
pub(crate) fn reasoning(request: &ProviderRequest<'_>) -> Reasoning {
    let model = models::find(request.model());
    match thinking_is_on(request.body, model) {
        true if request.body["thinking"]["type"] == "enabled" => Reasoning::Always,
        true => Reasoning::Adaptive,
        false => Reasoning::Off,
    }
}

fn check_required(body: &Value) -> Check {
    const RULE: &str = "anthropic.required";
    if let Some(name) = ["model", "max_tokens", "messages"].iter().find(|name| !is_set(&body[**name])) {
        return Err(ProviderRefusal::anthropic(RULE, format!("{name}: Field required")));
    }
    match items(body, "messages").len() {
        0 => Err(ProviderRefusal::anthropic(RULE, "messages: at least one message is required")),
        count if count > MAX_MESSAGES => Err(ProviderRefusal::anthropic(
            RULE,
            format!("messages: at most {MAX_MESSAGES} messages are allowed"),
        )),
        _ => Ok(()),
    }
}

/// Returns the blocks of a message; plain text has none.
fn blocks(message: &Value) -> &[Value] {
    items(message, "content")
}

fn is_type(block: &Value, kind: &str) -> bool {
    block["type"] == kind
}

fn forces_tool(body: &Value) -> bool {
    matches!(body["tool_choice"]["type"].as_str(), Some("any" | "tool"))
}

fn has_format(body: &Value) -> bool {
    is_set(&body["output_config"]["format"]) || is_set(&body["output_format"])
}

fn thinking_is_on(body: &Value, model: Option<&AnthropicModel>) -> bool {
    match body["thinking"]["type"].as_str() {
        Some(kind) => kind != "disabled",
        None => model.is_some_and(|model| model.thinks_by_default),
    }
}
