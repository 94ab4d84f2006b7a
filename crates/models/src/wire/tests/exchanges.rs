//! Small exchanges, one for each thing that an API does in its own way.

use llm_do_core::{ModelErrorKind, ModelResponse, Part, StopReason, Usage};
use serde_json::{Value, json};

use super::super::Api;
use super::super::samples::{ANTHROPIC, CHAT, GEMINI, OLLAMA, RESPONSES, STREAMS};
use super::{decode, decode_pieces, usage};

fn answer(api: Api, body: &str) -> ModelResponse {
    decode(api, body).response.unwrap()
}

/// Shows the parts of a message, and what stands beside them.
fn parts(response: &ModelResponse) -> Value {
    let raw = |raw: &Option<llm_do_core::ProviderBlock>| raw.as_ref().map(|raw| raw.value.clone());
    let show = |part: &Part| match part {
        Part::Text { text, raw: block } => json!({"text": text, "raw": raw(block)}),
        Part::Thinking { text, signature, raw: block } => {
            json!({"thinking": text, "signature": signature, "raw": raw(block)})
        }
        Part::ToolCall(call) => {
            json!({"id": call.id, "call": call.name, "arguments": call.arguments, "raw": raw(&call.raw)})
        }
        Part::Opaque(block) => json!({"opaque": block.value}),
        other => panic!("{other:?}"),
    };
    response.message.parts.iter().map(show).collect()
}

fn data(response: &ModelResponse) -> &Value {
    &response.message.origin.as_ref().unwrap().data
}

#[test]
fn anthropic_blocks_are_built_from_their_deltas_and_nothing_is_lost() {
    let decoded = decode(Api::Anthropic, ANTHROPIC);
    let response = decoded.response.unwrap();
    assert_eq!(
        parts(&response),
        json!([
            {"thinking": "Grüße, then.", "signature": "c2ln", "raw": null},
            {"text": "Hi 🚀", "raw": {"type": "text", "text": "Hi 🚀", "citations": [{"cited_text": "a"}]}},
            {"opaque": {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {"query": "x"}}},
            {"opaque": {"type": "redacted_thinking", "data": "b3BhcXVl"}},
            {"id": "t1", "call": "read_file", "arguments": "{\"path\": \"a\"}", "raw": null},
            {"id": "t2", "call": "ping", "arguments": "{}", "raw":
                {"type": "tool_use", "id": "t2", "name": "ping", "input": {}, "caller": {"type": "direct"}}},
        ])
    );
    assert_eq!((response.stop.clone(), response.usage), (StopReason::ToolUse, usage(10, 42, 7, 5, 3)));
    assert_eq!((decoded.text.as_str(), decoded.thinking.as_str()), ("Hi 🚀", "Grüße, then."));
    assert_eq!(data(&response)["id"], "msg_1");
    assert_eq!(data(&response)["stop_reason"], "tool_use");
    assert_eq!(data(&response)["usage"]["cache_creation_input_tokens"], 5);
}

#[test]
fn a_refusal_of_anthropic_keeps_its_words_and_a_pause_is_a_pause() {
    let body = |stop: &str| {
        json!({"type": "message", "id": "m", "content": [], "stop_reason": stop, "usage": {"input_tokens": 1},
            "stop_details": {"explanation": "Not this."}})
        .to_string()
    };
    let refused = answer(Api::Anthropic, &body("refusal"));
    assert_eq!((&refused.stop, &data(&refused)["refusal"]), (&StopReason::Refusal, &json!("Not this.")));
    assert_eq!(answer(Api::Anthropic, &body("pause_turn")).stop, StopReason::Pause);
    assert_eq!(answer(Api::Anthropic, &body("brand_new")).stop, StopReason::Other("brand_new".into()));
}

#[test]
fn unknown_blocks_and_deltas_of_anthropic_survive() {
    let body = "data: {\"type\":\"message_start\",\"message\":{\"id\":\"m\"}}\n\n\
        data: {\"type\":\"brand_new_event\"}\n\n\
        data: {\"type\":\"content_block_delta\",\"index\":7,\"delta\":{\"type\":\"text_delta\",\"text\":\"lost\"}}\n\n\
        data: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"compaction\",\"content\":null}}\n\n\
        data: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"compaction_delta\",\"content\":\"so \"}}\n\n\
        data: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"compaction_delta\",\"content\":\"far\"}}\n\n\
        data: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"}}\n\n\
        data: {\"type\":\"message_stop\"}";
    assert_eq!(
        parts(&answer(Api::Anthropic, body)),
        json!([{"opaque": {"type": "compaction", "content": "so far"}}])
    );
}

