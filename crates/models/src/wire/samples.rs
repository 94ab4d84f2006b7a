//! One small stream for each API, for tests and as seeds of fuzzing.

use super::Api;

/// Anthropic: thinking, text with a citation, a server-side tool, a call in pieces.
pub(super) const ANTHROPIC: &str = r#"event: message_start
data: {"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"c","content":[],"stop_reason":null,"usage":{"input_tokens":10,"cache_read_input_tokens":7,"cache_creation_input_tokens":5,"output_tokens":1}}}

event: ping
data: {"type":"ping"}

event: content_block_start
data: {"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}

event: content_block_delta
data: {"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"Grüße, "}}

event: content_block_delta
data: {"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"then."}}

event: content_block_delta
data: {"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"c2ln"}}

event: content_block_start
data: {"type":"content_block_start","index":1,"content_block":{"type":"text","text":""}}

event: content_block_delta
data: {"type":"content_block_delta","index":1,"delta":{"type":"citations_delta","citation":{"cited_text":"a"}}}

event: content_block_delta
data: {"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"Hi 🚀"}}

event: content_block_start
data: {"type":"content_block_start","index":2,"content_block":{"type":"server_tool_use","id":"s1","name":"web_search","input":{}}}

event: content_block_delta
data: {"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":"{\"query\":\"x\"}"}}

event: content_block_start
data: {"type":"content_block_start","index":3,"content_block":{"type":"redacted_thinking","data":"b3BhcXVl"}}

event: content_block_start
data: {"type":"content_block_start","index":4,"content_block":{"type":"tool_use","id":"t1","name":"read_file","input":{}}}

event: content_block_delta
data: {"type":"content_block_delta","index":4,"delta":{"type":"input_json_delta","partial_json":"{\"path\": "}}

event: content_block_delta
data: {"type":"content_block_delta","index":4,"delta":{"type":"input_json_delta","partial_json":"\"a\"}"}}

event: content_block_start
data: {"type":"content_block_start","index":5,"content_block":{"type":"tool_use","id":"t2","name":"ping","input":{},"caller":{"type":"direct"}}}

event: content_block_stop
data: {"type":"content_block_stop","index":5}

event: message_delta
data: {"type":"message_delta","delta":{"stop_reason":"tool_use","stop_sequence":null},"usage":{"output_tokens":42,"output_tokens_details":{"thinking_tokens":3}}}

event: message_stop
data: {"type":"message_stop"}

"#;

/// Chat Completions: thinking, text, two calls whose pieces are mixed, usage in a chunk without choices.
pub(super) const CHAT: &str = r#"data: {"id":"c1","model":"g","choices":[{"index":0,"delta":{"role":"assistant","content":"","reasoning_content":"Two files."},"finish_reason":null}],"usage":null}

data: {"id":"c1","choices":[{"index":0,"delta":{"content":"Reading."},"finish_reason":null}]}

data: {"id":"c1","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"a","type":"function","function":{"name":"read_file","arguments":""}},{"index":1,"id":"b","type":"function","function":{"name":"ping","arguments":""},"extra_content":{"google":{"thought_signature":"c2ln"}}}]},"finish_reason":null}]}

data: {"id":"c1","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\"path\":"}}]},"finish_reason":null}]}

data: {"id":"c1","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"\"a\"}"}}]},"finish_reason":null}]}

