//! Chat Completions at OpenAI.

use llm_do_provider_rules::{Account, OptionalRules, Protocol};
use serde_json::{Value, json};

use crate::{Host, assistant, message, user, with};

fn host() -> Host {
    Host::new(Protocol::OpenAiChat, "openai")
}

pub(crate) fn body(model: &str, messages: &[Value]) -> Value {
    json!({"model": model, "messages": messages})
}

pub(crate) fn calls(ids: &[&str]) -> Value {
    let calls = ids
        .iter()
        .map(|id| json!({"id": id, "type": "function", "function": {"name": "look", "arguments": "{}"}}));
    json!({"role": "assistant", "content": null, "tool_calls": calls.collect::<Vec<_>>()})
}

pub(crate) fn tool(id: &str) -> Value {
    json!({"role": "tool", "tool_call_id": id, "content": "x"})
}

pub(crate) fn function(name: &str) -> Value {
    json!({"type": "function", "function": {"name": name, "parameters": {"type": "object", "properties": {}}}})
}

#[test]
fn every_call_has_its_message() {
    host().accepts(&body("gpt-4o", &[user("go"), calls(&["a", "b"]), tool("b"), tool("a"), user("on")]));
    let refusal = host().refuses(
        &body("gpt-4o", &[user("go"), calls(&["a", "b"]), tool("a"), user("on")]),
        "chat.call_without_result",
        "must be followed by tool messages responding to each 'tool_call_id'",
    );
    assert_eq!(refusal.body["error"]["param"], "messages.[3].role");
    assert_eq!(refusal.body["error"]["code"], Value::Null);
    host().refuses(
        &body("gpt-4o", &[user("go"), calls(&["a"]), user("wait"), tool("a")]),
        "chat.call_without_result",
        "did not have response messages: a",
    );
    host().refuses(&body("gpt-4o", &[]), "chat.empty", "empty array");
    host().refuses(&body("gpt-4o", &[message("model", "x")]), "chat.role", "Invalid value: 'model'");
}

#[test]
fn a_result_without_a_call_is_refused_only_if_asked_for() {
    let orphan = body("gpt-4o", &[user("go"), tool("a")]);
    host().accepts(&orphan);
    let account = Account::default().with_optional(OptionalRules::ALL);
    Host { account, ..host() }.refuses(&orphan, "chat.result_without_call", "must be a response");
}

#[test]
fn an_assistant_message_says_or_calls_something() {
    host().refuses(
        &body("gpt-4o", &[user("go"), assistant(Value::Null), user("on")]),
        "chat.assistant_without_content",
        "expected a string, got null",
    );
    host().accepts(&body("gpt-4o", &[user("go"), assistant(""), user("on")]));
    let refused = json!({"role": "assistant", "content": null, "refusal": "no"});
    host().accepts(&body("gpt-4o", &[user("go"), refused, user("on")]));
}

#[test]
fn messages_hold_the_parts_of_their_role() {
    let image = json!({"type": "image_url", "image_url": {"url": "https://a.example/a.png"}});
    let text = json!({"type": "text", "text": "x"});
    let rule = "openai.content_part";
    host().accepts(&body("gpt-4o", &[user(json!([image, text]))]));
    let result = |part: &Value| json!({"role": "tool", "tool_call_id": "a", "content": [part]});
    host().accepts(&body("gpt-4o", &[user("go"), calls(&["a"]), result(&text)]));
    let refusal =
        host().refuses(&body("gpt-4o", &[user("go"), calls(&["a"]), result(&image)]), rule, "'image_url'");
    assert_eq!(refusal.body["error"]["code"], "invalid_value");
    let audio = json!([{"type": "input_audio", "input_audio": {"data": "AAAA", "format": "wav"}}]);
    host().accepts(&body("gpt-4o-audio-preview", &[user(audio.clone())]));
    host().refuses(&body("gpt-5", &[user(audio)]), rule, "text or image_url");
    let file = |kind: &str| json!([{"type": "file", "file": {"filename": "a", "file_data": format!("data:{kind};base64,AA==")}}]);
    host().accepts(&body("gpt-4o", &[user(file("application/pdf"))]));
    host().refuses(&body("gpt-4o", &[user(file("audio/mpeg"))]), rule, "audio/mpeg");
    let azure = Host::new(Protocol::OpenAiChat, "azure");
    azure.refuses(&body("gpt-4o", &[user(file("application/pdf"))]), rule, "'file'");
    host().refuses(
        &body("o1-mini", &[message("system", "s"), user("go")]),
        "openai.system_role",
        "with this model",
    );
    host().accepts(&body("o1", &[message("system", "s"), user("go")]));
}

