//! What the provider's own tools did, told from the blocks that they left in an answer.
//!
//! The blocks stay in the message and go back as they came. Here they are shown once more in one shape for all
//! providers, without what is only for machines: images as text, encrypted results.

use llm_do_core::{Part, ServerCall};
use serde_json::{Map, Value, json};

use crate::wire::json::{is_nothing, text};

/// Beyond this many letters, a text in the letters of base64 is not a word but data.
const MAX_WORD_LEN: usize = 256;

/// Items of Responses that the client has to run.
const RUN_BY_CLIENT: &[&str] =
    &["apply_patch_call", "computer_call", "custom_tool_call", "local_shell_call", "shell_call"];

/// Returns the calls of an answer of Anthropic: blocks of calls, and the blocks that answer them.
pub(super) fn anthropic_calls(parts: &[Part]) -> Vec<ServerCall> {
    let mut calls: Vec<ServerCall> = Vec::new();
    for block in blocks(parts) {
        let kind = text(block, "type").unwrap_or_default();
        if matches!(kind, "server_tool_use" | "mcp_tool_use") {
            let name = canonical(text(block, "name").unwrap_or_default());
            calls.push(call(text(block, "id"), name, block.get("input")));
        } else if let (Some(id), Some(content)) = (text(block, "tool_use_id"), block.get("content")) {
            let known = calls.iter().position(|call| call.id == id);
            // The call may be in the message before, if the turn was paused.
            let index = known.unwrap_or_else(|| {
                let name = kind.strip_suffix("_tool_result").unwrap_or(kind);
                calls.push(call(Some(id), canonical(name), None));
                calls.len() - 1
            });
            calls[index].output = Some(readable(content));
            calls[index].is_error = is_anthropic_error(block, content);
        }
    }
    calls
}

fn is_anthropic_error(block: &Value, content: &Value) -> bool {
    let is_marked = block.get("is_error").and_then(Value::as_bool).unwrap_or(false);
    is_marked || text(content, "type").is_some_and(|kind| kind.ends_with("_error"))
}

/// Returns the calls of a response: each is one item.
pub(super) fn responses_calls(parts: &[Part]) -> Vec<ServerCall> {
    blocks(parts).filter_map(call_from_item).collect()
}

fn call_from_item(item: &Value) -> Option<ServerCall> {
    let kind = text(item, "type")?;
    let name = kind.strip_suffix("_call").filter(|_| !RUN_BY_CLIENT.contains(&kind))?;
    let status = text(item, "status").unwrap_or("completed");
    let error = item.get("error").filter(|error| !is_nothing(error));
    let (name, input, output) = match kind {
        "code_interpreter_call" => ("code_execution", only(item, &["code"]), item.get("outputs").cloned()),
        "file_search_call" => (name, only(item, &["queries"]), item.get("results").cloned()),
        "image_generation_call" => {
            (name, only(item, &["revised_prompt", "action"]), Some(only(item, &["size", "output_format"])))
        }
        "mcp_call" => (text(item, "name").unwrap_or(name), arguments(item), item.get("output").cloned()),
        "web_search_call" => (name, item.get("action").cloned().unwrap_or_default(), None),
        _ => (name, arguments(item), None),
    };
    let is_error = status == "failed" || error.is_some();
    let is_over = is_error || matches!(status, "completed" | "incomplete");
    // Some items say no more than that they are done.
    let output = error.cloned().or(output).filter(|output| !is_nothing(output));
    let output = is_over.then(|| output.unwrap_or_else(|| json!({"status": status})));
    let id = text(item, "id").unwrap_or_default().to_owned();
    let (input, output) = (readable(&input), output.as_ref().map(readable));
    Some(ServerCall { id, name: name.into(), input, output, is_error })
}

/// Returns arguments, which some items hold as text.
fn arguments(item: &Value) -> Value {
    match item.get("arguments") {
        Some(Value::String(text)) => serde_json::from_str(text).unwrap_or_else(|_| text.as_str().into()),
        arguments => arguments.cloned().unwrap_or_default(),
    }
}

