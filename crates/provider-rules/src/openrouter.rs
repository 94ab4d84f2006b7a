//! OpenRouter's Chat Completions.

use crate::chat_body::forces_tool;
use crate::json::is_set;
use crate::refusal::Check;
use crate::{ProviderRefusal, ProviderRequest};

pub(crate) fn check(request: &ProviderRequest<'_>) -> Check {
    let body = request.body;
    let reasoning = &body["reasoning"];
    if is_set(&reasoning["effort"]) && is_set(&reasoning["max_tokens"]) {
        return Err(ProviderRefusal::openrouter(
            "openrouter.reasoning",
            "Only one of \"reasoning.effort\" and \"reasoning.max_tokens\" can be specified",
        ));
    }
    let thinks = is_set(&reasoning["max_tokens"])
        || reasoning["enabled"] == true
        || reasoning["effort"].as_str().is_some_and(|effort| effort != "none");
    match thinks && forces_tool(body) && request.model().starts_with("anthropic/") {
        true => Err(ProviderRefusal::openrouter(
            "openrouter.forced_tool_choice",
            "Thinking may not be enabled when tool_choice forces tool use.",
        )),
        false => Ok(()),
    }
}
