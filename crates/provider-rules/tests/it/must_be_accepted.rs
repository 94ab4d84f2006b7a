//! Requests that providers accept although one might think otherwise.

use llm_do_provider_rules::Protocol;
use serde_json::{Value, json};

use crate::chat::{body, calls, function, tool};
use crate::{Host, anthropic, assistant, message, user, with};

fn object() -> Value {
    json!({"type": "object", "properties": {"a": {"type": "string"}}, "required": [], "additionalProperties": false})
}

#[test]
fn anthropic_takes_any_order_of_roles() {
    for model in ["claude-sonnet-4-5", "claude-sonnet-4-6", "claude-opus-4-8"] {
        anthropic::host().accepts(&anthropic::body(model, &[assistant("x"), user("a")]));
        anthropic::host().accepts(&anthropic::body(
            model,
            &[user("a"), user("b"), assistant("x"), assistant("y"), user("c")],
        ));
    }
}

#[test]
fn anthropic_takes_forced_tools_while_it_thinks_adaptively() {
    for model in [
        "claude-opus-4-6",
        "claude-sonnet-4-6",
        "claude-opus-4-7",
        "claude-opus-4-8",
        "claude-sonnet-5",
        "claude-opus-5",
    ] {
        let forced = with(&anthropic::body(model, &[user("a")]), "tool_choice", json!({"type": "any"}));
        anthropic::host().accepts(&with(&forced, "thinking", json!({"type": "adaptive"})));
    }
}

#[test]
fn anthropic_takes_tools_with_a_format_and_optional_properties_in_strict_tools() {
    let tools = json!([{"name": "look", "strict": true, "input_schema": object()}]);
    let format = json!({"format": {"type": "json_schema", "schema": object()}});
    let asked = with(&anthropic::body("claude-opus-4-8", &[user("a")]), "tools", tools);
    anthropic::host().accepts(&with(&asked, "output_config", format));
}

#[test]
fn openai_takes_the_user_after_a_tool_and_several_system_messages() {
    for provider in ["openai", "groq", "deepseek", "openrouter", "azure"] {
        let system = message("system", "s");
        let messages = [system.clone(), system, user("a"), calls(&["x"]), tool("x"), user("b")];
        let body = body("m", &messages);
        Host::new(Protocol::OpenAiChat, provider).accepts(&body);
    }
}

#[test]
fn openai_and_mistral_take_tools_with_a_format() {
    let format = json!({"type": "json_schema", "json_schema": {"name": "a", "schema": object()}});
    for (provider, model) in [("openai", "gpt-4o"), ("mistral", "mistral-large-latest")] {
        let asked = with(&body(model, &[user("a")]), "tools", json!([function("look")]));
        Host::new(Protocol::OpenAiChat, provider).accepts(&with(&asked, "response_format", format.clone()));
    }
}

#[test]
fn gemini_takes_a_role_twice_empty_text_and_references() {
    let said = |role: &str, text: &str| json!({"role": role, "parts": [{"text": text}]});
    for model in ["gemini-2.5-flash", "gemini-3-flash-preview"] {
        let contents = json!([
            said("user", "a"),
            said("user", ""),
            said("model", "x"),
            said("model", "y"),
            said("user", "b")
        ]);
        let schema = json!({"type": "object", "properties": {"a": {"$ref": "#/$defs/A"}}, "$defs": {"A": {"type": "string"}},
            "additionalProperties": false});
        let tools = json!([{"functionDeclarations": [{"name": "look", "parametersJsonSchema": schema}]}]);
        Host::gemini(model).accepts(&json!({"contents": contents, "tools": tools}));
    }
}

#[test]
fn llamacpp_takes_an_image_in_a_tool_message() {
    let image = json!([{"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}]);
    let result = json!({"role": "tool", "tool_call_id": "x", "content": image});
    Host::new(Protocol::OpenAiChat, "llamacpp").accepts(&body("m", &[user("a"), calls(&["x"]), result]));
}