#[test]
fn from_gpt_5_4_on_functions_and_reasoning_exclude_each_other() {
    let with_tools = |model: &str| with(&body(model, &[user("go")]), "tools", json!([function("look")]));
    let effort = |model: &str, effort: &str| with(&with_tools(model), "reasoning_effort", json!(effort));
    let rule = "openai.chat_tools_while_reasoning";
    let refusal = host().refuses(
        &with_tools("gpt-5.6-sol"),
        rule,
        "not supported for gpt-5.6-sol in /v1/chat/completions",
    );
    assert_eq!(
        (&refusal.body["error"]["param"], &refusal.body["error"]["code"]),
        (&json!("reasoning_effort"), &Value::Null)
    );
    host().refuses(&with_tools("gpt-5.5"), rule, "gpt-5.5");
    host().accepts(&effort("gpt-5.5", "none"));
    host().accepts(&with_tools("gpt-5.4"));
    host().refuses(&effort("gpt-5.4", "low"), rule, "gpt-5.4");
    host().accepts(&effort("gpt-5.2", "low"));
    host().accepts(&with_tools("gpt-5"));
    host().accepts(&body("gpt-5.6-sol", &[user("go")]));
}

#[test]
fn reasoning_models_count_completion_tokens() {
    let limit = |model: &str, name: &str| with(&body(model, &[user("go")]), name, json!(100));
    for model in ["o3", "o4-mini", "gpt-5", "gpt-5.1", "gpt-6-sol"] {
        let refusal =
            host().refuses(&limit(model, "max_tokens"), "openai.max_tokens", "max_completion_tokens");
        assert_eq!(refusal.body["error"]["code"], "unsupported_parameter");
        host().accepts(&limit(model, "max_completion_tokens"));
    }
    host().accepts(&limit("gpt-4.1", "max_tokens"));
    host().accepts(&limit("gpt-5-chat-latest", "max_tokens"));
}

#[test]
fn reasoning_models_take_no_sampling_and_no_stop() {
    let ask = |model: &str, name: &str, value: Value| with(&body(model, &[user("go")]), name, value);
    let rule = "openai.sampling";
    for model in ["o3", "gpt-5", "gpt-5.5", "gpt-5.6-luna", "gpt-6-sol"] {
        for (name, value) in [
            ("temperature", json!(0.5)),
            ("top_p", json!(0.9)),
            ("presence_penalty", json!(1)),
            ("frequency_penalty", json!(1)),
            ("logprobs", json!(true)),
            ("logit_bias", json!({})),
        ] {
            host().refuses(&ask(model, name, value), rule, name);
        }
    }
    host().accepts(&ask("gpt-5", "temperature", json!(1)));
    host().accepts(&ask("o3", "temperature", json!(1.0)));
    // Without reasoning sampling is accepted, but penalties are not.
    host().accepts(&ask("gpt-5.1", "temperature", json!(0.5)));
    host().accepts(&with(&ask("gpt-5.6-sol", "temperature", json!(0.5)), "reasoning_effort", json!("none")));
    host().refuses(
        &with(&ask("gpt-5.1", "temperature", json!(0.5)), "reasoning_effort", json!("low")),
        rule,
        "temperature",
    );
    host().refuses(&ask("gpt-5.1", "presence_penalty", json!(1)), rule, "presence_penalty");
    host().accepts(&ask("gpt-4o", "presence_penalty", json!(1)));
    for model in ["o3", "o4-mini", "gpt-5", "gpt-5.1"] {
        host().refuses(&ask(model, "stop", json!(["x"])), "openai.stop", "'stop' is not supported");
    }
    host().accepts(&ask("gpt-4o", "stop", json!(["1", "2", "3", "4"])));
    host().refuses(&ask("gpt-4o", "stop", json!(["1", "2", "3", "4", "5"])), "openai.stop", "at most 4");
    host().accepts(&ask("o1", "stop", json!("x")));
}

#[test]
fn each_model_takes_its_own_efforts() {
    let all = ["none", "minimal", "low", "medium", "high", "xhigh", "max"];
    let cases: &[(&str, &[&str])] = &[
        ("o1", &["low", "medium", "high"]),
        ("o4-mini", &["low", "medium", "high"]),
        ("gpt-5", &["minimal", "low", "medium", "high"]),
        ("gpt-5-nano", &["minimal", "low", "medium", "high"]),
        ("gpt-5-pro", &["high"]),
        ("gpt-5-codex", &["low", "medium", "high"]),
        ("gpt-5-chat-latest", &[]),
        ("gpt-4.1", &[]),
        ("gpt-5.1", &["none", "low", "medium", "high"]),
        ("gpt-5.1-codex-max", &["low", "medium", "high", "xhigh"]),
        ("gpt-5.2-chat-latest", &["medium"]),
        ("gpt-5.2", &["none", "low", "medium", "high", "xhigh"]),
        ("gpt-5.4-pro", &["medium", "high", "xhigh"]),
        ("gpt-5.5-pro", &["low", "medium", "high", "xhigh"]),
        ("gpt-5.6-terra", &["none", "low", "medium", "high", "xhigh", "max"]),
        ("gpt-6.1-terra", &["none", "low", "medium", "high", "xhigh", "max"]),
        ("m", &all),
    ];
    for (model, taken) in cases {
        for effort in all {
            let body = with(&body(model, &[user("go")]), "reasoning_effort", json!(effort));
            assert_eq!(host().check(&body).is_ok(), taken.contains(&effort), "{model}: {effort}");
        }
    }
    let plain = with(&body("gpt-4o", &[user("go")]), "reasoning_effort", json!("low"));
    let refusal = host().refuses(&plain, "openai.effort", "not supported with this model");
    assert_eq!(refusal.body["error"]["code"], "unsupported_value");
}

