//! Messages and parameters of Anthropic.

use llm_do_provider_rules::{Account, OptionalRules, Protocol};
use serde_json::{Value, json};

use crate::{Host, assistant, message, user, with};

pub(crate) fn host() -> Host {
    Host::new(Protocol::AnthropicMessages, "anthropic")
}

pub(crate) fn body(model: &str, messages: &[Value]) -> Value {
    json!({"model": model, "max_tokens": 4096, "messages": messages})
}

fn text(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

fn call(id: &str) -> Value {
    json!({"type": "tool_use", "id": id, "name": "look", "input": {}})
}

fn result(id: &str) -> Value {
    json!({"type": "tool_result", "tool_use_id": id, "content": "x"})
}

/// A conversation in the middle of a tool call.
fn in_loop(model: &str, first: &[Value]) -> Value {
    let content: Vec<Value> = first.iter().cloned().chain([call("a")]).collect();
    body(model, &[user("go"), assistant(content), user(json!([result("a")]))])
}

#[test]
fn required_fields_must_be_there() {
    let whole = body("claude-sonnet-4-5", &[user("go")]);
    host().accepts(&whole);
    let refusal = host().refuses(
        &with(&whole, "max_tokens", Value::Null),
        "anthropic.required",
        "max_tokens: Field required",
    );
    assert_eq!(refusal.status, 400);
    assert_eq!(refusal.body["type"], "error");
    assert_eq!(refusal.body["error"]["type"], "invalid_request_error");
    host().refuses(&with(&whole, "messages", json!([])), "anthropic.required", "at least one message");
    host().refuses(&with(&whole, "messages", Value::Null), "anthropic.required", "messages: Field required");
}

#[test]
fn calls_and_results_are_in_neighboring_messages() {
    let model = "claude-sonnet-4-5";
    host().accepts(&body(
        model,
        &[user("go"), assistant(json!([call("a"), call("b")])), user(json!([result("b"), result("a")]))],
    ));
    let open = [user("go"), assistant(json!([call("a"), call("b")])), user(json!([result("a")]))];
    host().refuses(
        &body(model, &open),
        "anthropic.call_without_result",
        "without `tool_result` blocks immediately after: b",
    );
    let late = [user("go"), assistant(json!([call("a")])), user("wait"), user(json!([result("a")]))];
    host().refuses(&body(model, &late), "anthropic.call_without_result", "messages.1");
    host().refuses(
        &body(model, &[user("go"), assistant("x"), user(json!([result("a")]))]),
        "anthropic.result_without_call",
        "unexpected `tool_use_id`",
    );
    let twice = [user("go"), assistant(json!([call("a")])), user(json!([result("a"), result("a")]))];
    host().refuses(&body(model, &twice), "anthropic.result_without_call", "single result");
    let again = [
        user("go"),
        assistant(json!([call("a")])),
        user(json!([result("a")])),
        assistant(json!([call("a")])),
        user(json!([result("a")])),
    ];
    host().refuses(&body(model, &again), "anthropic.unique_ids", "unique");
}

#[test]
fn whether_results_come_first_is_checked_only_if_asked_for() {
    let late = body(
        "claude-sonnet-4-5",
        &[user("go"), assistant(json!([call("a")])), user(json!([text("see"), result("a")]))],
    );
    host().accepts(&late);
    let account = Account::default().with_optional(OptionalRules::ALL);
    Host { account, ..host() }.refuses(&late, "anthropic.results_first", "before other content");
}

#[test]
fn texts_are_not_empty_or_blank() {
    let model = "claude-sonnet-4-5";
    let rule = "anthropic.empty_content";
    host().refuses(&body(model, &[user(json!([text("")]))]), rule, "must be non-empty");
    host().refuses(&body(model, &[user(json!([text(" \n")]))]), rule, "non-whitespace");
    host().refuses(&body(model, &[user(" ")]), rule, "non-whitespace");
    host().refuses(&body(model, &[user(""), user("go")]), rule, "non-empty content except");
    host().refuses(
        &body(model, &[user("go"), assistant(json!([])), user("on")]),
        rule,
        "non-empty content except",
    );
    host().accepts(&body(model, &[user("go"), assistant("")]));
    let empty = json!({"type": "tool_result", "tool_use_id": "a", "content": []});
    host().refuses(
        &body(model, &[user("go"), assistant(json!([call("a")])), user(json!([empty]))]),
        rule,
        "tool_result.content",
    );
    let blank = json!({"type": "tool_result", "tool_use_id": "a", "content": ""});
    host().accepts(&body(model, &[user("go"), assistant(json!([call("a")])), user(json!([blank]))]));
}

#[test]
fn only_old_models_take_a_prefill_and_only_without_white_space_at_its_end() {
    let prefill = |model: &str, text: &str| body(model, &[user("go"), assistant(text)]);
    for model in
        ["claude-opus-4-6", "claude-sonnet-4-6", "claude-sonnet-5", "claude-fable-5", "claude-opus-9"]
    {
        host().refuses(
            &prefill(model, "{"),
            "anthropic.prefill",
            "does not support assistant message prefill",
        );
    }
    for model in ["claude-opus-4-5-20251101", "claude-haiku-4-5", "claude-3-7-sonnet-latest", "m"] {
        host().accepts(&prefill(model, "{"));
        host().refuses(&prefill(model, "{ "), "anthropic.prefill", "trailing whitespace");
    }
    // Only the last message counts.
    host().accepts(&body("claude-opus-4-8", &[user("go"), assistant("done "), user("on")]));
    let format = json!({"format": {"type": "json_schema", "schema": {"type": "object", "properties": {},
        "additionalProperties": false}}});
    host().refuses(
        &with(&prefill("claude-haiku-4-5", "{"), "output_config", format.clone()),
        "anthropic.prefill",
        "incompatible",
    );
    host().accepts(&with(&body("claude-haiku-4-5", &[user("go")]), "output_config", format));
}

#[test]
fn a_paused_turn_is_not_a_prefill() {
    let search = json!({"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}});
    let paused = body("claude-opus-4-8", &[user("go"), assistant(json!([search]))]);
    host().accepts(&paused);
    let found = json!({"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []});
    host().accepts(&body("claude-opus-4-8", &[user("go"), assistant(json!([search, found])), user("on")]));
    host().refuses(
        &body("claude-opus-4-8", &[user("go"), assistant(json!([search, text("x")])), user("on")]),
        "anthropic.server_call_without_result",
        "srvtoolu_1",
    );
    host().refuses(
        &body("claude-opus-4-8", &[user("go"), assistant(json!([found])), user("on")]),
        "anthropic.server_result_without_call",
        "srvtoolu_1",
    );
    // Client results may come in between.
    host().accepts(&body(
        "claude-opus-4-8",
        &[
            user("go"),
            assistant(json!([search, call("a")])),
            user(json!([result("a")])),
            assistant(json!([found, text("x")])),
            user("on"),
        ],
    ));
}

#[test]
fn references_and_advice_need_their_tools() {
    let reference = json!({"type": "tool_result", "tool_use_id": "a",
        "content": [{"type": "tool_reference", "tool_name": "look"}]});
    let found =
        body("claude-opus-4-8", &[user("go"), assistant(json!([call("a")])), user(json!([reference]))]);
    host().refuses(&found, "anthropic.tool_reference", "look");
    let tool = json!({"name": "look", "input_schema": {"type": "object"}});
    host().accepts(&with(&found, "tools", json!([tool])));
    let advice = json!([{"type": "server_tool_use", "id": "s", "name": "advisor", "input": {}},
        {"type": "advisor_tool_result", "tool_use_id": "s", "content": {}}]);
    let advised = body("claude-opus-4-8", &[user("go"), assistant(advice), user("on")]);
    host().refuses(&advised, "anthropic.advisor", "advisor");
    host().accepts(&with(&advised, "tools", json!([{"type": "advisor_20260301", "name": "advisor"}])));
}

#[test]
fn a_turn_that_calls_tools_starts_with_thinking_if_it_is_enabled() {
    let mut account = Account::default();
    let thought = json!({"type": "thinking", "thinking": "hm", "signature": "sig"});
    account.issue(Protocol::AnthropicMessages, &json!({"content": [thought]}));
    let host = Host { account, ..host() };
    let enabled = json!({"type": "enabled", "budget_tokens": 1024});
    let thinks = |body: Value| with(&body, "thinking", enabled.clone());
    host.accepts(&thinks(in_loop("claude-sonnet-4-5", std::slice::from_ref(&thought))));
    host.refuses(
        &thinks(in_loop("claude-sonnet-4-5", &[text("let me see")])),
        "anthropic.loop_without_thinking",
        "messages.1.content.0.type: Expected `thinking` or `redacted_thinking`, but found `text`",
    );
    // Without a loop, in adaptive mode, or in a later message of the same turn it is not needed.
    host.accepts(&thinks(body("claude-sonnet-4-5", &[user("go"), assistant("x"), user("on")])));
    host.accepts(&with(&in_loop("claude-opus-4-8", &[]), "thinking", json!({"type": "adaptive"})));
    host.accepts(&thinks(body(
        "claude-sonnet-4-5",
        &[
            user("go"),
            assistant(json!([thought, call("a")])),
            user(json!([result("a")])),
            assistant(json!([call("b")])),
            user(json!([result("b")])),
        ],
    )));
}

#[test]
fn the_latest_thinking_comes_back_unchanged() {
    let thought = |thinking: &str, signature: &str| json!({"type": "thinking", "thinking": thinking, "signature": signature});
    let mut account = Account::default();
    let response = json!({"content": [thought("hm", "one"), text("x"), thought("aha", "two")]});
    account.issue(Protocol::AnthropicMessages, &response);
    let redacted = json!({"type": "redacted_thinking", "data": "blob"});
    account.issue(Protocol::AnthropicMessages, &json!({"content": [redacted]}));
    let host = Host { account, ..host() };
    let sends = |blocks: Value| body("claude-opus-4-8", &[user("go"), assistant(blocks), user("on")]);
    host.accepts(&sends(response["content"].clone()));
    host.accepts(&sends(json!([redacted])));
    host.accepts(&sends(json!([text("x")])));
    let signature = "anthropic.thinking_signature";
    host.refuses(&sends(json!([thought("hm", "forged")])), signature, "Invalid `signature`");
    host.refuses(&sends(json!([thought("hm", "")])), signature, "Invalid `signature`");
    let modified = "anthropic.thinking_modified";
    host.refuses(
        &sends(json!([thought("ho", "one"), thought("aha", "two")])),
        modified,
        "cannot be modified",
    );
    host.refuses(&sends(json!([thought("hm", "one"), text("x")])), modified, "cannot be modified");
    // Older messages are not compared, but must have a signature.
    let old = |block: Value| {
        body(
            "claude-opus-4-8",
            &[user("go"), assistant(json!([block, text("x")])), user("b"), assistant("y"), user("c")],
        )
    };
    host.accepts(&old(thought("hm", "forged")));
    host.refuses(&old(thought("hm", "")), signature, "Invalid `signature`");
}

#[test]
fn each_model_takes_its_own_thinking() {
    let enabled = json!({"type": "enabled", "budget_tokens": 2048});
    let cases: &[(&str, bool, bool, bool)] = &[
        // model, enabled, adaptive, disabled
        ("claude-3-7-sonnet-latest", true, false, true),
        ("claude-sonnet-4-20250514", true, false, true),
        ("claude-opus-4-1-20250805", true, false, true),
        ("claude-haiku-4-5", true, false, true),
        ("claude-opus-4-5", true, false, true),
        ("claude-opus-4-6", true, true, true),
        ("claude-sonnet-4-6", true, true, true),
        ("claude-opus-4-7", false, true, true),
        ("claude-opus-4-8", false, true, true),
        ("claude-sonnet-5", false, true, true),
        ("claude-opus-5", false, true, true),
        ("claude-opus-5-5", false, true, false),
        ("claude-fable-5", false, true, false),
        ("claude-fable-5-1", false, true, false),
        ("claude-mythos-5", false, true, false),
        ("m", true, true, true),
    ];
    for (model, takes_enabled, takes_adaptive, takes_disabled) in cases {
        let modes = [
            (enabled.clone(), takes_enabled),
            (json!({"type": "adaptive"}), takes_adaptive),
            (json!({"type": "disabled"}), takes_disabled),
        ];
        for (mode, is_taken) in modes {
            let body = with(&body(model, &[user("go")]), "thinking", mode);
            assert_eq!(host().check(&body).is_ok(), *is_taken, "{model}: {body}");
        }
    }
    host().refuses(
        &with(&body("claude-opus-4-8", &[user("go")]), "thinking", enabled),
        "anthropic.thinking_type",
        "\"thinking.type.enabled\" is not supported for this model",
    );
}

#[test]
fn each_model_takes_its_own_efforts() {
    let cases: &[(&str, &[&str])] = &[
        ("claude-sonnet-4-5", &[]),
        ("claude-haiku-4-5", &[]),
        ("claude-opus-4-5", &["low", "medium", "high"]),
        ("claude-opus-4-6", &["low", "medium", "high", "max"]),
        ("claude-opus-4-7", &["low", "medium", "high", "xhigh", "max"]),
        ("claude-sonnet-5", &["low", "medium", "high", "xhigh", "max"]),
        ("claude-fable-5", &["low", "medium", "high", "xhigh", "max"]),
    ];
    for (model, taken) in cases {
        for effort in ["none", "minimal", "low", "medium", "high", "xhigh", "max"] {
            let body = with(&body(model, &[user("go")]), "output_config", json!({"effort": effort}));
            assert_eq!(host().check(&body).is_ok(), taken.contains(&effort), "{model}: {effort}");
        }
    }
    let high = with(&body("claude-sonnet-4-6", &[user("go")]), "output_config", json!({"effort": "xhigh"}));
    let message =
        "This model does not support effort level 'xhigh'. Supported levels: high, low, max, medium.";
    host().refuses(&high, "anthropic.effort", message);
    let off = with(&body("claude-opus-5", &[user("go")]), "thinking", json!({"type": "disabled"}));
    host().refuses(&with(&off, "output_config", json!({"effort": "max"})), "anthropic.effort", "disabled");
    host().accepts(&with(&off, "output_config", json!({"effort": "high"})));
}

#[test]
fn budgets_are_between_1024_and_the_answer() {
    let budget = |tokens: u64| {
        let thinking = json!({"type": "enabled", "budget_tokens": tokens});
        with(&body("claude-haiku-4-5", &[user("go")]), "thinking", thinking)
    };
    host().accepts(&budget(1024));
    host().accepts(&budget(4095));
    host().refuses(&budget(1023), "anthropic.budget", "greater than or equal to 1024");
    host().refuses(&budget(4096), "anthropic.budget", "`max_tokens` must be greater");
}

#[test]
fn answers_are_not_longer_than_the_model_allows() {
    for (model, ceiling) in [
        ("claude-opus-4-8", 128_000),
        ("claude-fable-5", 128_000),
        ("claude-sonnet-4-5", 64_000),
        ("claude-opus-4-1", 32_000),
        ("claude-opus-4-20250514", 32_000),
        ("claude-sonnet-4-0", 64_000),
    ] {
        let tokens = |tokens: u64| with(&body(model, &[user("go")]), "max_tokens", json!(tokens));
        host().accepts(&tokens(ceiling));
        host().refuses(
            &tokens(ceiling + 1),
            "anthropic.max_tokens",
            "maximum allowed number of output tokens",
        );
    }
    let warm_up = with(&body("claude-opus-4-8", &[user("go")]), "max_tokens", json!(0));
    host().accepts(&warm_up);
    host().refuses(&with(&warm_up, "stream", json!(true)), "anthropic.max_tokens", "greater than 0");
}

#[test]
fn each_model_takes_its_own_sampling() {
    let sampled = |model: &str, more: Value| {
        let mut body = body(model, &[user("go")]);
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        body
    };
    host().refuses(&sampled("m", json!({"temperature": 1.5})), "anthropic.temperature_range", "range: 0..1");
    host().refuses(&sampled("m", json!({"seed": 1})), "anthropic.parameter", "Extra inputs");
    let both = json!({"temperature": 0.5, "top_p": 0.9});
    host().accepts(&sampled("claude-3-7-sonnet-latest", both.clone()));
    host().refuses(&sampled("claude-sonnet-4-6", both.clone()), "anthropic.sampling", "cannot both");
    host().accepts(&sampled("claude-sonnet-4-6", json!({"temperature": 0.5, "top_k": 5})));
    for model in ["claude-opus-4-7", "claude-opus-5", "claude-opus-5-5", "claude-fable-5", "claude-mythos-5"]
    {
        for name in ["temperature", "top_p", "top_k"] {
            host().refuses(&sampled(model, json!({name: 1})), "anthropic.sampling", "not supported");
        }
    }
    host().accepts(&sampled("claude-sonnet-5", json!({"temperature": 1.0})));
    host().refuses(&sampled("claude-sonnet-5", json!({"top_p": 0.9})), "anthropic.sampling", "default");
    let thinks =
        |more: Value| with(&sampled("claude-sonnet-4-6", more), "thinking", json!({"type": "adaptive"}));
    host().accepts(&thinks(json!({"temperature": 1})));
    let rule = "anthropic.sampling_while_thinking";
    host().refuses(&thinks(json!({"temperature": 0.2})), rule, "may only be set to 1");
    host().refuses(&thinks(json!({"top_k": 3})), rule, "`top_k` must be unset");
}

#[test]
fn tools_are_not_forced_while_thinking_or_on_models_that_always_think() {
    let forced = |model: &str| with(&body(model, &[user("go")]), "tool_choice", json!({"type": "any"}));
    let rule = "anthropic.forced_tool_choice";
    host().accepts(&forced("claude-sonnet-4-5"));
    let enabled = json!({"type": "enabled", "budget_tokens": 1024});
    host().refuses(
        &with(&forced("claude-sonnet-4-5"), "thinking", enabled),
        rule,
        "Thinking may not be enabled",
    );
    for model in ["claude-fable-5", "claude-fable-5-1", "claude-mythos-5", "claude-mythos-preview"] {
        host().refuses(&forced(model), rule, "not supported");
        host().accepts(&with(&forced(model), "tool_choice", json!({"type": "auto"})));
    }
}

#[test]
fn system_messages_are_for_new_models_and_have_their_position() {
    let system = || message("system", "be brief");
    let rule = "anthropic.system_role";
    for model in ["claude-opus-4-8", "claude-opus-5", "claude-fable-5", "claude-sonnet-5"] {
        host().accepts(&body(model, &[user("go"), system()]));
        host().accepts(&body(model, &[user("go"), system(), assistant("x"), user("on")]));
    }
    for model in ["claude-opus-4-7", "claude-sonnet-4-6", "claude-haiku-4-5"] {
        host().refuses(
            &body(model, &[user("go"), system()]),
            rule,
            "role 'system' is not supported on this model",
        );
    }
    let model = "claude-opus-4-8";
    host().refuses(&body(model, &[system(), user("go")]), rule, "top-level 'system'");
    host().refuses(&body(model, &[user("go"), system(), user("on")]), rule, "must follow");
    host().refuses(&body(model, &[user("go"), assistant("x"), system()]), rule, "must follow");
    let image = json!([{"type": "image", "source": {"type": "url", "url": "https://a.example"}}]);
    host().refuses(&body(model, &[user("go"), message("system", image)]), rule, "only contain text");
    host().refuses(&body(model, &[message("tool", "x")]), "anthropic.role", "'user' or 'assistant'");
}

#[test]
fn marks_of_the_cache_are_few_ordered_and_not_on_empty_text() {
    let marked =
        |ttl: Value| json!({"type": "text", "text": "x", "cache_control": {"type": "ephemeral", "ttl": ttl}});
    let short = || marked(json!("5m"));
    let of = |blocks: Vec<Value>| body("claude-opus-4-8", &[user(blocks)]);
    let rule = "anthropic.cache_control";
    host().accepts(&of(vec![short(); 4]));
    host().refuses(&of(vec![short(); 5]), rule, "Found 5.");
    host().refuses(
        &with(&of(vec![short(); 4]), "cache_control", json!({"type": "ephemeral"})),
        rule,
        "Found 5.",
    );
    host().accepts(&of(vec![marked(json!("1h")), short()]));
    host().refuses(&of(vec![short(), marked(json!("1h"))]), rule, "must not come after");
    let system = json!([{"type": "text", "text": "s", "cache_control": {"type": "ephemeral"}}]);
    host().refuses(&with(&of(vec![marked(json!("1h"))]), "system", system), rule, "must not come after");
    host().refuses(&of(vec![marked(json!("2h"))]), rule, "'5m' or '1h'");
    let empty = json!([{"type": "text", "text": "", "cache_control": {"type": "ephemeral"}}]);
    host().refuses(&with(&of(vec![text("x")]), "system", empty), rule, "empty text blocks");
}

/// A PNG's first bytes, of so many pixels in a square.
fn image(pixels: u32) -> Value {
    let mut bytes = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR".to_vec();
    bytes.extend(pixels.to_be_bytes().into_iter().chain(pixels.to_be_bytes()).chain([8, 6, 0, 0, 0, 0]));
    json!({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": base64(&bytes)}})
}

fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    assert_eq!(bytes.len() % 3, 0);
    let chunks = bytes.chunks(3).flat_map(|chunk| {
        let bits = chunk.iter().fold(0_usize, |bits, byte| (bits << 8) | usize::from(*byte));
        [18, 12, 6, 0].map(|shift| char::from(DIGITS[(bits >> shift) & 63]))
    });
    chunks.collect()
}

#[test]
fn images_are_not_too_large() {
    let of = |images: Vec<Value>| body("claude-opus-4-8", &[user(images)]);
    host().accepts(&of(vec![image(8000)]));
    host().refuses(&of(vec![image(8001)]), "anthropic.image", "8000 pixels");
    host().accepts(&of(vec![image(8000); 20]));
    host().accepts(&of(vec![image(2000); 21]));
    host().refuses(&of(vec![image(2001); 21]), "anthropic.image", "many-image requests: 2000 pixels");
    let source = |kind: &str, source: &str| {
        json!([{"type": kind, "source": {"type": "base64", "media_type": source,
        "data": "AAAA"}}])
    };
    host().refuses(&body("m", &[user(source("image", "image/tiff"))]), "anthropic.image", "media_type");
    host().accepts(&body("m", &[user(source("document", "application/pdf"))]));
    host().refuses(
        &body("m", &[user(source("document", "text/csv"))]),
        "anthropic.document",
        "application/pdf",
    );
}

#[test]
fn requests_are_not_too_large() {
    host().accepts(&body("m", &[user("x".repeat(31 * 1024 * 1024))]));
    let refusal = host().refuses(
        &body("m", &[user("x".repeat(33 * 1024 * 1024))]),
        "anthropic.request_too_large",
        "exceeds the maximum size",
    );
    assert_eq!((refusal.status, &refusal.body["error"]["type"]), (413, &json!("request_too_large")));
}

#[test]
fn unknown_models_are_not_found() {
    let account = Account::default().with_models(["claude-opus-4-8"]);
    let host = Host { account, ..host() };
    host.accepts(&body("claude-opus-4-8", &[user("go")]));
    let refusal = host.refuses(&body("claude-nine", &[user("go")]), "unknown_model", "model: claude-nine");
    assert_eq!((refusal.status, &refusal.body["error"]["type"]), (404, &json!("not_found_error")));
}