data: {"id":"c1","choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}

data: {"id":"c1","choices":[],"usage":{"prompt_tokens":100,"completion_tokens":20,"total_tokens":120,"prompt_tokens_details":{"cached_tokens":60},"completion_tokens_details":{"reasoning_tokens":8}}}

data: [DONE]

"#;

/// Responses: reasoning with a summary and one without, a server-side tool, a message, a call.
pub(super) const RESPONSES: &str = r#"event: response.created
data: {"type":"response.created","response":{"id":"resp_1","object":"response","status":"in_progress","output":[],"tools":[{"type":"web_search"}],"usage":null}}

event: response.reasoning_summary_text.delta
data: {"type":"response.reasoning_summary_text.delta","output_index":0,"delta":"Look."}

event: response.output_item.done
data: {"type":"response.output_item.done","output_index":0,"item":{"id":"rs_1","type":"reasoning","encrypted_content":"old","summary":[{"type":"summary_text","text":"Look."}]}}

event: response.output_text.delta
data: {"type":"response.output_text.delta","output_index":3,"delta":"Found"}

event: response.output_text.delta
data: {"type":"response.output_text.delta","output_index":3,"delta":" it."}

event: response.completed
data: {"type":"response.completed","response":{"id":"resp_1","object":"response","status":"completed","error":null,"incomplete_details":null,"tools":[{"type":"web_search"}],"output":[{"id":"rs_1","type":"reasoning","encrypted_content":"new","summary":[{"type":"summary_text","text":"Look."}]},{"id":"ws_1","type":"web_search_call","status":"completed"},{"id":"rs_2","type":"reasoning","encrypted_content":"x","summary":[]},{"id":"msg_1","type":"message","role":"assistant","content":[{"type":"output_text","text":"Found it.","annotations":[{"type":"url_citation","url":"u"}]}]},{"id":"fc_1","type":"function_call","call_id":"call_1","name":"ping","arguments":""}],"usage":{"input_tokens":50,"input_tokens_details":{"cached_tokens":20},"output_tokens":9,"output_tokens_details":{"reasoning_tokens":4},"total_tokens":59}}}

"#;

/// Gemini: CRLF, thoughts, signed text, code that the provider ran, two calls without ids.
pub(super) const GEMINI: &str = "data: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"Hm\",\"thought\":true}],\"role\":\"model\"},\"index\":0}],\"responseId\":\"r1\"}\r\n\r\ndata: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"m.\",\"thought\":true},{\"text\":\"One \"}]}}]}\r\n\r\ndata: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"two\"},{\"text\":\" three\",\"thoughtSignature\":\"c2ln\"},{\"executableCode\":{\"code\":\"1\"}}]}}]}\r\n\r\ndata: {\"candidates\":[{\"content\":{\"parts\":[{\"functionCall\":{\"name\":\"read_file\",\"args\":{\"path\":\"a\"}},\"thoughtSignature\":\"YQ\"},{\"functionCall\":{\"name\":\"ping\"}}]},\"finishReason\":\"STOP\",\"groundingMetadata\":{\"webSearchQueries\":[\"q\"]}}],\"usageMetadata\":{\"promptTokenCount\":30,\"cachedContentTokenCount\":10,\"toolUsePromptTokenCount\":4,\"candidatesTokenCount\":6,\"thoughtsTokenCount\":5},\"responseId\":\"r1\"}\r\n\r\n";

/// Ollama: thinking, text, a call with an id and one without.
pub(super) const OLLAMA: &str = r#"{"model":"q","created_at":"t1","message":{"role":"assistant","content":"","thinking":"Hm."},"done":false}
{"model":"q","created_at":"t2","message":{"role":"assistant","content":"Well, "},"done":false}
{"model":"q","created_at":"t3","message":{"role":"assistant","content":"yes.","tool_calls":[{"id":"o1","function":{"index":0,"name":"read_file","arguments":{"path":"a"}}},{"function":{"name":"ping","arguments":{}}}]},"done":false}
{"model":"q","created_at":"t4","message":{"role":"assistant","content":""},"done":true,"done_reason":"stop","eval_count":7,"prompt_eval_count":11,"total_duration":5}
"#;

/// All of them.
pub(super) const STREAMS: [(Api, &str); 5] = [
    (Api::Anthropic, ANTHROPIC),
    (Api::OpenAiChat, CHAT),
    (Api::OpenAiResponses, RESPONSES),
    (Api::Gemini, GEMINI),
    (Api::Ollama, OLLAMA),
];
