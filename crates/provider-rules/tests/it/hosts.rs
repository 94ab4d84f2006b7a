//! Hosts that speak Chat Completions with rules of their own, and Ollama.

use llm_do_provider_rules::{Account, ModelCapabilities, OptionalRules, Protocol};
use serde_json::{Value, json};

use crate::chat::{body, calls, function, tool};
use crate::{Host, assistant, message, user, with};

fn host(provider: &'static str) -> Host {
    Host::new(Protocol::OpenAiChat, provider)
}

const CALL: &str = "abcDEF123";

#[test]
fn mistral_has_an_order_of_roles() {
    let ask = |messages: &[Value]| body("mistral-large-latest", messages);
    let (system, result) = (|| message("system", "s"), || tool(CALL));
    host("mistral").accepts(&ask(&[
        system(),
        user("a"),
        calls(&[CALL]),
        result(),
        assistant("x"),
        user("b"),
    ]));
    host("mistral").accepts(&ask(&[
        user("a"),
        system(),
        user("b"),
        assistant("x"),
        assistant("y"),
        user("c"),
    ]));
    let refused: &[(&[Value], &str)] = &[
        (&[assistant("x"), user("a")], "first role"),
        (
            &[user("a"), assistant("x"), system(), user("b")],
            "Unexpected role 'system' after role 'assistant'",
        ),
        (
            &[user("a"), calls(&[CALL]), result(), system(), user("b")],
            "Unexpected role 'system' after role 'tool'",
        ),
        (&[user("a"), result()], "Unexpected role 'tool' after role 'user'"),
        (&[user("a"), assistant("x")], "Expected last role User or Tool"),
        (&[user("a"), calls(&[CALL, "abcDEF124"]), result()], "Not the same number"),
        (&[user("a"), calls(&[CALL]), tool("zzzzzzzzz")], "Unexpected tool call id"),
        (&[user("a"), calls(&[CALL, CALL]), result(), result()], "Duplicate tool call id"),
    ];
    for (messages, message) in refused {
        let refusal = host("mistral").refuses(&ask(messages), "mistral.order", message);
        assert_eq!(refusal.body["type"], "invalid_request_message_order");
        assert_eq!(refusal.body["code"], "3230");
    }
    let prefix = with(&assistant("x"), "prefix", json!(true));
    host("mistral").accepts(&ask(&[user("a"), prefix.clone()]));
    host("mistral").refuses(&ask(&[user("a"), prefix, user("b")]), "mistral.order", "Only the last");
}

#[test]
fn mistral_has_short_ids_and_few_efforts() {
    let ask = |messages: &[Value]| body("mistral-large-latest", messages);
    for id in ["call_12345", "abcDEF12", "abcDEF-12"] {
        host("mistral").refuses(&ask(&[user("a"), calls(&[id]), tool(id)]), "mistral.call_id", "length of 9");
    }
    let empty = json!({"role": "assistant", "content": ""});
    host("mistral").refuses(
        &ask(&[user("a"), empty, user("b")]),
        "mistral.empty_assistant",
        "content or tool_calls",
    );
    host("mistral").refuses(
        &with(&ask(&[user("a")]), "tools", json!([function("a.b")])),
        "mistral.tool_name",
        "a.b",
    );
    let refusal =
        host("mistral").refuses(&with(&ask(&[user("a")]), "seed", json!(1)), "mistral.parameter", "Extra");
    assert_eq!(refusal.status, 422);
    host("mistral").accepts(&with(&ask(&[user("a")]), "random_seed", json!(1)));
    let effort =
        |model: &str, effort: &str| with(&body(model, &[user("a")]), "reasoning_effort", json!(effort));
    host("mistral").accepts(&effort("mistral-small-2603", "high"));
    host("mistral").refuses(&effort("mistral-small-2603", "low"), "mistral.effort", "reasoning_effort=low");
    host("mistral").refuses(
        &effort("mistral-large-latest", "high"),
        "mistral.effort",
        "not supported for this model",
    );
}

#[test]
fn mistral_refuses_the_user_after_a_tool_only_on_old_servers() {
    let direct = body("mistral-large-latest", &[user("a"), calls(&[CALL]), tool(CALL), user("b")]);
    host("mistral").accepts(&direct);
    let account = Account::default().with_optional(OptionalRules::ALL);
    Host { account, ..host("mistral") }.refuses(&direct, "mistral.order", "'user' after role 'tool'");
}

