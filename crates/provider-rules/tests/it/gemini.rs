//! Gemini.

use llm_do_provider_rules::{Account, OptionalRules, Protocol};
use serde_json::{Value, json};

use crate::{Host, with};

const OLD: &str = "gemini-2.5-flash";
const NEW: &str = "gemini-3-flash-preview";

fn body(contents: &[Value]) -> Value {
    json!({"contents": contents})
}

fn content(role: &str, parts: Value) -> Value {
    json!({"role": role, "parts": parts})
}

fn user(text: &str) -> Value {
    content("user", json!([{"text": text}]))
}

fn call(name: &str) -> Value {
    json!({"functionCall": {"name": name, "args": {}}})
}

fn signed(name: &str, signature: &str) -> Value {
    with(&call(name), "thoughtSignature", json!(signature))
}

fn response(name: &str) -> Value {
    json!({"functionResponse": {"name": name, "response": {"output": "x"}}})
}

fn config(value: Value) -> Value {
    with(&body(&[user("go")]), "generationConfig", value)
}

fn tools(value: Value) -> Value {
    with(&body(&[user("go")]), "tools", value)
}

fn function(more: Value) -> Value {
    let mut function = json!({"name": "look"});
    function.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    json!([{"functionDeclarations": [function]}])
}

#[test]
fn calls_and_responses_are_in_neighboring_turns() {
    let host = Host::gemini(OLD);
    host.accepts(&body(&[
        user("go"),
        content("model", json!([{"text": "hm"}, call("a"), call("b")])),
        content("user", json!([response("a"), response("b"), {"text": "see"}])),
        content("model", json!([call("a")])),
        content("user", json!([response("a")])),
    ]));
    host.refuses(&body(&[]), "gemini.empty", "contents is not specified");
    let first = [content("model", json!([call("a")])), content("user", json!([response("a")]))];
    let refusal = host.refuses(&body(&first), "gemini.call_turn", "immediately after a user turn");
    assert_eq!(
        (&refusal.body["error"]["code"], &refusal.body["error"]["status"]),
        (&json!(400), &json!("INVALID_ARGUMENT"))
    );
    let after_model =
        [user("go"), content("model", json!([{"text": "x"}])), first[0].clone(), first[1].clone()];
    host.refuses(&body(&after_model), "gemini.call_turn", "immediately after a user turn");
    let two = content("model", json!([call("a"), call("b")]));
    let count = "gemini.response_count";
    host.refuses(
        &body(&[user("go"), two.clone(), content("user", json!([response("a")]))]),
        count,
        "is equal to",
    );
    let split =
        [user("go"), two, content("user", json!([response("a")])), content("user", json!([response("b")]))];
    host.refuses(&body(&split), count, "is equal to");
    host.refuses(&body(&[user("go"), content("user", json!([response("a")]))]), count, "is equal to");
    host.refuses(&body(&[content("assistant", json!([]))]), "gemini.role", "valid role");
}

#[test]
fn responses_are_objects_with_the_id_of_their_call() {
    let exchange = |id: Value, response: Value| {
        let call = json!({"functionCall": {"name": "a", "args": {}, "id": id}});
        let response = json!({"functionResponse": response});
        body(&[user("go"), content("model", json!([call])), content("user", json!([response]))])
    };
    let host = Host::gemini(OLD);
    host.accepts(&exchange(json!("1"), json!({"name": "a", "id": "1", "response": {}})));
    let rule = "gemini.function_response";
    host.refuses(&exchange(json!("1"), json!({"name": "a", "response": "x"})), rule, "Struct");
    host.refuses(
        &exchange(json!("1"), json!({"name": "a", "id": "2", "response": {}})),
        rule,
        "does not match",
    );
    let parts = |kind: &str| {
        let parts = json!([{"inlineData": {"mimeType": kind, "data": "AA=="}}]);
        exchange(Value::Null, json!({"name": "a", "response": {}, "parts": parts}))
    };
    host.refuses(&parts("image/png"), rule, "not supported for this model");
    let mut new = parts("image/png");
    new["contents"][1]["parts"][0]["thoughtSignature"] = "skip_thought_signature_validator".into();
    Host::gemini(NEW).accepts(&new);
    new["contents"][2]["parts"][0]["functionResponse"]["parts"][0]["inlineData"]["mimeType"] =
        "audio/wav".into();
    Host::gemini(NEW).refuses(&new, rule, "Unsupported MIME type");
}

