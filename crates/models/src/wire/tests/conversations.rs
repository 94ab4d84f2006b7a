//! Conversations put together at random, also from answers of several providers.

use std::sync::Arc;

use llm_do_core::{Attachment, Message, Part, ProviderBlock, Role, ToolResult};
use serde_json::Value;

use super::super::Api;
use super::super::samples::STREAMS;
use super::requests::{assistant, call, provider, result};
use super::{Numbers, decoder_for};

/// All APIs.
pub(super) const APIS: [Api; 5] =
    [Api::Anthropic, Api::OpenAiChat, Api::OpenAiResponses, Api::Gemini, Api::Ollama];

/// Returns what a provider answers: thinking, text, calls, and blocks of its own.
pub(super) fn answer(api: Api) -> Arc<Message> {
    let (_, stream) = STREAMS.iter().find(|(of, _)| *of == api).unwrap();
    let mut decoder = decoder_for(api, provider(api));
    decoder.push(stream.as_bytes(), &mut Vec::new()).unwrap();
    decoder.finish(&mut Vec::new()).unwrap().message
}

/// Answers the calls of a message.
pub(super) fn results_of(message: &Message, numbers: &mut Numbers) -> Message {
    let answer = |call: &llm_do_core::ToolCall| {
        let mut answer: ToolResult = result(&call.id, &call.name, ["", "1", "two\nlines"][numbers.below(3)]);
        answer.is_error = numbers.below(4) == 0;
        if numbers.below(4) == 0 {
            answer.attachments.push(attachment(numbers));
        }
        answer
    };
    Message::results(message.tool_calls().map(answer).collect::<Vec<_>>())
}

/// Adds a message that can follow: the results of calls, else something from either side.
pub(super) fn next_message(messages: &[Arc<Message>], numbers: &mut Numbers) -> Message {
    let last = messages.last().filter(|last| last.tool_calls().next().is_some());
    if let Some(last) = last {
        return results_of(last, numbers);
    }
    match messages.last().map(|last| last.role) {
        None | Some(Role::Assistant) => spoken(numbers),
        Some(Role::User) if numbers.below(6) == 0 => spoken(numbers),
        Some(Role::User) => answered(numbers),
    }
}

fn spoken(numbers: &mut Numbers) -> Message {
    let mut message = Message::user(["Hello", "", " ", "Grüße \"🚀\"\\n"][numbers.below(4)]);
    if numbers.below(4) == 0 {
        message.parts.push(Part::Attachment(attachment(numbers)));
    }
    if numbers.below(8) == 0 {
        message.parts.clear();
    }
    message
}

fn answered(numbers: &mut Numbers) -> Message {
    let api = APIS[numbers.below(APIS.len())];
    if numbers.below(2) == 0 {
        // Another response of the same provider has other ids.
        let mut message = Message::clone(&answer(api));
        let suffix = numbers.below(1_000_000);
        for part in &mut message.parts {
            if let Part::ToolCall(call) = part {
                call.id = format!("{}{suffix}", call.id);
            }
            if let Some(raw) = raw_mut(part) {
                renew_ids(&mut raw.value, suffix);
            }
        }
        return message;
    }
    let kinds = [
        Part::text("Well."),
        Part::text("  "),
        Part::thinking("Hm."),
        Part::Thinking { text: "Hm.".into(), signature: Some("sig".into()), raw: None },
    ];
    let mut parts: Vec<Part> =
        (0..numbers.below(4)).map(|_| kinds[numbers.below(kinds.len())].clone()).collect();
    for _ in 0..numbers.below(3) {
        let id = format!("call {}/{}", numbers.below(1_000_000), "x".repeat(numbers.below(80)));
        let arguments = ["{}", "", "{\"a\":", "[1]", "{\"a\": 1.50}"][numbers.below(5)];
        parts.push(Part::ToolCall(call(&id, ["f", "g h", ""][numbers.below(3)], arguments)));
    }
    assistant(provider(api), parts)
}

/// Returns what the provider sent a part as.
pub(super) fn raw_mut(part: &mut Part) -> Option<&mut ProviderBlock> {
    match part {
        Part::Text { raw, .. } | Part::Thinking { raw, .. } => raw.as_mut(),
        Part::ToolCall(call) => call.raw.as_mut(),
        Part::Opaque(block) => Some(block),
        Part::ToolResult(_) | Part::Attachment(_) => None,
    }
}

/// Changes what identifies a block.
fn renew_ids(block: &mut Value, suffix: usize) {
    match block {
        Value::Object(map) => {
            for (key, value) in map {
                match value {
                    Value::String(text)
                        if matches!(key.as_str(), "id" | "call_id" | "tool_use_id" | "encrypted_content") =>
                    {
                        text.push_str(&suffix.to_string());
                    }
                    value => renew_ids(value, suffix),
                }
            }
        }
        Value::Array(values) => values.iter_mut().for_each(|value| renew_ids(value, suffix)),
        _ => {}
    }
}

fn attachment(numbers: &mut Numbers) -> Attachment {
    match numbers.below(4) {
        0 => Attachment::bytes("a.png", "image/png", vec![7; numbers.below(300)]),
        1 => Attachment::bytes("b.pdf", "application/pdf", b"%PDF-".to_vec()),
        2 => Attachment::bytes("c.txt", "text/plain", b"text".to_vec()),
        _ => Attachment::path("never-read.png"),
    }
}
