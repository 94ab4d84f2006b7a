//! What the provider's own tools did, in one shape for all providers.

use serde_json::{Value, json};

use super::super::Api;
use super::decode;
use super::exchanges::{ANTHROPIC, GEMINI, RESPONSES};

/// Returns the calls and the number of searches of an answer.
fn calls(api: Api, body: &str) -> (Value, u64) {
    let response = decode(api, body).response.unwrap();
    (json!(response.server_calls), response.usage.searches)
}

fn anthropic(content: Value) -> String {
    json!({"type": "message", "id": "m", "role": "assistant", "stop_reason": "end_turn", "content": content,
        "usage": {"input_tokens": 1, "output_tokens": 1, "server_tool_use": {"web_search_requests": 2}}})
    .to_string()
}

#[test]
fn calls_of_anthropic_are_paired_with_their_results() {
    let secret = "x".repeat(2_000);
    let body = anthropic(json!([
        {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {"query": "q"}},
        {"type": "web_search_tool_result", "tool_use_id": "s1", "content": [
            {"type": "web_search_result", "url": "u", "title": "T", "encrypted_content": secret}]},
        {"type": "server_tool_use", "id": "s2", "name": "web_fetch", "input": {"url": "u"}},
        {"type": "web_fetch_tool_result", "tool_use_id": "s2",
            "content": {"type": "web_fetch_tool_error", "error_code": "url_not_accessible"}},
        {"type": "server_tool_use", "id": "s3", "name": "bash_code_execution", "input": {"command": "ls"}},
        {"type": "mcp_tool_use", "id": "s4", "name": "look_up", "server_name": "x", "input": {}},
        {"type": "mcp_tool_result", "tool_use_id": "s4", "is_error": true, "content": []},
        {"type": "text", "text": "Done."},
    ]));
    assert_eq!(
        calls(Api::Anthropic, &body),
        (
            json!([
                {"id": "s1", "name": "web_search", "input": {"query": "q"},
                    "output": [{"type": "web_search_result", "url": "u", "title": "T"}]},
                {"id": "s2", "name": "web_fetch", "input": {"url": "u"}, "is_error": true,
                    "output": {"type": "web_fetch_tool_error", "error_code": "url_not_accessible"}},
                {"id": "s3", "name": "code_execution", "input": {"command": "ls"}},
                {"id": "s4", "name": "look_up", "input": {}, "output": [], "is_error": true},
            ]),
            2
        )
    );
}

#[test]
fn a_result_whose_call_stands_in_an_earlier_message_is_told() {
    let body = anthropic(json!([
        {"type": "bash_code_execution_tool_result", "tool_use_id": "s9", "content": {"stdout": "1"}},
    ]));
    let expected = json!([{"id": "s9", "name": "code_execution", "output": {"stdout": "1"}}]);
    assert_eq!(calls(Api::Anthropic, &body).0, expected);
}

#[test]
fn a_streamed_call_has_the_input_that_was_streamed() {
    let expected = json!([{"id": "s1", "name": "web_search", "input": {"query": "x"}}]);
    assert_eq!(calls(Api::Anthropic, ANTHROPIC).0, expected);
}

#[test]
fn items_of_responses_are_calls_unless_the_client_runs_them() {
    let image = "iVBORw0KGgo".repeat(100);
    let body = json!({"object": "response", "id": "r", "status": "completed", "usage": {"input_tokens": 1},
    "output": [
        {"type": "web_search_call", "id": "w1", "status": "completed",
            "action": {"type": "search", "query": "q"}},
        {"type": "web_search_call", "id": "w2", "status": "failed", "action": {"type": "open_page"}},
        {"type": "code_interpreter_call", "id": "c1", "status": "completed", "code": "1+1",
            "container_id": "x", "outputs": [{"type": "logs", "logs": "2"}]},
        {"type": "image_generation_call", "id": "i1", "status": "completed", "result": image,
            "revised_prompt": "A cat.", "size": "1024x1024"},
        {"type": "file_search_call", "id": "f1", "status": "in_progress", "queries": ["q"], "results": null},
        {"type": "mcp_call", "id": "m1", "name": "look_up", "arguments": "{\"a\":1}", "output": "text",
            "error": null},
        {"type": "computer_call", "id": "x1", "status": "completed"},
        {"type": "mcp_list_tools", "id": "x2"},
    ]});
    assert_eq!(
        calls(Api::OpenAiResponses, &body.to_string()),
        (
            json!([
                {"id": "w1", "name": "web_search", "input": {"type": "search", "query": "q"},
                    "output": {"status": "completed"}},
                {"id": "w2", "name": "web_search", "input": {"type": "open_page"},
                    "output": {"status": "failed"}, "is_error": true},
                {"id": "c1", "name": "code_execution", "input": {"code": "1+1"},
                    "output": [{"type": "logs", "logs": "2"}]},
                {"id": "i1", "name": "image_generation", "input": {"revised_prompt": "A cat."},
                    "output": {"size": "1024x1024"}},
                {"id": "f1", "name": "file_search", "input": {"queries": ["q"]}},
                {"id": "m1", "name": "look_up", "input": {"a": 1}, "output": "text"},
            ]),
            2
        )
    );
    let streamed = json!([{"id": "ws_1", "name": "web_search", "output": {"status": "completed"}}]);
    assert_eq!(calls(Api::OpenAiResponses, RESPONSES), (streamed, 1));
}

#[test]
fn code_searches_and_pages_of_gemini_are_calls() {
    let body = json!({"candidates": [{"finishReason": "STOP",
        "content": {"parts": [
            {"executableCode": {"language": "PYTHON", "code": "1/0"}},
            {"codeExecutionResult": {"outcome": "OUTCOME_FAILED", "output": "ZeroDivisionError"}},
            {"text": "No."},
        ]},
        "groundingMetadata": {"webSearchQueries": ["q"], "groundingChunks": [{"web": {"uri": "u", "title": "T"}}]},
        "urlContextMetadata": {"urlMetadata": [
            {"retrievedUrl": "u", "urlRetrievalStatus": "URL_RETRIEVAL_STATUS_SUCCESS"}]},
    }], "usageMetadata": {"promptTokenCount": 1}});
    assert_eq!(
        calls(Api::Gemini, &body.to_string()),
        (
            json!([
                {"name": "code_execution", "input": {"language": "PYTHON", "code": "1/0"}, "is_error": true,
                    "output": {"outcome": "OUTCOME_FAILED", "output": "ZeroDivisionError"}},
                {"name": "web_search", "input": {"queries": ["q"]},
                    "output": {"sources": [{"uri": "u", "title": "T"}]}},
                {"name": "web_fetch", "input": {"url": "u"},
                    "output": {"status": "URL_RETRIEVAL_STATUS_SUCCESS"}},
            ]),
            1
        )
    );
    let (streamed, searches) = calls(Api::Gemini, GEMINI);
    assert_eq!((streamed.as_array().unwrap().len(), searches), (2, 1));
}