#[test]
fn json_mode_needs_the_word() {
    let ask =
        |text: &str| with(&body("gpt-4o", &[user(text)]), "response_format", json!({"type": "json_object"}));
    host().accepts(&ask("Answer in JSON."));
    let refusal =
        host().refuses(&ask("Answer."), "openai.json_mode", "'messages' must contain the word 'json'");
    assert_eq!(refusal.body["error"]["param"], "messages");
    let schema = json!({"type": "json_schema", "json_schema": {"name": "a", "schema": {"type": "object"}}});
    host().accepts(&with(&body("gpt-4o", &[user("go")]), "response_format", schema.clone()));
    host().refuses(
        &with(&body("gpt-4-turbo", &[user("go")]), "response_format", schema),
        "openai.json_schema_model",
        "json_schema",
    );
}

#[test]
fn tools_are_few_and_well_named() {
    let ask = |tools: Value| with(&body("gpt-4o", &[user("go")]), "tools", tools);
    let many =
        |count: usize| -> Value { (0..count).map(|n| function(&format!("t{n}"))).collect::<Vec<_>>().into() };
    host().accepts(&ask(many(128)));
    let refusal = host().refuses(&ask(many(129)), "openai.tool_count", "length 129");
    assert_eq!(refusal.body["error"]["code"], "array_above_max_length");
    host().accepts(&ask(json!([function(&"a".repeat(64))])));
    let refusal =
        host().refuses(&ask(json!([function("a.b")])), "openai.tool_name", "tools[0].function.name");
    assert_eq!(refusal.body["error"]["param"], "tools[0].function.name");
    host().refuses(&ask(json!([function(&"a".repeat(65))])), "openai.tool_name", "maximum length 64");
    let list = json!([{"type": "function", "function": {"name": "a", "parameters": {"type": "array"}}}]);
    host().refuses(&ask(list), "openai.function_schema", "type");
}

#[test]
fn numbers_are_in_range_and_parameters_known() {
    let ask = |name: &str, value: Value| with(&body("gpt-4o", &[user("go")]), name, value);
    host().accepts(&ask("temperature", json!(2)));
    let refusal = host().refuses(&ask("temperature", json!(2.1)), "openai.range", "<= 2");
    assert_eq!(refusal.body["error"]["code"], "decimal_above_max_value");
    let refusal = host().refuses(&ask("presence_penalty", json!(-3)), "openai.range", ">= -2");
    assert_eq!(refusal.body["error"]["code"], "decimal_below_min_value");
    let refusal =
        host().refuses(&ask("top_k", json!(3)), "openai.unknown_parameter", "Unknown parameter: 'top_k'");
    assert_eq!(
        (&refusal.body["error"]["param"], &refusal.body["error"]["code"]),
        (&json!("top_k"), &json!("unknown_parameter"))
    );
    host().refuses(
        &ask("web_search_options", json!({})),
        "openai.web_search_options",
        "not supported with this model",
    );
    host().refuses(&ask("metadata", json!({"k": "v".repeat(513)})), "openai.metadata", "too long");
}

#[test]
fn parameters_that_need_another_are_checked_only_if_asked_for() {
    let strict = || Host { account: Account::default().with_optional(OptionalRules::ALL), ..host() };
    for (name, value) in
        [("tool_choice", json!("auto")), ("parallel_tool_calls", json!(true)), ("stream_options", json!({}))]
    {
        let body = with(&body("gpt-4o", &[user("go")]), name, value);
        host().accepts(&body);
        strict().refuses(&body, "openai.dependent_parameter", name);
    }
}

#[test]
fn unknown_models_are_not_found() {
    let account = Account::default().with_models(["gpt-4o"]);
    let refusal =
        Host { account, ..host() }.refuses(&body("gpt-9x", &[user("go")]), "unknown_model", "gpt-9x");
    assert_eq!((refusal.status, &refusal.body["error"]["code"]), (404, &json!("model_not_found")));
}