#[test]
fn chat_calls_are_put_together_by_index_and_usage_comes_without_choices() {
    let decoded = decode(Api::OpenAiChat, CHAT);
    let response = decoded.response.unwrap();
    assert_eq!(
        parts(&response),
        json!([
            {"thinking": "Two files.", "signature": null, "raw": {"reasoning_content": "Two files."}},
            {"text": "Reading.", "raw": null},
            {"id": "a", "call": "read_file", "arguments": "{\"path\":\"a\"}", "raw": null},
            {"id": "b", "call": "ping", "arguments": "{}", "raw": {
                "id": "b", "type": "function", "function": {"name": "ping", "arguments": ""},
                "extra_content": {"google": {"thought_signature": "c2ln"}}}},
        ])
    );
    assert_eq!((response.stop.clone(), response.usage), (StopReason::ToolUse, usage(40, 20, 60, 0, 8)));
    assert_eq!((decoded.text.as_str(), decoded.thinking.as_str()), ("Reading.", "Two files."));
}

#[test]
fn chat_calls_that_share_an_index_but_not_an_id_are_two() {
    let chunk = |id: &str, name: &str| {
        let call = json!({"index": 0, "id": id, "function": {"name": name, "arguments": "{}"}});
        format!("data: {}\n\n", json!({"choices": [{"delta": {"tool_calls": [call]}}]}))
    };
    let end = "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n";
    let response = answer(Api::OpenAiChat, &[&chunk("a", "one"), &chunk("b", "two"), end].concat());
    let names: Vec<&str> = response.message.tool_calls().map(|call| &*call.name).collect();
    assert_eq!(names, ["one", "two"]);
    assert_eq!(response.stop, StopReason::ToolUse);
}

#[test]
fn chat_calls_without_ids_get_ids_that_are_always_the_same_and_marked() {
    let call = json!({"id": "", "function": {"name": "now", "arguments": "{}"}});
    let message = json!({"content": null, "tool_calls": [call, call]});
    let body =
        json!({"id": "c-1", "choices": [{"message": message, "finish_reason": "tool_calls"}]}).to_string();
    let response = answer(Api::OpenAiChat, &body);
    let ids: Vec<&str> = response.message.tool_calls().map(|call| call.id.as_str()).collect();
    assert_eq!(ids, ["made_call_c-1_0", "made_call_c-1_1"]);
}

#[test]
fn calls_with_one_id_get_two() {
    let call = json!({"id": "a", "function": {"name": "now", "arguments": "{}"}});
    let message = json!({"content": "x", "tool_calls": [call, call]});
    let body =
        json!({"id": "c", "choices": [{"message": message, "finish_reason": "tool_calls"}]}).to_string();
    let response = answer(Api::OpenAiChat, &body);
    let ids: Vec<&str> = response.message.tool_calls().map(|call| call.id.as_str()).collect();
    assert_eq!(ids, ["a", "made_call_c_2"]);
}

#[test]
fn chat_thinking_under_two_names_counts_once_and_an_empty_error_is_none() {
    let message = json!({"content": "x", "reasoning_content": "Hm.", "reasoning": "Hm."});
    let body = json!({"error": {}, "choices": [{"message": message, "finish_reason": "stop"}]}).to_string();
    let decoded = decode(Api::OpenAiChat, body);
    assert_eq!(decoded.thinking, "Hm.");
    assert_eq!(
        parts(&decoded.response.unwrap()),
        json!([
            {"thinking": "Hm.", "signature": null, "raw": {"reasoning_content": "Hm."}},
            {"text": "x", "raw": null},
        ])
    );
}

#[test]
fn chat_arguments_that_are_no_json_stay_as_text() {
    let call = json!({"id": "a", "function": {"name": "write", "arguments": "{\"path\": \"r"}});
    let body =
        json!({"choices": [{"message": {"tool_calls": [call]}, "finish_reason": "length"}]}).to_string();
    let response = answer(Api::OpenAiChat, &body);
    assert_eq!(&*response.message.tool_calls().next().unwrap().arguments, "{\"path\": \"r");
    assert_eq!(response.stop, StopReason::MaxTokens);
}

#[test]
fn a_chat_refusal_is_no_text_and_its_annotations_are_kept() {
    let chunk = |delta: Value| format!("data: {}\n\n", json!({"choices": [{"delta": delta}]}));
    let body = chunk(json!({"refusal": "I "}))
        + &chunk(json!({"refusal": "cannot.", "annotations": [1]}))
        + &chunk(json!({"annotations": [2]}))
        + "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";
    let response = answer(Api::OpenAiChat, &body);
    assert_eq!(parts(&response), json!([{"opaque": {"refusal": "I cannot."}}]));
    assert_eq!(response.stop, StopReason::Refusal);
    assert_eq!(data(&response)["refusal"], "I cannot.");
    assert_eq!(data(&response)["other"]["message"], json!({"annotations": [1, 2]}));
}