#[test]
fn deepseek_thinks_and_reads_only_text() {
    let ask = |messages: &[Value]| body("deepseek-v4-pro", messages);
    let image = user(json!([{"type": "image_url", "image_url": {"url": "https://a.example"}}]));
    let refusal = host("deepseek").refuses(
        &ask(&[image]),
        "deepseek.media",
        "unknown variant `image_url`, expected `text`",
    );
    assert_eq!(refusal.body["error"]["code"], "invalid_request_error");
    host("deepseek").accepts(&ask(&[user(json!([{"type": "text", "text": "x"}]))]));
    let off = |body: &Value| with(body, "thinking", json!({"type": "disabled"}));
    let forced =
        with(&with(&ask(&[user("a")]), "tools", json!([function("look")])), "tool_choice", json!("required"));
    host("deepseek").refuses(&forced, "deepseek.forced_tool_choice", "does not support this tool_choice");
    host("deepseek").accepts(&off(&forced));
    host("deepseek").accepts(&with(&forced, "tool_choice", json!("auto")));
    let silent = ask(&[user("a"), assistant("x"), user("b")]);
    host("deepseek").refuses(&silent, "deepseek.reasoning_content", "must be passed back");
    host("deepseek").accepts(&off(&silent));
    host("deepseek").accepts(&with(&silent, "model", json!("deepseek-chat")));
    let said = with(&assistant("x"), "reasoning_content", json!(""));
    host("deepseek").accepts(&ask(&[user("a"), said, user("b")]));
    let schema = with(&ask(&[user("a")]), "response_format", json!({"type": "json_schema"}));
    host("deepseek").accepts(&schema);
    let account = Account::default().with_optional(OptionalRules::ALL);
    Host { account, ..host("deepseek") }.refuses(&schema, "deepseek.json_schema", "unavailable");
}

#[test]
fn xai_refuses_penalties_stops_and_efforts() {
    let ask = |model: &str, name: &str, value: Value| with(&body(model, &[user("a")]), name, value);
    let refusal = host("xai").refuses(
        &ask("grok-4.5", "presence_penalty", json!(0)),
        "xai.parameter",
        "Model grok-4.5 does not support parameter presencePenalty.",
    );
    assert_eq!(refusal.body["code"], "invalid-argument");
    host("xai").refuses(&ask("grok-4.5", "stop", json!(["x"])), "xai.parameter", "stop");
    host("xai").accepts(&ask("grok-4.20-non-reasoning", "stop", json!(["x"])));
    for (model, taken) in [
        ("grok-3-mini", &["low", "high"][..]),
        ("grok-4.3", &["none", "low", "medium", "high"]),
        ("grok-4-fast", &["none", "low", "medium", "high"]),
        ("grok-4.5", &["low", "medium", "high"]),
        ("grok-4.6", &["low", "medium", "high", "xhigh"]),
        ("grok-4.20-reasoning", &[]),
    ] {
        for effort in ["none", "minimal", "low", "medium", "high", "xhigh", "max"] {
            let is_taken = host("xai").check(&ask(model, "reasoning_effort", json!(effort))).is_ok();
            assert_eq!(is_taken, taken.contains(&effort), "{model}: {effort}");
        }
    }
    host("xai").refuses(&ask("grok-4.5", "reasoning_effort", json!("none")), "xai.effort", "value 'none'");
    let open = body("grok-4.5", &[user("a"), calls(&["x"]), user("b")]);
    let refusal = host("xai").refuses(&open, "chat.call_without_result", "must be followed");
    assert_eq!(refusal.body["code"], "invalid-argument");
}

#[test]
fn groq_has_families_of_reasoning() {
    let ask = |model: &str, name: &str, value: Value| with(&body(model, &[user("a")]), name, value);
    let raw = ask("qwen/qwen3-32b", "reasoning_format", json!("raw"));
    host("groq").accepts(&raw);
    host("groq").refuses(&with(&raw, "tools", json!([function("look")])), "groq.reasoning_format", "raw");
    host("groq").refuses(
        &with(&raw, "response_format", json!({"type": "json_object"})),
        "groq.reasoning_format",
        "raw",
    );
    let parsed = ask("qwen/qwen3-32b", "reasoning_format", json!("parsed"));
    host("groq").accepts(&with(&parsed, "tools", json!([function("look")])));
    host("groq").accepts(&ask("openai/gpt-oss-120b", "reasoning_effort", json!("low")));
    host("groq").refuses(
        &ask("openai/gpt-oss-120b", "reasoning_effort", json!("none")),
        "groq.effort",
        "none",
    );
    host("groq").accepts(&ask("qwen/qwen3-32b", "reasoning_effort", json!("none")));
    host("groq").refuses(&ask("qwen/qwen3-32b", "reasoning_effort", json!("low")), "groq.effort", "low");
    let file = user(json!([{"type": "file", "file": {}}]));
    host("groq").refuses(&body("llama-4", &[file]), "groq.media", "file");
}