#[test]
fn the_last_turn_of_the_model_is_refused_only_if_asked_for() {
    let last = body(&[user("go"), content("model", json!([{"text": "x"}]))]);
    Host::gemini(NEW).accepts(&last);
    let account = Account::default().with_optional(OptionalRules::ALL);
    Host { account, ..Host::gemini(NEW) }.refuses(&last, "gemini.last_content", "'user'");
}

#[test]
fn the_first_call_of_each_turn_of_the_loop_is_signed() {
    let mut account = Account::default();
    let issued = content("model", json!([signed("a", "sig"), call("b")]));
    account.issue(Protocol::Gemini, &json!({"candidates": [{"content": issued}]}));
    let responses = || content("user", json!([response("a"), response("b")]));
    let host = |model: &str| Host { account: account.clone(), ..Host::gemini(model) };
    let with_calls =
        |first: Value| body(&[user("go"), content("model", json!([first, call("b")])), responses()]);
    host(NEW).accepts(&with_calls(signed("a", "sig")));
    host(NEW).accepts(&with_calls(signed("a", "skip_thought_signature_validator")));
    host(NEW).refuses(
        &with_calls(call("a")),
        "gemini.missing_signature",
        "missing a thought_signature in functionCall parts",
    );
    host(NEW).refuses(&with_calls(signed("a", "other")), "gemini.invalid_signature", "not valid");
    host(OLD).accepts(&with_calls(call("a")));
    // Another part has the signature.
    let moved = body(&[user("go"), content("model", json!([call("a"), signed("b", "sig")])), responses()]);
    host(NEW).refuses(&moved, "gemini.missing_signature", "position 2");
    // Calls before the last message of the user are not checked.
    let earlier = body(&[
        user("go"),
        content("model", json!([call("a")])),
        content("user", json!([response("a")])),
        content("model", json!([{"text": "done"}])),
        user("on"),
    ]);
    host(NEW).accepts(&earlier);
    let tool_call = content("model", json!([{"toolCall": {}}]));
    host(OLD).refuses(
        &body(&[user("go"), tool_call.clone(), user("on")]),
        "gemini.tool_parts",
        "not enabled",
    );
    host(NEW).accepts(&body(&[user("go"), tool_call, user("on")]));
}

#[test]
fn parameters_are_of_the_openapi_subset() {
    let host = Host::gemini(OLD);
    let within = |schema: Value| {
        tools(function(json!({"parameters": {"type": "OBJECT", "properties": {"a": schema}}})))
    };
    host.accepts(&within(json!({"type": "STRING", "enum": ["x"], "nullable": true, "description": "d"})));
    let rule = "gemini.schema";
    for keyword in ["const", "oneOf", "allOf", "$schema", "$ref", "exclusiveMinimum", "examples"] {
        let message = format!(
            "Unknown name \"{keyword}\" at 'tools[0].function_declarations[0].parameters': Cannot find field."
        );
        host.refuses(&within(json!({"type": "STRING", keyword: []})), rule, &message);
    }
    host.refuses(&within(json!({"type": "STRING", "enum": [0]})), rule, "(TYPE_STRING), 0");
    host.refuses(&within(json!({"type": "INTEGER", "enum": ["0"]})), rule, "only allowed for STRING");
    host.refuses(&within(json!({"type": ["STRING", "NULL"]})), rule, "not repeating");
    host.refuses(
        &tools(function(json!({"parameters": {"type": "OBJECT", "properties": {"a-b": {}}}}))),
        rule,
        "a-b",
    );
    host.refuses(&tools(function(json!({"parametersJsonSchema": {"type": "string"}}))), rule, "type OBJECT");
    let both =
        function(json!({"parameters": {"type": "OBJECT"}, "parametersJsonSchema": {"type": "object"}}));
    host.refuses(&tools(both), "gemini.both_schemas", "only one of parameters");
    host.refuses(
        &tools(json!([{"functionDeclarations": [{"name": "1a"}]}])),
        "gemini.function_name",
        "Invalid function name",
    );
    host.accepts(&tools(json!([{"functionDeclarations": [{"name": "a.b:c-d"}]}])));
    let both = json!({"responseMimeType": "application/json", "responseSchema": {"type": "OBJECT"}, "responseJsonSchema": {}});
    host.refuses(&config(both), "gemini.both_schemas", "response_schema");
    host.refuses(&config(json!({"responseSchema": {"const": 1}})), rule, "const");
}

