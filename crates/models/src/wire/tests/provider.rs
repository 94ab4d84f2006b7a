//! The provider in these tests: it refuses what the real ones refuse.

use llm_do_core::{Message, Part, ProviderBlock};
use llm_do_provider_rules::{Account, OptionalRules, Protocol, ProviderRequest};
use serde_json::{Value, json};

use super::super::Api;
use super::super::encode::{Encoded, RequestTarget};
use super::requests::Asked;

/// Panics if the provider refuses a request.
///
/// Its account has issued what the messages of the conversation hold that one of its models wrote, and nothing else.
pub(super) fn check(target: &RequestTarget, asked: &Asked, encoded: &Encoded) {
    let body: Value = serde_json::from_slice(&encoded.body.to_vec()).unwrap();
    let protocol = protocol(target.api);
    let mut account = Account::default().with_optional(OptionalRules::ALL);
    for message in asked.conversation.messages() {
        if wrote(&target.provider, message) {
            account.issue(protocol, &response(target.api, message));
        }
    }
    let request = ProviderRequest { protocol, provider: &target.provider, path: &encoded.path, body: &body };
    if let Err(refusal) = account.check(&request) {
        panic!("{}: {}\n{body:#}", refusal.rule, refusal.message());
    }
}

fn protocol(api: Api) -> Protocol {
    match api {
        Api::Anthropic => Protocol::AnthropicMessages,
        Api::OpenAiChat => Protocol::OpenAiChat,
        Api::OpenAiResponses => Protocol::OpenAiResponses,
        Api::Gemini => Protocol::Gemini,
        Api::Ollama => Protocol::Ollama,
    }
}

fn wrote(provider: &str, message: &Message) -> bool {
    let name = |name: &str| if name == "google" { "gemini".to_owned() } else { name.to_owned() };
    message.origin.as_ref().is_some_and(|origin| name(&origin.provider) == name(provider))
}

/// Returns a response that holds what a message was read from.
fn response(api: Api, message: &Message) -> Value {
    let blocks: Vec<Value> = message.parts.iter().filter_map(block).collect();
    match api {
        Api::Anthropic => json!({"content": blocks}),
        Api::OpenAiResponses => json!({"store": false, "output": blocks}),
        Api::Gemini => json!({"candidates": [{"content": {"parts": blocks}}]}),
        Api::OpenAiChat | Api::Ollama => Value::Null,
    }
}

fn block(part: &Part) -> Option<Value> {
    let value = |raw: &Option<ProviderBlock>| raw.as_ref().map(|raw| raw.value.clone());
    match part {
        Part::Thinking { text, signature: Some(signature), raw } => Some(
            value(raw)
                .unwrap_or_else(|| json!({"type": "thinking", "thinking": text, "signature": signature})),
        ),
        Part::Text { raw, .. } | Part::Thinking { raw, .. } => value(raw),
        Part::ToolCall(call) => value(&call.raw),
        Part::Opaque(block) => Some(block.value.clone()),
        Part::ToolResult(_) | Part::Attachment(_) => None,
    }
}
