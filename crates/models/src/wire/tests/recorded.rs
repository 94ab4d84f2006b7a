//! Recorded traffic, which is not in the repository: `LLM_DO_WIRE` names its directory. Without it these tests
//! are ignored.
//!
//! More is tried with `LLM_DO_WIRE_SPLITS` (random splits per exchange), `LLM_DO_WIRE_CUTS` (places at which
//! each stream is cut, `0` for every byte) and `LLM_DO_WIRE_MUTATIONS` (damaged streams in all).

use std::path::PathBuf;
use std::time::Duration;

use jiff::Timestamp;
use llm_do_capabilities::WIRE_VARIABLE;
use llm_do_core::{Message, ModelErrorKind, ModelResponse, Part, ProviderBlock, StopReason, ToolCall, Usage};
use llm_do_testing_macros::needs;
use serde_json::{Map, Value, json};

use super::super::errors::{Failure, from_response};
use super::super::{Api, decode, json};
use super::{Decoded, Numbers, decode, decode_pieces, times};

/// One recorded exchange.
#[derive(Clone)]
pub(super) struct Exchange {
    pub(super) id: String,
    pub(super) api: Api,
    pub(super) status: u16,
    /// Who answered, and with which exchanges of a conversation this one belongs together.
    pub(super) provider: String,
    pub(super) conversation: (String, u64),
    pub(super) request: Value,
    headers: Map<String, Value>,
    pub(super) body: Vec<u8>,
    expect: Value,
}

/// Reads all exchanges.
pub(super) fn exchanges() -> Vec<Exchange> {
    let directory = std::env::var_os(WIRE_VARIABLE).unwrap();
    let paths = std::fs::read_dir(directory).unwrap().map(|file| file.unwrap().path());
    let is_exchange =
        |path: &PathBuf| path.extension().is_some_and(|end| end == "json") && !path.ends_with("index.json");
    let mut paths: Vec<PathBuf> = paths.filter(is_exchange).collect();
    paths.sort();
    paths.iter().map(|path| exchange(&std::fs::read(path).unwrap())).collect()
}

fn exchange(file: &[u8]) -> Exchange {
    let file: Value = serde_json::from_slice(file).unwrap();
    let api = match file["api"].as_str().unwrap() {
        "anthropic.messages" => Api::Anthropic,
        "openai.chat" => Api::OpenAiChat,
        "openai.responses" => Api::OpenAiResponses,
        "gemini.generate" => Api::Gemini,
        "ollama.chat" => Api::Ollama,
        other => panic!("{other}"),
    };
    let response = &file["response"];
    Exchange {
        id: file["id"].as_str().unwrap().to_owned(),
        api,
        status: u16::try_from(response["status"].as_u64().unwrap()).unwrap(),
        provider: file["provider"].as_str().unwrap().to_owned(),
        conversation: (
            file["conversation"]["id"].as_str().unwrap_or_default().to_owned(),
            file["conversation"]["index"].as_u64().unwrap_or(0),
        ),
        request: file["request"]["body"].clone(),
        headers: response["headers"].as_object().cloned().unwrap_or_default(),
        body: response["body"].as_str().unwrap().as_bytes().to_vec(),
        expect: file["expect"].clone(),
    }
}