#[test]
fn functions_go_with_server_tools_and_formats_from_gemini_3_on() {
    let mixed = tools(json!([{"functionDeclarations": [{"name": "a"}]}, {"googleSearch": {}}]));
    let flagged = with(&mixed, "toolConfig", json!({"includeServerSideToolInvocations": true}));
    let rule = "gemini.mixed_tools";
    Host::gemini(OLD).refuses(&mixed, rule, "cannot be combined");
    Host::gemini(OLD).refuses(&flagged, rule, "Tool call context circulation is not enabled");
    Host::gemini(NEW).refuses(&mixed, rule, "include_server_side_tool_invocations");
    Host::gemini(NEW).accepts(&flagged);
    Host::gemini(OLD).accepts(&tools(json!([{"googleSearch": {}}, {"urlContext": {}}])));
    let format = json!({"responseMimeType": "application/json", "responseJsonSchema": {"type": "object"}});
    let formatted = with(&tools(function(json!({}))), "generationConfig", format.clone());
    Host::gemini(OLD).refuses(&formatted, "gemini.tools_with_format", "is unsupported");
    Host::gemini(NEW).accepts(&formatted);
    Host::gemini(OLD).accepts(&config(format));
    Host::gemini("gemini-2.5-flash-image").refuses(
        &tools(function(json!({}))),
        "gemini.functions",
        "not enabled",
    );
}

#[test]
fn the_config_of_calls_needs_functions() {
    let choose = |tools: Value, calling: Value| {
        with(
            &with(&body(&[user("go")]), "tools", tools),
            "toolConfig",
            json!({"functionCallingConfig": calling}),
        )
    };
    let host = Host::gemini(OLD);
    let rule = "gemini.tool_config";
    host.accepts(&choose(function(json!({})), json!({"mode": "ANY", "allowedFunctionNames": ["look"]})));
    host.refuses(&choose(json!([]), json!({"mode": "AUTO"})), rule, "without function_declarations");
    host.refuses(&choose(function(json!({})), json!({"mode": "REQUIRED"})), rule, "mode");
    host.refuses(
        &choose(function(json!({})), json!({"mode": "AUTO", "allowedFunctionNames": ["look"]})),
        rule,
        "Allowed function names",
    );
}

#[test]
fn cached_content_brings_its_own_tools_and_instructions() {
    let cached = with(&body(&[user("go")]), "cachedContent", json!("cachedContents/1"));
    Host::gemini(OLD).accepts(&cached);
    for (key, value) in [("systemInstruction", json!({})), ("tools", json!([])), ("toolConfig", json!({}))] {
        Host::gemini(OLD).refuses(&with(&cached, key, value), "gemini.cached_content", "cached content");
    }
    let instructed = with(&body(&[user("go")]), "systemInstruction", json!({"parts": [{"text": "s"}]}));
    Host::gemini("gemma-3-27b-it").refuses(&instructed, "gemini.system_instruction", "not enabled");
    Host::gemini(OLD).accepts(&instructed);
}

#[test]
fn each_model_takes_its_own_thinking() {
    let budget = |model: &str, budget: i64| {
        Host::gemini(model).check(&config(json!({"thinkingConfig": {"thinkingBudget": budget}}))).is_ok()
    };
    for (model, taken, refused) in [
        ("gemini-2.5-pro", &[-1, 128, 32_768][..], &[0, 127, 32_769, -2][..]),
        ("gemini-2.5-flash", &[-1, 0, 1, 24_576], &[24_577, -2]),
        ("gemini-2.5-flash-lite", &[-1, 0, 512, 24_576], &[1, 511, 24_577]),
    ] {
        assert!(taken.iter().all(|tokens| budget(model, *tokens)), "{model}");
        assert!(!refused.iter().any(|tokens| budget(model, *tokens)), "{model}");
    }
    let level = |level: &str| config(json!({"thinkingConfig": {"thinkingLevel": level}}));
    let rule = "gemini.thinking_level";
    Host::gemini("gemini-2.5-pro").refuses(&level("LOW"), rule, "not supported for this model");
    for name in ["MINIMAL", "low", "Medium", "HIGH"] {
        Host::gemini(NEW).accepts(&level(name));
    }
    Host::gemini(NEW).refuses(&level("NONE"), rule, "Invalid value");
    for model in ["gemini-3-pro-preview", "gemini-3.1-pro-preview", "gemini-3.7-flash", "gemini-flash-latest"]
    {
        Host::gemini(model).refuses(&level("minimal"), rule, "MINIMAL is not supported");
        Host::gemini(model).accepts(&level("low"));
    }
}

#[test]
fn unknown_models_are_not_found() {
    let account = Account::default().with_models([OLD]);
    let refusal = Host { account, ..Host::gemini("gemini-x") }.refuses(
        &body(&[user("go")]),
        "unknown_model",
        "gemini-x",
    );
    assert_eq!((refusal.status, &refusal.body["error"]["status"]), (404, &json!("NOT_FOUND")));
}
