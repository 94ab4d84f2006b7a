//! Servers for local models that speak Chat Completions: llama.cpp, Ollama's `/v1`, vLLM.

use serde_json::Value;

use crate::json::{is_set, items, text};
use crate::refusal::Check;
use crate::{Account, ProviderRefusal, ProviderRequest};

/// Checks what the chat templates of llama.cpp and Ollama refuse.
pub(crate) fn check_template(request: &ProviderRequest<'_>, account: &Account) -> Check {
    let messages = items(request.body, "messages");
    let trailing = messages.iter().rev().take_while(|message| message["role"] == "assistant").count();
    if trailing >= 2 {
        return Err(ProviderRefusal::llamacpp(
            "local.trailing_assistants",
            "Cannot have 2 or more assistant messages at the end of the list.",
        ));
    }
    match trailing == 1 && request.provider == "llamacpp" && thinks(request, account) {
        true => Err(ProviderRefusal::llamacpp(
            "local.prefill_while_thinking",
            "Assistant response prefill is incompatible with enable_thinking.",
        )),
        false => Ok(()),
    }
}

fn thinks(request: &ProviderRequest<'_>, account: &Account) -> bool {
    match request.body["chat_template_kwargs"]["enable_thinking"].as_bool() {
        Some(enabled) => enabled,
        None => account.capabilities(request.model()).is_some_and(|capabilities| capabilities.thinking),
    }
}

/// Checks the parameters of vLLM that need another one.
pub(crate) fn check_vllm(request: &ProviderRequest<'_>) -> Check {
    let body = request.body;
    let refuse = |message: String| Err(ProviderRefusal::vllm("vllm.parameter", message));
    if is_set(&body["stream_options"]) && body["stream"] != true {
        return refuse("Stream options can only be defined when `stream=True`.".to_owned());
    }
    if body["top_logprobs"].as_u64().is_some_and(|count| count > 0) && body["logprobs"] != true {
        return refuse("when using `top_logprobs`, `logprobs` must be set to true.".to_owned());
    }
    check_vllm_choice(body).map_or(Ok(()), refuse)
}

fn check_vllm_choice(body: &Value) -> Option<String> {
    let (choice, tools) = (&body["tool_choice"], items(body, "tools"));
    if choice.is_null() || choice == "none" {
        return None;
    }
    if tools.is_empty() {
        return Some("When using `tool_choice`, `tools` must be set.".to_owned());
    }
    let name = choice["function"]["name"].as_str()?;
    let is_offered = tools.iter().any(|tool| text(&tool["function"], "name") == name);
    (!is_offered)
        .then(|| format!("Tool '{name}' in `tool_choice` does not match any of the specified `tools`"))
}
