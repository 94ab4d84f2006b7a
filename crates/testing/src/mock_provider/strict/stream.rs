//! A whole answer as the frames of a stream.

use llm_do_provider_rules::Protocol;
use serde_json::{Value, json};

/// Splits the body of an answer into frames.
pub(super) fn frames(protocol: Protocol, answer: &Value) -> Vec<String> {
    match protocol {
        Protocol::AnthropicMessages => anthropic(answer).iter().map(event).collect(),
        Protocol::OpenAiResponses => responses(answer).iter().map(event).collect(),
        Protocol::OpenAiChat => chat(answer),
        Protocol::Gemini => vec![data(answer)],
        Protocol::Ollama => ollama(answer).iter().map(|line| format!("{line}\n")).collect(),
    }
}

fn data(value: &Value) -> String {
    format!("data: {value}\n\n")
}

/// An event whose name is its type.
fn event(value: &Value) -> String {
    format!("event: {}\n{}", value["type"].as_str().unwrap_or_default(), data(value))
}

fn anthropic(answer: &Value) -> Vec<Value> {
    let mut start = answer.clone();
    (start["content"], start["stop_reason"]) = (json!([]), Value::Null);
    let mut events = vec![json!({"type": "message_start", "message": start})];
    for (index, block) in answer["content"].as_array().into_iter().flatten().enumerate() {
        let (first, deltas) = anthropic_block(block);
        events.push(json!({"type": "content_block_start", "index": index, "content_block": first}));
        events.extend(
            deltas
                .into_iter()
                .map(|delta| json!({"type": "content_block_delta", "index": index, "delta": delta})),
        );
        events.push(json!({"type": "content_block_stop", "index": index}));
    }
    let delta = json!({"stop_reason": answer["stop_reason"], "stop_sequence": null});
    events.push(json!({"type": "message_delta", "delta": delta, "usage": answer["usage"]}));
    events.push(json!({"type": "message_stop"}));
    events
}

/// Returns how a block starts, and what is added to it.
fn anthropic_block(block: &Value) -> (Value, Vec<Value>) {
    let mut first = block.clone();
    let deltas = match block["type"].as_str() {
        Some("text") => {
            first["text"] = "".into();
            vec![json!({"type": "text_delta", "text": block["text"]})]
        }
        Some("thinking") => {
            (first["thinking"], first["signature"]) = ("".into(), "".into());
            let signature = json!({"type": "signature_delta", "signature": block["signature"]});
            vec![json!({"type": "thinking_delta", "thinking": block["thinking"]}), signature]
        }
        Some("tool_use" | "server_tool_use") => {
            first["input"] = json!({});
            vec![json!({"type": "input_json_delta", "partial_json": block["input"].to_string()})]
        }
        _ => Vec::new(),
    };
    (first, deltas)
}

fn responses(answer: &Value) -> Vec<Value> {
    let mut created = answer.clone();
    (created["output"], created["status"]) = (json!([]), "in_progress".into());
    let mut events = vec![json!({"type": "response.created", "response": created})];
    for (index, item) in answer["output"].as_array().into_iter().flatten().enumerate() {
        if let Some(text) = item["content"][0]["text"].as_str() {
            events.push(json!({"type": "response.output_text.delta", "output_index": index, "delta": text}));
        }
        events.push(json!({"type": "response.output_item.done", "output_index": index, "item": item}));
    }
    events.push(json!({"type": "response.completed", "response": answer}));
    events
}

fn chat(answer: &Value) -> Vec<String> {
    let choice = &answer["choices"][0];
    let mut delta = choice["message"].clone();
    for (index, call) in delta["tool_calls"].as_array_mut().into_iter().flatten().enumerate() {
        call["index"] = index.into();
    }
    let chunk = |delta: Value, finish: &Value, usage: Value| {
        let choices = json!([{"index": 0, "delta": delta, "finish_reason": finish}]);
        data(
            &json!({"id": answer["id"], "object": "chat.completion.chunk", "choices": choices, "usage": usage}),
        )
    };
    let usage = data(
        &json!({"id": answer["id"], "object": "chat.completion.chunk", "choices": [], "usage": answer["usage"]}),
    );
    vec![
        chunk(delta, &Value::Null, Value::Null),
        chunk(json!({}), &choice["finish_reason"], Value::Null),
        usage,
        "data: [DONE]\n\n".to_owned(),
    ]
}

fn ollama(answer: &Value) -> Vec<Value> {
    let first = json!({"model": answer["model"], "created_at": answer["created_at"], "message": answer["message"], "done": false});
    let mut last = answer.clone();
    last["message"] = json!({"role": "assistant", "content": ""});
    vec![first, last]
}