/// Returns the calls of an answer of Gemini: code with its result, and what the answer is grounded on.
pub(super) fn gemini_calls(parts: &[Part], candidate: &Map<String, Value>) -> Vec<ServerCall> {
    let mut calls: Vec<ServerCall> = Vec::new();
    for block in blocks(parts) {
        if let Some(code) = block.get("executableCode") {
            calls.push(call(text(code, "id"), "code_execution", Some(&only(code, &["language", "code"]))));
        } else if let Some(result) = block.get("codeExecutionResult") {
            let is_open = |call: &&mut ServerCall| call.output.is_none();
            let Some(call) = calls.iter_mut().find(is_open) else { continue };
            call.output = Some(readable(&only(result, &["outcome", "output"])));
            call.is_error = text(result, "outcome").is_some_and(|outcome| outcome != "OUTCOME_OK");
        }
    }
    calls.extend(search(candidate));
    calls.extend(fetches(candidate));
    calls
}

/// Returns the search that an answer is grounded on, where there was one.
fn search(candidate: &Map<String, Value>) -> Option<ServerCall> {
    let grounding = candidate.get("groundingMetadata")?;
    let queries = grounding.get("webSearchQueries").filter(|queries| !is_nothing(queries))?;
    let sources = grounding.get("groundingChunks").and_then(Value::as_array).into_iter().flatten();
    let sources: Vec<&Value> = sources.filter_map(|chunk| chunk.get("web")).collect();
    let mut search = call(None, "web_search", Some(&json!({"queries": queries})));
    search.output = Some(readable(&json!({"sources": sources})));
    Some(search)
}

fn fetches(candidate: &Map<String, Value>) -> Vec<ServerCall> {
    let pages = candidate.get("urlContextMetadata").and_then(|context| context.get("urlMetadata"));
    let fetch = |page: &Value| {
        let status = text(page, "urlRetrievalStatus").unwrap_or_default();
        ServerCall {
            output: Some(json!({"status": status})),
            is_error: status != "URL_RETRIEVAL_STATUS_SUCCESS",
            ..call(None, "web_fetch", Some(&json!({"url": page.get("retrievedUrl")})))
        }
    };
    pages.and_then(Value::as_array).into_iter().flatten().map(fetch).collect()
}

/// Returns whether an answer of Gemini is grounded on a search.
pub(super) fn has_searched(candidate: &Map<String, Value>) -> bool {
    let queries = candidate.get("groundingMetadata").and_then(|grounding| grounding.get("webSearchQueries"));
    queries.is_some_and(|queries| !is_nothing(queries))
}

fn blocks(parts: &[Part]) -> impl Iterator<Item = &Value> {
    parts.iter().filter_map(|part| match part {
        Part::Opaque(block) => Some(&block.value),
        _ => None,
    })
}

fn call(id: Option<&str>, name: &str, input: Option<&Value>) -> ServerCall {
    let (id, input) = (id.unwrap_or_default().to_owned(), input.map(readable).unwrap_or_default());
    ServerCall { id, name: name.into(), input, output: None, is_error: false }
}

/// Anthropic's code execution has several tools.
fn canonical(name: &str) -> &str {
    if name.ends_with("code_execution") { "code_execution" } else { name }
}

/// Returns these fields of an object, as far as it has them.
fn only(object: &Value, keys: &[&str]) -> Value {
    let field =
        |key: &&str| Some(((*key).to_owned(), object.get(key).filter(|value| !value.is_null())?.clone()));
    Value::Object(keys.iter().filter_map(field).collect())
}

/// Returns a value without data: what is large and not for reading is in the message already.
fn readable(value: &Value) -> Value {
    match value {
        Value::Array(values) => values.iter().filter(|value| !is_data(value)).map(readable).collect(),
        Value::Object(map) => {
            let fields = map.iter().filter(|(key, value)| !key.starts_with("encrypted_") && !is_data(value));
            fields.map(|(key, value)| (key.clone(), readable(value))).collect()
        }
        value => value.clone(),
    }
}

fn is_data(value: &Value) -> bool {
    let Value::String(text) = value else { return false };
    let text = text.split_once(";base64,").map_or(text.as_str(), |(_, data)| data);
    let is_letter =
        |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'-' | b'_' | b'=');
    text.len() > MAX_WORD_LEN && text.bytes().all(is_letter)
}