#[needs(wire)]
#[test]
fn every_recorded_response_is_decoded_to_what_it_says() {
    let mut wrong = Vec::new();
    for exchange in exchanges() {
        let differences = if exchange.status == 200 {
            differences_of_answer(&exchange, &decode(exchange.api, &exchange.body))
        } else {
            differences_of_failure(&exchange)
        };
        wrong.extend(differences.into_iter().map(|difference| format!("{}: {difference}", exchange.id)));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[needs(wire)]
#[test]
fn every_recorded_response_is_decoded_alike_however_it_is_cut_into_pieces() {
    let splits = times("LLM_DO_WIRE_SPLITS", 20);
    for exchange in exchanges().iter().filter(|exchange| exchange.status == 200) {
        let whole = decode(exchange.api, &exchange.body);
        assert_eq!(decode_pieces(exchange.api, exchange.body.chunks(1)), whole, "{}", exchange.id);
        let mut numbers = Numbers::new(exchange.body.len() as u64);
        for _ in 0..splits {
            assert_eq!(decode_pieces(exchange.api, numbers.split(&exchange.body)), whole, "{}", exchange.id);
        }
    }
}

#[needs(wire)]
#[test]
fn every_block_of_a_whole_response_can_be_sent_back_as_it_came() {
    for exchange in exchanges().iter().filter(|exchange| exchange.status == 200) {
        let Ok(body) = serde_json::from_slice::<Value>(&exchange.body) else { continue };
        let blocks = match exchange.api {
            Api::Anthropic => &body["content"],
            Api::OpenAiResponses => &body["output"],
            Api::Gemini => &body["candidates"][0]["content"]["parts"],
            Api::OpenAiChat | Api::Ollama => continue,
        };
        let came: Vec<Value> = blocks.as_array().into_iter().flatten().map(informative).collect();
        let response = decode(exchange.api, &exchange.body).response.unwrap();
        let sent: Vec<Value> =
            response.message.parts.iter().map(|part| sent_back(exchange.api, part)).collect();
        assert_eq!(sent.iter().map(informative).collect::<Vec<_>>(), came, "{}", exchange.id);
    }
}

/// Builds the block that a provider would get back for a part.
fn sent_back(api: Api, part: &Part) -> Value {
    let arguments = |call: &ToolCall| serde_json::from_str::<Value>(&call.arguments).unwrap();
    match (part, api) {
        (part, _) if raw(part).is_some() => raw(part).unwrap().value.clone(),
        (Part::Text { text, .. }, Api::Anthropic) => json!({"type": "text", "text": text}),
        (Part::Text { text, .. }, _) => json!({"text": text}),
        (Part::Thinking { text, signature, .. }, Api::Anthropic) => {
            json!({"type": "thinking", "thinking": text, "signature": signature})
        }
        (Part::Thinking { text, signature, .. }, _) => {
            json!({"text": text, "thought": true, "thoughtSignature": signature})
        }
        (Part::ToolCall(call), Api::Anthropic) => {
            json!({"type": "tool_use", "id": call.id, "name": call.name, "input": arguments(call)})
        }
        (Part::ToolCall(call), _) => json!({"functionCall": {"name": call.name, "args": arguments(call)}}),
        (part, _) => panic!("{part:?}"),
    }
}

/// Leaves out the keys of a block that say nothing.
fn informative(block: &Value) -> Value {
    let fields = block.as_object().unwrap().iter();
    let kept = fields.filter(|(key, value)| !json::is_nothing(value) || *key == "input");
    kept.map(|(key, value)| (key.clone(), value.clone())).collect()
}

fn differences_of_answer(exchange: &Exchange, decoded: &Decoded) -> Vec<String> {
    let expect = &exchange.expect;
    match (&decoded.response, expect["error"].is_null()) {
        (Ok(response), true) => {
            let seen = view(exchange.api, response);
            let mut wrong = differences(&without_empty_ids(expect), &seen);
            wrong.extend(different("text given out", &json!(decoded.text), &json!(response.message.text())));
            wrong.extend(different("thinking given out", &json!(decoded.thinking), &seen["all_thinking"]));
            wrong.extend(different("usage", &json!(normal_usage(exchange)), &json!(response.usage)));
            wrong.extend(different(
                "server calls",
                &named_calls(exchange.api, expect),
                &seen_calls(exchange.api, response),
            ));
            wrong.extend(different("stop", &json!(normal_stop(exchange)), &json!(response.stop)));
            wrong
        }
        (Err(error), false) => [
            different("class", &expect["error"]["class"], &class(error.kind)),
            different("message", &expect["error"]["message"], &json!(error.message)),
            different("text before", &expect["text"], &json!(decoded.text)),
            different(
                "thinking before",
                expect.get("thinking").unwrap_or(&json!("")),
                &json!(decoded.thinking),
            ),
        ]
        .into_iter()
        .flatten()
        .collect(),
        (result, _) => vec![format!("{result:?} instead of {}", expect["error"])],
    }
}

/// Returns the ids of the server-side calls that a recording names, without lists and outputs of tools.
fn named_calls(api: Api, expect: &Value) -> Value {
    let calls = expect["server_tool_calls"].as_array().into_iter().flatten();
    let is_call = |call: &&Value| api == Api::Anthropic || call["name"].as_str().unwrap().ends_with("_call");
    calls.filter(is_call).map(|call| call["id"].clone()).collect()
}

/// Returns the ids of the calls that were seen, without those that only end here. The recordings know none
/// of Gemini.
fn seen_calls(api: Api, response: &ModelResponse) -> Value {
    let calls = response.server_calls.iter().filter(|call| api != Api::Gemini && !call.input.is_null());
    calls.map(|call| json!(call.id)).collect()
}

/// An empty id is not an id.
fn without_empty_ids(expect: &Value) -> Value {
    let mut expect = expect.clone();
    let calls = expect["tool_calls"].as_array_mut().into_iter().flatten();
    calls.filter(|call| call["id"] == "").for_each(|call| call["id"] = Value::Null);
    expect
}

fn differences_of_failure(exchange: &Exchange) -> Vec<String> {
    let expect = &exchange.expect["error"];
    let value = serde_json::from_slice(&exchange.body).unwrap_or_default();
    let failure = Failure::parse(&value, Some(exchange.status), &exchange.body);
    let header = |name: &str| exchange.headers.get(name)?.as_str();
    let error = from_response(exchange.status, &header, &exchange.body, Timestamp::UNIX_EPOCH);
    let message = format!("HTTP {}: {}", exchange.status, expect["message"].as_str().unwrap());
    let code = match &expect["code"] {
        Value::Number(code) => json!(code.to_string()),
        code => code.clone(),
    };
    let retry_after = expect["retry_after"].as_str().map(|text| text.trim_end_matches('s').parse().unwrap());
    [
        different("status", &expect["status"], &json!(exchange.status)),
        different("type", &expect["type"], &json!(failure.type_name)),
        different("code", &code, &json!(failure.code)),
        different("message", &json!(message), &json!(error.message)),
        different("class", &expect["class"], &class(error.kind)),
        different("wait", &json!(retry_after.map(Duration::from_secs)), &json!(error.retry_after)),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn different(what: &str, expected: &Value, seen: &Value) -> Option<String> {
    (expected != seen).then(|| format!("{what} is {seen} instead of {expected}"))
}

/// Compares every key of `expect` that says something about an answer.
fn differences(expect: &Value, seen: &Value) -> Vec<String> {
    let keys = [
        "text",
        "tool_calls",
        "thinking",
        "thinking_present",
        "thinking_signatures",
        "redacted_thinking",
        "encrypted_reasoning",
        "server_tool_calls",
        "other_blocks",
        "stop_reason",
        "usage",
        "refusal",
        "grounding",
    ];
    // The recordings count the citations of streams only.
    let citations = Some("citations").filter(|key| !expect[key].is_null());
    keys.into_iter().chain(citations).filter_map(|key| different(key, &expect[key], &seen[key])).collect()
}

/// Shows a response as the recordings describe it; absent where they say nothing.
fn view(api: Api, response: &ModelResponse) -> Value {
    let message = &response.message;
    let data = &message.origin.as_ref().unwrap().data;
    let thinking = thoughts(message);
    let hidden = count(message, |block| block["type"] == "redacted_thinking");
    let encrypted =
        count(message, |block| block["type"] == "reasoning" && block["encrypted_content"].is_string());
    let is_reasoning = |part: &Part| {
        matches!(part, Part::Thinking { .. }) || raw(part).is_some_and(|raw| raw.value["type"] == "reasoning")
    };
    json!({
        "text": message.text(),
        "tool_calls": message.tool_calls().map(call).collect::<Vec<_>>(),
        "thinking": some(thinking.clone()),
        "all_thinking": thinking,
        "thinking_present": hidden > 0 || message.parts.iter().any(is_reasoning),
        "thinking_signatures": some(signatures(message)),
        "redacted_thinking": some(hidden),
        "encrypted_reasoning": some(encrypted),
        "server_tool_calls": some(server_calls(api, message)),
        "other_blocks": some(other_blocks(api, message)),
        "stop_reason": data["stop_reason"],
        "usage": raw_usage(api, &data["usage"]),
        "refusal": if matches!(api, Api::OpenAiChat | Api::OpenAiResponses) { data["refusal"].clone() } else { Value::Null },
        "citations": some(citations(api, message)),
        "grounding": some(!data["other"]["groundingMetadata"].is_null()),
    })
}

/// Returns nothing for a value that says nothing.
fn some<T: Default + PartialEq + serde::Serialize>(value: T) -> Value {
    if value == T::default() { Value::Null } else { json!(value) }
}

fn thoughts(message: &Message) -> String {
    let texts = message.parts.iter().filter_map(|part| match part {
        Part::Thinking { text, .. } => Some(&**text),
        _ => None,
    });
    texts.collect()
}

fn raw(part: &Part) -> Option<&ProviderBlock> {
    match part {
        Part::Text { raw, .. } | Part::Thinking { raw, .. } | Part::ToolCall(ToolCall { raw, .. }) => {
            raw.as_ref()
        }
        Part::Opaque(block) => Some(block),
        _ => None,
    }
}

fn count(message: &Message, fits: impl Fn(&Value) -> bool) -> usize {
    message.parts.iter().filter_map(raw).filter(|block| fits(&block.value)).count()
}

fn call(call: &ToolCall) -> Value {
    let made = call.id.starts_with(decode::GENERATED_ID);
    let id = if made { Value::Null } else { json!(call.id) };
    match serde_json::from_str::<Value>(&call.arguments) {
        Ok(arguments) => json!({"id": id, "name": call.name, "args": arguments}),
        Err(_) => json!({"id": id, "name": call.name, "args": null, "args_raw": call.arguments}),
    }
}

fn signatures(message: &Message) -> Vec<String> {
    let signature = |part: &Part| match part {
        Part::Thinking { signature: Some(signature), .. } => Some(signature.clone()),
        part => raw(part)?.value["thoughtSignature"].as_str().map(str::to_owned),
    };
    message.parts.iter().filter_map(signature).collect()
}

fn opaque(message: &Message) -> impl Iterator<Item = &Value> {
    message.parts.iter().filter_map(|part| match part {
        Part::Opaque(block) => Some(&block.value),
        _ => None,
    })
}

fn server_calls(api: Api, message: &Message) -> Vec<Value> {
    let is_call = |block: &&Value| {
        let kind = block["type"].as_str().unwrap_or_default();
        match api {
            Api::Anthropic => matches!(kind, "server_tool_use" | "mcp_tool_use"),
            Api::OpenAiResponses => !matches!(kind, "reasoning" | "message"),
            _ => false,
        }
    };
    let show = |block: &Value| match api {
        Api::Anthropic => json!({"id": block["id"], "name": block["name"], "args": block["input"]}),
        _ => json!({"id": block["id"], "name": block["type"], "args": null}),
    };
    opaque(message).filter(is_call).map(show).collect()
}

fn other_blocks(api: Api, message: &Message) -> Vec<String> {
    let name = |block: &Value| match api {
        Api::Anthropic => {
            let kind = block["type"].as_str().unwrap_or_default();
            let is_known = matches!(kind, "server_tool_use" | "mcp_tool_use" | "redacted_thinking");
            (!is_known).then(|| kind.to_owned())
        }
        Api::Gemini => block.as_object()?.keys().find(|key| *key != "thoughtSignature").cloned(),
        _ => None,
    };
    opaque(message).filter_map(name).collect()
}

fn citations(api: Api, message: &Message) -> usize {
    let blocks = message.parts.iter().filter_map(raw).map(|block| &block.value["citations"]);
    if api == Api::Anthropic { blocks.filter_map(Value::as_array).map(Vec::len).sum() } else { 0 }
}

/// Returns the provider's own numbers, in the order of the table of the recordings.
fn raw_usage(api: Api, usage: &Value) -> Value {
    let paths = match api {
        Api::Anthropic => [
            "/input_tokens",
            "/output_tokens",
            "/cache_read_input_tokens",
            "/cache_creation_input_tokens",
            "/output_tokens_details/thinking_tokens",
        ],
        Api::OpenAiChat => [
            "/prompt_tokens",
            "/completion_tokens",
            "/prompt_tokens_details/cached_tokens",
            "/prompt_tokens_details/cache_write_tokens",
            "/completion_tokens_details/reasoning_tokens",
        ],
        Api::OpenAiResponses => [
            "/input_tokens",
            "/output_tokens",
            "/input_tokens_details/cached_tokens",
            "/input_tokens_details/cache_write_tokens",
            "/output_tokens_details/reasoning_tokens",
        ],
        Api::Gemini => [
            "/promptTokenCount",
            "/candidatesTokenCount",
            "/cachedContentTokenCount",
            "/none",
            "/thoughtsTokenCount",
        ],
        Api::Ollama => ["/prompt_eval_count", "/eval_count", "/none", "/none", "/none"],
    };
    let [input, output, cache_read, cache_write, reasoning] = paths.map(|path| usage.pointer(path));
    let cache_read = cache_read.or_else(|| usage.get("prompt_cache_hit_tokens"));
    json!({
        "input": input,
        "output": output,
        "cache_read": cache_read,
        "cache_write": cache_write,
        "reasoning": reasoning,
    })
}

/// Works out from the provider's numbers what they mean to us.
fn normal_usage(exchange: &Exchange) -> Usage {
    let number = |key: &str| exchange.expect["usage"][key].as_u64().unwrap_or(0);
    let (cache_read, cache_write, reasoning) =
        (number("cache_read"), number("cache_write"), number("reasoning"));
    let cached = if exchange.api == Api::Anthropic { 0 } else { cache_read + cache_write };
    let beside = if exchange.api == Api::Gemini { reasoning } else { 0 };
    let mut usage =
        super::usage(number("input") - cached, number("output") + beside, cache_read, cache_write, reasoning);
    let body = String::from_utf8_lossy(&exchange.body);
    let calls = exchange.expect["server_tool_calls"].as_array().into_iter().flatten();
    usage.searches = match exchange.api {
        Api::Anthropic => last_number(&body, "web_search_requests"),
        Api::OpenAiResponses => calls.filter(|call| call["name"] == "web_search_call").count() as u64,
        Api::Gemini => u64::from(body.contains("\"webSearchQueries\"")),
        Api::OpenAiChat | Api::Ollama => 0,
    };
    if exchange.api == Api::Gemini {
        usage.input += last_number(&body, "toolUsePromptTokenCount");
    }
    if exchange.api == Api::OpenAiChat {
        usage.output = usage.output.max(last_number(&body, "total_tokens").saturating_sub(number("input")));
    }
    usage
}

fn last_number(body: &str, key: &str) -> u64 {
    let Some((_, rest)) = body.rsplit_once(&format!("\"{key}\":")) else { return 0 };
    let digits: String = rest.trim_start().chars().take_while(char::is_ascii_digit).collect();
    digits.parse().unwrap_or(0)
}

fn normal_stop(exchange: &Exchange) -> StopReason {
    let expect = &exchange.expect;
    let asks = expect["tool_calls"].as_array().is_some_and(|calls| !calls.is_empty());
    match expect["stop_reason"].as_str().unwrap() {
        _ if expect["refusal"].is_string() => StopReason::Refusal,
        "end_turn" | "stop" | "STOP" | "completed" | "tool_use" | "tool_calls" if asks => StopReason::ToolUse,
        "end_turn" | "stop" | "STOP" | "completed" => StopReason::EndTurn,
        "max_tokens" | "length" | "MAX_TOKENS" | "incomplete:max_output_tokens" => StopReason::MaxTokens,
        "refusal" | "SAFETY" | "MODEL_ARMOR" => StopReason::Refusal,
        "stop_sequence" => StopReason::StopSequence,
        "pause_turn" => StopReason::Pause,
        word => StopReason::Other(word.into()),
    }
}

fn class(kind: ModelErrorKind) -> Value {
    json!(match kind {
        ModelErrorKind::Invalid => "invalid_request".to_owned(),
        kind => json!(kind).as_str().unwrap().to_owned(),
    })
}
