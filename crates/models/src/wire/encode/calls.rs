//! Calls and their results, as every API wants them: ids that it accepts, arguments that are an object, and a
//! result for each call.

use std::borrow::Cow;
use std::collections::HashSet;

use llm_do_core::{Digest, Message, Name, Part, ToolCall, ToolResult};
use serde::de::IgnoredAny;

use super::{Api, RequestTarget};
use crate::wire::GENERATED_ID;

/// Answers a call that has no result. Every API refuses a history in which one is missing.
const UNANSWERED: &str = "error: this call has no result";

/// Returns the id that the target takes for a call, the same for the call and its result.
///
/// An id that the target could have given stays as it is; another one is derived from it.
pub(super) fn id<'a>(target: &RequestTarget, id: &'a str) -> Cow<'a, str> {
    let is_word = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-');
    let (is_taken, prefix, digits) = match (target.api, target.provider.as_str()) {
        (Api::Anthropic, _) => (id.chars().all(is_word), "toolu_", 24),
        (Api::OpenAiChat, "mistral") => {
            (id.len() == 9 && id.chars().all(|letter| letter.is_ascii_alphanumeric()), "", 9)
        }
        (Api::OpenAiChat, "openai-chat" | "azure") => (id.len() <= 40, "call_", 24),
        (Api::OpenAiResponses, _) => (id.len() <= 64, "call_", 24),
        (Api::OpenAiChat | Api::Gemini | Api::Ollama, _) => (true, "call_", 24),
    };
    if is_taken && !id.is_empty() {
        id.into()
    } else {
        (prefix.to_owned() + &Digest::hash(id).prefix(digits)).into()
    }
}

/// Returns the id of a call for an API that may have given none: one that was made is not sent.
pub(super) fn given_id(id: &str) -> Option<&str> {
    Some(id).filter(|id| !id.is_empty() && !id.starts_with(GENERATED_ID))
}

/// Returns a name that every API takes. A model can ask for a tool by any name, and the history holds it.
pub(super) fn name(name: &str) -> Cow<'_, str> {
    if Name::is_valid(name) {
        return name.into();
    }
    let is_taken = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-');
    let letters = name.chars().take(64).map(|letter| if is_taken(letter) { letter } else { '_' });
    Some(letters.collect::<String>())
        .filter(|name| !name.is_empty())
        .unwrap_or_else(|| "unknown".into())
        .into()
}

/// Returns the arguments as the JSON text of an object, whatever the model wrote.
pub(super) fn arguments(call: &ToolCall) -> Cow<'_, str> {
    let text = call.arguments.trim();
    if text.is_empty() {
        return "{}".into();
    }
    if text.starts_with('{') && serde_json::from_str::<IgnoredAny>(text).is_ok() {
        return text.into();
    }
    serde_json::json!({"invalid_arguments": &*call.arguments}).to_string().into()
}

/// The parts of a message of the caller: one result for each call of the message before, and the rest.
pub(super) struct Answers<'a> {
    pub(super) results: Vec<Cow<'a, ToolResult>>,
    pub(super) rest: Vec<Cow<'a, Part>>,
}

impl<'a> Answers<'a> {
    /// Sorts the parts. A call without a result gets one, and a result without a call becomes text: so no
    /// conversation, however it was put together, is refused for them.
    pub(super) fn new(message: &'a Message, before: Option<&'a Message>) -> Self {
        let calls: Vec<&ToolCall> = before.into_iter().flat_map(Message::tool_calls).collect();
        let mut open: HashSet<&str> = calls.iter().map(|call| call.id.as_str()).collect();
        let (mut results, mut rest) = (Vec::new(), Vec::new());
        for part in &message.parts {
            match part {
                Part::ToolResult(result) if open.remove(result.id.as_str()) => {
                    results.push(Cow::Borrowed(result))
                }
                Part::ToolResult(result) => rest.extend(as_text(result)),
                part => rest.push(Cow::Borrowed(part)),
            }
        }
        let missing = calls.into_iter().filter(|call| open.contains(call.id.as_str()));
        results.extend(missing.map(|call| Cow::Owned(unanswered(call))));
        Self { results, rest }
    }
}

fn unanswered(call: &ToolCall) -> ToolResult {
    let (id, name) = (call.id.clone(), call.name.clone());
    ToolResult { id, name, text: UNANSWERED.into(), is_error: true, attachments: Vec::new() }
}

fn as_text(result: &ToolResult) -> Vec<Cow<'_, Part>> {
    let text = Part::text(format!("Result of `{}`: {}", result.name, result.text));
    let attachments = result.attachments.iter().cloned().map(Part::Attachment);
    std::iter::once(text).chain(attachments).map(Cow::Owned).collect()
}