#[test]
fn openrouter_takes_one_measure_of_reasoning() {
    let ask = |model: &str, reasoning: Value| with(&body(model, &[user("a")]), "reasoning", reasoning);
    host("openrouter").accepts(&ask("openai/gpt-5", json!({"effort": "max"})));
    let both = json!({"effort": "low", "max_tokens": 100});
    host("openrouter").refuses(&ask("openai/gpt-5", both), "openrouter.reasoning", "Only one of");
    let forced =
        |model: &str| with(&ask(model, json!({"max_tokens": 2000})), "tool_choice", json!("required"));
    host("openrouter").refuses(
        &forced("anthropic/claude-sonnet-4.5"),
        "openrouter.forced_tool_choice",
        "Thinking",
    );
    host("openrouter").accepts(&forced("openai/gpt-5"));
}

#[test]
fn templates_of_local_servers_refuse_trailing_assistants() {
    let two = body("m", &[user("a"), assistant("x"), assistant("y")]);
    let one = body("m", &[user("a"), assistant("x")]);
    for provider in ["llamacpp", "ollama"] {
        let refusal =
            host(provider).refuses(&two, "local.trailing_assistants", "2 or more assistant messages");
        assert_eq!(
            (&refusal.body["error"]["code"], &refusal.body["error"]["type"]),
            (&json!(400), &json!("invalid_request_error"))
        );
        host(provider).accepts(&one);
    }
    let rule = "local.prefill_while_thinking";
    let asked = with(&one, "chat_template_kwargs", json!({"enable_thinking": true}));
    host("llamacpp").refuses(&asked, rule, "incompatible with enable_thinking");
    let thinker = ModelCapabilities { tools: true, thinking: true };
    let account = Account::default().with_capabilities("m", thinker);
    let thinking = Host { account, ..host("llamacpp") };
    thinking.refuses(&one, rule, "incompatible");
    thinking.accepts(&with(&one, "chat_template_kwargs", json!({"enable_thinking": false})));
}

#[test]
fn vllm_wants_what_a_parameter_depends_on() {
    let ask = |name: &str, value: Value| with(&body("m", &[user("a")]), name, value);
    let rule = "vllm.parameter";
    let refusal = host("vllm").refuses(&ask("stream_options", json!({})), rule, "stream=True");
    assert_eq!(refusal.body["type"], "BadRequestError");
    host("vllm").accepts(&with(&ask("stream_options", json!({})), "stream", json!(true)));
    host("vllm").refuses(&ask("tool_choice", json!("auto")), rule, "`tools` must be set");
    let tools = |choice: Value| with(&ask("tools", json!([function("look")])), "tool_choice", choice);
    host("vllm").accepts(&tools(json!({"type": "function", "function": {"name": "look"}})));
    host("vllm").refuses(&tools(json!({"type": "function", "function": {"name": "leap"}})), rule, "leap");
    host("vllm").refuses(&ask("top_logprobs", json!(2)), rule, "logprobs");
    host("vllm").accepts(&with(&ask("top_logprobs", json!(2)), "logprobs", json!(true)));
}

#[test]
fn ollama_checks_values_and_what_the_model_can() {
    let account =
        Account::default().with_capabilities("plain", ModelCapabilities { tools: false, thinking: false });
    let host = Host { account, ..Host::new(Protocol::Ollama, "ollama") };
    let ask = |model: &str, name: &str, value: Value| with(&body(model, &[user("a")]), name, value);
    for value in [json!(true), json!(false), json!("low"), json!("max")] {
        host.accepts(&ask("m", "think", value));
    }
    let refusal = host.refuses(&ask("m", "think", json!("xhigh")), "ollama.think", "invalid think value");
    assert_eq!((refusal.status, refusal.body["error"].is_string()), (400, true));
    host.refuses(&ask("plain", "think", json!(true)), "ollama.think", "\"plain\" does not support thinking");
    host.accepts(&ask("plain", "think", json!(false)));
    host.refuses(&ask("plain", "tools", json!([function("look")])), "ollama.tools", "does not support tools");
    host.accepts(&ask("m", "tools", json!([function("look")])));
    for value in [json!("json"), json!({"type": "object"})] {
        host.accepts(&ask("m", "format", value));
    }
    host.refuses(
        &ask("m", "format", json!("yaml")),
        "ollama.format",
        "expected \"json\" or a valid JSON Schema object",
    );
    let images = |image: &str| body("m", &[with(&user("a"), "images", json!([image]))]);
    host.accepts(&images("AAAA"));
    host.refuses(&images("https://a.example/a.png"), "ollama.images", "base64");
    host.refuses(&body("m", &[user(json!([{"type": "text", "text": "x"}]))]), "ollama.content", "string");
    host.accepts(&body("m", &[]));
}
