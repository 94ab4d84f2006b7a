//! What fuzz targets check about decoders and encoders. It is not part of the public surface.

use std::sync::Arc;

use llm_do_core::{
    Conversation, Message, ModelError, ModelPart, ModelProfile, ModelRequest, ModelResponse, ModelSettings,
    Origin, ToolCall, ToolResult,
};
use serde::de::IgnoredAny;
use serde_json::Value;

use super::encode::{Encoder, RequestTarget};
use super::samples::STREAMS;
use super::{Api, Decoder};
use crate::wire::request_rules::RequestRules;

/// The APIs by the names of their protocols.
const APIS: [(&str, Api); 5] = [
    ("anthropic", Api::Anthropic),
    ("openai-chat", Api::OpenAiChat),
    ("openai", Api::OpenAiResponses),
    ("gemini", Api::Gemini),
    ("ollama", Api::Ollama),
];

/// Returns a stream for each target.
pub fn samples() -> impl Iterator<Item = (&'static str, &'static str)> {
    STREAMS.into_iter().map(|(api, stream)| {
        let target = match api {
            Api::Anthropic => "anthropic",
            Api::OpenAiChat => "openai_chat",
            Api::OpenAiResponses => "openai_responses",
            Api::Gemini => "gemini",
            Api::Ollama => "ollama",
        };
        (target, stream)
    })
}

/// Reads bytes as an answer of a protocol, and sends what it holds to every API.
///
/// # Panics
///
/// Panics where something does not hold that always must.
pub fn check(protocol: &str, bytes: &[u8]) {
    let Some((provider, api)) = APIS.into_iter().find(|(name, _)| *name == protocol) else { return };
    let whole = decode(api, provider, [bytes]);
    let size = usize::from(bytes.first().copied().unwrap_or(0)) % 61 + 1;
    assert_eq!(decode(api, provider, bytes.chunks(size)), whole, "in pieces of {size} bytes");
    if let (Ok(response), ..) = whole {
        check_calls(&response);
        APIS.into_iter().for_each(|(provider, api)| check_request(api, provider, &response));
    }
}

type Decoded = (Result<ModelResponse, ModelError>, String, String);

/// Returns the answer, and the text and the thinking that were given out on the way.
fn decode<'a>(api: Api, provider: &str, pieces: impl IntoIterator<Item = &'a [u8]>) -> Decoded {
    let origin = Origin { provider: provider.into(), model: "m".into(), data: Value::Null };
    let (mut decoder, mut parts) = (Decoder::new(api, origin), Vec::new());
    for piece in pieces {
        if decoder.push(piece, &mut parts).is_err() {
            break;
        }
    }
    let response = decoder.finish(&mut parts);
    let (mut text, mut thinking) = (String::new(), String::new());
    for part in &parts {
        match part {
            ModelPart::Text(more) => text.push_str(more),
            ModelPart::Thinking(more) => thinking.push_str(more),
            ModelPart::Notice(_) | ModelPart::Finished(_) => {}
        }
    }
    (response, text, thinking)
}

fn check_calls(response: &ModelResponse) {
    let mut ids: Vec<&str> = response.message.tool_calls().map(|call| call.id.as_str()).collect();
    let count = ids.len();
    ids.sort_unstable();
    ids.dedup();
    assert!(ids.len() == count && !ids.contains(&""), "ids that are not distinct: {ids:?}");
}

fn check_request(api: Api, provider: &str, response: &ModelResponse) {
    let target = RequestTarget {
        api,
        provider: provider.to_owned(),
        model: "m".to_owned(),
        profile: ModelProfile::default(),
        rules: RequestRules::default(),
    };
    let mut conversation = Conversation::from_messages([Arc::new(Message::user("Hello"))]);
    let mut warm = Encoder::new(target.clone());
    encode(&mut warm, &conversation);
    conversation.push(response.message.clone());
    conversation.push(Message::results(response.message.tool_calls().map(answer)));
    let body = encode(&mut warm, &conversation);
    assert_eq!(encode(&mut Encoder::new(target), &conversation), body, "a new session sends something else");
    // Values have a limit of depth, which the blocks of an answer may reach before they are put into a request.
    let parsed: Result<IgnoredAny, _> = serde_json::from_slice(&body);
    assert!(parsed.is_ok(), "{:?}: {}", parsed.err(), String::from_utf8_lossy(&body));
}

fn answer(call: &ToolCall) -> ToolResult {
    let (id, name) = (call.id.clone(), call.name.clone());
    ToolResult { id, name, text: "done".into(), is_error: false, attachments: Vec::new() }
}

fn encode(encoder: &mut Encoder, conversation: &Conversation) -> Vec<u8> {
    let settings = ModelSettings::default();
    let request = ModelRequest {
        instructions: "Be good.",
        conversation,
        tools: &[],
        server_tools: &[],
        output_schema: None,
        settings: &settings,
        max_output: None,
    };
    encoder.encode(&request).map(|encoded| encoded.body.to_vec()).unwrap_or_default()
}
