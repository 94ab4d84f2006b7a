//! Strict schemas of OpenAI, at both endpoints.

use llm_do_provider_rules::{Account, OptionalRules, Protocol};
use serde_json::{Value, json};

use crate::{Host, user, with};

fn chat() -> Host {
    Host::new(Protocol::OpenAiChat, "openai")
}

fn object(properties: Value) -> Value {
    let required: Vec<&String> = properties.as_object().unwrap().keys().collect();
    json!({"type": "object", "properties": properties, "required": required, "additionalProperties": false})
}

fn tool(model: &str, schema: &Value) -> Value {
    let function = json!({"name": "look", "strict": true, "parameters": schema});
    json!({"model": model, "messages": [user("go")], "tools": [{"type": "function", "function": function}]})
}

fn nested(levels: usize) -> Value {
    (1..levels).fold(object(json!({})), |inner, _| object(json!({"a": inner})))
}

#[test]
fn strict_schemas_follow_the_rules() {
    chat().accepts(&tool(
        "gpt-4o",
        &object(json!({
            "a": {"type": ["string", "null"], "pattern": "^a$", "format": "date"},
            "b": {"type": "array", "items": {"type": "integer", "minimum": 1}},
            "c": {"anyOf": [{"$ref": "#"}, {"type": "null"}]},
        })),
    ));
    let rule = "openai.function_schema";
    for (schema, message) in [
        (json!({"type": "object", "properties": {}}), "'additionalProperties' is required"),
        (
            json!({"type": "object", "properties": {"a": {}}, "required": [], "additionalProperties": false}),
            "Missing 'a'",
        ),
        (object(json!({"a": {"type": "string", "minLength": 1}})), "'minLength' is not permitted"),
        (object(json!({"a": {"type": "string", "default": "x"}})), "'default' is not permitted"),
        (object(json!({"a": {"oneOf": [{"type": "string"}]}})), "'oneOf' is not permitted"),
        (object(json!({"a": {"type": "string", "format": "uri"}})), "'uri' is not a valid format"),
        (object(json!({"a": {"type": "string", "pattern": "(?=a)"}})), "lookaround"),
        (object(json!({"a": {"type": "array"}})), "missing items"),
        (object(json!({"a": {"type": "array", "items": {}}})), "missing items"),
        (object(json!({"a": {"$ref": "#", "description": "d"}})), "$ref"),
    ] {
        let refusal = chat().refuses(&tool("gpt-4o", &schema), rule, message);
        assert_eq!(refusal.body["error"]["code"], "invalid_function_parameters");
    }
    // The same is accepted if the tool is not strict.
    let mut free = tool("gpt-4o", &json!({"type": "object", "properties": {"a": {"minLength": 1}}}));
    free["tools"][0]["function"]["strict"] = false.into();
    chat().accepts(&free);
}

#[test]
fn formats_are_checked_at_both_endpoints() {
    let responses = Host::new(Protocol::OpenAiResponses, "openai");
    let format = |schema: &Value, name: &str| json!({"name": name, "strict": true, "schema": schema});
    let at_chat = |format: Value| json!({"model": "gpt-4o", "messages": [user("go")], "response_format": {"type": "json_schema", "json_schema": format}});
    let at_responses = |format: Value| json!({"model": "gpt-4o", "input": "go", "text": {"format": with(&format, "type", json!("json_schema"))}});
    let good = object(json!({"a": {"type": "string"}}));
    chat().accepts(&at_chat(format(&good, "answer")));
    responses.accepts(&at_responses(format(&good, "answer")));
    let bad =
        json!({"type": "object", "properties": {"a": {"type": "string"}}, "additionalProperties": false});
    chat().refuses(&at_chat(format(&bad, "answer")), "openai.format_schema", "Missing 'a'");
    responses.refuses(&at_responses(format(&bad, "answer")), "openai.format_schema", "Missing 'a'");
    responses.refuses(&at_responses(format(&json!({"anyOf": []}), "answer")), "openai.format_schema", "type");
    chat().refuses(&at_chat(format(&good, "my answer")), "openai.format_name", "pattern");
}

#[test]
fn nesting_is_limited() {
    chat().accepts(&tool("gpt-4o", &nested(5)));
    chat().refuses(
        &tool("gpt-4o", &nested(6)),
        "openai.function_schema",
        "6 levels of nesting exceeds limit of 5",
    );
    chat().accepts(&tool("gpt-5", &nested(11)));
    let account = Account::default().with_optional(OptionalRules::ALL);
    let strict = Host { account, ..chat() };
    strict.accepts(&tool("gpt-5", &nested(10)));
    strict.refuses(&tool("gpt-5", &nested(11)), "openai.function_schema", "11 levels");
    let many: Vec<String> = (0..1001).map(|n| n.to_string()).collect();
    strict.refuses(
        &tool("gpt-5", &object(json!({"a": {"type": "string", "enum": many}}))),
        "openai.function_schema",
        "1001 enum",
    );
}