#[test]
fn chat_reasoning_details_are_joined_by_index_and_not_said_twice() {
    let chunk = |text: &str| {
        let detail = json!({"type": "reasoning.text", "index": 0, "text": text});
        format!(
            "data: {}\n\n",
            json!({"choices": [{"delta": {"reasoning": text, "reasoning_details": [detail]}}]})
        )
    };
    let signed = json!({"type": "reasoning.text", "index": 0, "signature": "c2ln"});
    let sealed = json!({"type": "reasoning.encrypted", "index": 1, "data": "eA"});
    let end =
        json!({"choices": [{"delta": {"reasoning_details": [signed, sealed]}, "finish_reason": "stop"}]});
    let decoded = decode(Api::OpenAiChat, chunk("a ") + &chunk("b") + &format!("data: {end}\n\n"));
    let whole = json!({"type": "reasoning.text", "index": 0, "text": "a b", "signature": "c2ln"});
    assert_eq!(
        parts(&decoded.response.unwrap()),
        json!([
            {"thinking": "a b", "signature": "c2ln", "raw": {"reasoning_details": [whole]}},
            {"opaque": {"reasoning_details": [sealed]}},
        ])
    );
    assert_eq!(decoded.thinking, "a b");
}

#[test]
fn hidden_chat_reasoning_counts_as_output() {
    let usage_of = json!({"prompt_tokens": 10, "completion_tokens": 2, "total_tokens": 17,
        "completion_tokens_details": {"reasoning_tokens": 5}});
    let body =
        json!({"choices": [{"message": {"content": "x"}, "finish_reason": "stop"}], "usage": usage_of});
    assert_eq!(answer(Api::OpenAiChat, &body.to_string()).usage, usage(10, 7, 0, 0, 5));
}

#[test]
fn the_last_event_of_responses_repeats_the_output_which_counts_once() {
    let decoded = decode(Api::OpenAiResponses, RESPONSES);
    let response = decoded.response.unwrap();
    assert_eq!(decoded.text, "Found it.");
    assert_eq!(decoded.thinking, "Look.");
    let shown = parts(&response);
    assert_eq!(shown.as_array().unwrap().len(), 5);
    assert_eq!(
        (&shown[0]["thinking"], &shown[0]["raw"]["encrypted_content"]),
        (&json!("Look."), &json!("new"))
    );
    assert_eq!(shown[1]["opaque"]["type"], "web_search_call");
    assert_eq!(shown[2]["opaque"]["id"], "rs_2");
    assert_eq!(shown[3]["text"], "Found it.");
    assert_eq!(shown[3]["raw"]["content"][0]["annotations"][0]["url"], "u");
    assert_eq!((&shown[4]["id"], &shown[4]["arguments"]), (&json!("call_1"), &json!("{}")));
    assert_eq!(shown[4]["raw"]["id"], "fc_1");
    assert_eq!(
        (&response.stop, response.usage),
        (&StopReason::ToolUse, Usage { searches: 1, ..usage(30, 9, 20, 0, 4) })
    );
    assert_eq!(data(&response)["other"], Value::Null, "what repeats the request is not kept");
}

#[test]
fn items_of_responses_count_where_the_last_event_leaves_them_out() {
    let item = json!({"type": "message", "content": [{"type": "output_text", "text": "Hi"}]});
    let done = json!({"type": "response.output_item.done", "output_index": 0, "item": item});
    let end = json!({"type": "response.completed", "response": {"status": "completed", "output": []}});
    let response = answer(Api::OpenAiResponses, &format!("data: {done}\n\ndata: {end}\n\n"));
    assert_eq!(response.message.text(), "Hi");
}

#[test]
fn an_incomplete_or_queued_response_says_so() {
    let body = |status: &str, details: Value| {
        json!({"object": "response", "id": "r", "status": status, "incomplete_details": details, "output": []})
            .to_string()
    };
    let cut = answer(Api::OpenAiResponses, &body("incomplete", json!({"reason": "max_output_tokens"})));
    assert_eq!(cut.stop, StopReason::MaxTokens);
    assert_eq!(data(&cut)["stop_reason"], "incomplete:max_output_tokens");
    assert_eq!(
        answer(Api::OpenAiResponses, &body("queued", Value::Null)).stop,
        StopReason::Other("queued".into())
    );
}

#[test]
fn gemini_signatures_stay_with_their_parts_and_calls_get_ids() {
    let decoded = decode(Api::Gemini, GEMINI);
    let response = decoded.response.unwrap();
    assert_eq!(
        parts(&response),
        json!([
            {"thinking": "Hmm.", "signature": null, "raw": null},
            {"text": "One two", "raw": null},
            {"text": " three", "raw": {"text": " three", "thoughtSignature": "c2ln"}},
            {"opaque": {"executableCode": {"code": "1"}}},
            {"id": "made_call_r1_4", "call": "read_file", "arguments": "{\"path\":\"a\"}", "raw":
                {"functionCall": {"name": "read_file", "args": {"path": "a"}}, "thoughtSignature": "YQ"}},
            {"id": "made_call_r1_5", "call": "ping", "arguments": "{}", "raw": null},
        ])
    );
    assert_eq!(
        (response.stop.clone(), response.usage),
        (StopReason::ToolUse, Usage { searches: 1, ..usage(24, 11, 10, 0, 5) })
    );
    assert_eq!(decoded.text, "One two three");
    assert_eq!(data(&response)["other"]["groundingMetadata"]["webSearchQueries"][0], "q");
}

#[test]
fn gemini_may_stream_a_list_and_block_a_prompt() {
    let pieces = ["a", "b"].map(
        |text| json!({"candidates": [{"content": {"parts": [{"text": text}]}, "finishReason": "STOP"}]}),
    );
    assert_eq!(answer(Api::Gemini, &json!(pieces).to_string()).message.text(), "ab");
    let blocked = json!({"promptFeedback": {"blockReason": "SAFETY", "blockReasonMessage": "No."}});
    let response = answer(Api::Gemini, &blocked.to_string());
    assert_eq!(response.stop, StopReason::Refusal);
    assert_eq!(data(&response)["stop_reason"], "blocked:SAFETY");
    assert_eq!(data(&response)["refusal"], "No.");
}

#[test]
fn ollama_lines_are_one_answer() {
    let decoded = decode(Api::Ollama, OLLAMA);
    let response = decoded.response.unwrap();
    assert_eq!(
        parts(&response),
        json!([
            {"thinking": "Hm.", "signature": null, "raw": null},
            {"text": "Well, yes.", "raw": null},
            {"id": "o1", "call": "read_file", "arguments": "{\"path\":\"a\"}", "raw": null},
            {"id": "made_call_t4_1", "call": "ping", "arguments": "{}", "raw": null},
        ])
    );
    assert_eq!((response.stop.clone(), response.usage), (StopReason::ToolUse, usage(11, 7, 0, 0, 0)));
    assert_eq!(
        data(&response)["usage"],
        json!({"prompt_eval_count": 11, "eval_count": 7, "total_duration": 5})
    );
}

#[test]
fn a_stream_is_read_alike_whatever_its_line_ends_marks_and_pieces() {
    for (api, stream) in STREAMS {
        let expected = decode(api, stream);
        assert!(expected.response.is_ok(), "{api:?}");
        let plain = stream.replace("\r\n", "\n");
        let unended = plain.trim_end().to_owned();
        let marked = format!("\u{feff}{plain}");
        let mut bodies = vec![plain.clone(), plain.replace('\n', "\r\n"), plain.replace('\n', "\r"), unended];
        if api != Api::Ollama {
            bodies.extend([marked, format!(": comment\n\nretry: 5\nid: 1\n\n{plain}")]);
        }
        for body in bodies {
            assert_eq!(decode(api, &body), expected, "{api:?}");
            assert_eq!(decode_pieces(api, body.as_bytes().chunks(1)), expected, "{api:?}");
        }
    }
}

#[test]
fn a_complete_answer_need_not_wait_for_the_end_of_the_body() {
    for (api, stream) in STREAMS {
        let mut decoder = super::decoder(api);
        decoder.push(stream.as_bytes(), &mut Vec::new()).unwrap();
        // Gemini has no last event.
        assert_eq!(decoder.is_complete(), api != Api::Gemini, "{api:?}");
        decoder.push(b"what follows is not read\n", &mut Vec::new()).unwrap();
        assert_eq!(decoder.finish(&mut Vec::new()), decode(api, stream).response, "{api:?}");
    }
}

#[test]
fn a_chat_stream_is_complete_without_its_mark_but_not_without_its_reason() {
    let unmarked = CHAT.replace("data: [DONE]\n\n", "");
    assert_eq!(decode(Api::OpenAiChat, unmarked), decode(Api::OpenAiChat, CHAT));
    let unfinished = CHAT.replace("\"tool_calls\"}", "null}");
    let error = decode(Api::OpenAiChat, unfinished).response.unwrap_err();
    assert_eq!(error.kind, ModelErrorKind::Truncated);
    assert_eq!(error.cost.reported().copied(), Some(usage(40, 20, 60, 0, 8)));
}
