//! The Responses endpoint.

use llm_do_provider_rules::{Account, Protocol};
use serde_json::{Value, json};

use crate::{Host, assistant, user, with};

fn host() -> Host {
    Host::new(Protocol::OpenAiResponses, "openai")
}

fn body(model: &str, input: &[Value]) -> Value {
    json!({"model": model, "input": input, "store": false})
}

fn call(id: &str) -> Value {
    json!({"type": "function_call", "call_id": id, "name": "look", "arguments": "{}"})
}

fn output(id: &str) -> Value {
    json!({"type": "function_call_output", "call_id": id, "output": "x"})
}

fn reasoning(n: u32) -> Value {
    json!({"type": "reasoning", "id": format!("rs_{n}"), "summary": [], "encrypted_content": format!("enc{n}")})
}

/// A host that has issued a reasoned call and a reasoned message.
fn issuing() -> Host {
    let mut account = Account::default();
    let reasoned_call = with(&call("a"), "id", json!("fc_1"));
    let reasoned_text = json!({"type": "message", "id": "msg_2", "role": "assistant", "content": []});
    for (n, item) in [(1, reasoned_call), (2, reasoned_text)] {
        let response = json!({"id": format!("resp_{n}"), "store": false, "output": [reasoning(n), item]});
        account.issue(Protocol::OpenAiResponses, &response);
    }
    Host { account, ..host() }
}

#[test]
fn there_is_an_input() {
    host().accepts(&body("gpt-5", &[user("go")]));
    host().accepts(&json!({"model": "gpt-5", "input": "go"}));
    host().refuses(
        &json!({"model": "gpt-5", "input": [], "instructions": "x"}),
        "responses.empty",
        "must be provided",
    );
}

#[test]
fn calls_and_outputs_belong_together() {
    host().accepts(&body("gpt-5", &[user("go"), call("a"), call("b"), output("b"), output("a"), user("on")]));
    let refusal = host().refuses(
        &body("gpt-5", &[user("go"), output("a")]),
        "responses.output_without_call",
        "No tool call found for function call output with call_id a",
    );
    assert_eq!(
        (&refusal.body["error"]["param"], &refusal.body["error"]["code"]),
        (&json!("input"), &Value::Null)
    );
    host().refuses(
        &body("gpt-5", &[user("go"), call("a"), user("on")]),
        "responses.call_without_output",
        "No tool output found for function call a",
    );
}

#[test]
fn ids_have_their_prefix_and_length() {
    let named = |id: &str| with(&call("a"), "id", json!(id));
    host().accepts(&body("gpt-5", &[user("go"), named("fc_x"), output("a")]));
    host().refuses(
        &body("gpt-5", &[user("go"), named("call_x"), output("a")]),
        "responses.id_prefix",
        "begins with 'fc'",
    );
    let said = with(&assistant("x"), "id", json!("item_1"));
    host().refuses(&body("gpt-5", &[user("go"), said]), "responses.id_prefix", "begins with 'msg'");
    let (fits, long) = ("a".repeat(64), "a".repeat(65));
    host().accepts(&body("gpt-5", &[user("go"), call(&fits), output(&fits)]));
    host().refuses(
        &body("gpt-5", &[user("go"), call(&long), output(&long)]),
        "responses.call_item",
        "length 65",
    );
    let twice = [user("go"), named("fc_x"), output("a"), with(&call("b"), "id", json!("fc_x")), output("b")];
    host().refuses(&body("gpt-5", &twice), "responses.duplicate_item", "fc_x");
}

#[test]
fn reasoning_is_followed_by_its_own_item() {
    let host = issuing();
    let own = || with(&call("a"), "id", json!("fc_1"));
    host.accepts(&body("gpt-5", &[user("go"), reasoning(1), own(), output("a")]));
    host.accepts(&body("gpt-5", &[user("go"), reasoning(1), call("a"), output("a")]));
    let rule = "responses.reasoning_without_follower";
    let message = "Item 'rs_1' of type 'reasoning' was provided without its required following item.";
    host.refuses(&body("gpt-5", &[user("go"), reasoning(1)]), rule, message);
    host.refuses(&body("gpt-5", &[user("go"), reasoning(1), user("on")]), rule, message);
    host.refuses(&body("gpt-5", &[user("go"), reasoning(1), assistant("x"), user("on")]), rule, message);
    host.refuses(&body("gpt-5", &[user("go"), reasoning(1), call("b"), output("b")]), rule, message);
    host.accepts(&body("gpt-5", &[user("go"), reasoning(2), assistant("x"), user("on")]));
    // The content may come without its id, but not the other way round.
    let mut nameless = reasoning(1);
    nameless.as_object_mut().unwrap().remove("id");
    host.accepts(&body("gpt-5", &[user("go"), nameless.clone(), call("a"), output("a")]));
    nameless.as_object_mut().unwrap().remove("encrypted_content");
    host.refuses(
        &body("gpt-5", &[user("go"), nameless, call("a"), output("a")]),
        "responses.reasoning_item",
        "id",
    );
}

#[test]
fn an_item_with_its_id_needs_its_reasoning() {
    let own = with(&call("a"), "id", json!("fc_1"));
    issuing().refuses(
        &body("gpt-5", &[user("go"), own, output("a")]),
        "responses.item_without_reasoning",
        "Item 'fc_1' of type 'function_call' was provided without its required 'reasoning' item: 'rs_1'.",
    );
    issuing().accepts(&body("gpt-5", &[user("go"), call("a"), output("a")]));
}

#[test]
fn encrypted_content_is_of_this_account() {
    let refusal = issuing().refuses(
        &body("gpt-5", &[user("go"), reasoning(3), assistant("x"), user("on")]),
        "responses.encrypted_content",
        "could not be verified",
    );
    assert_eq!(refusal.body["error"]["code"], "invalid_encrypted_content");
}

#[test]
fn a_response_can_be_continued_if_it_was_stored() {
    let mut account = Account::default();
    let response = |id: &str, store: bool| json!({"id": id, "store": store, "output": [with(&call("a"), "id", json!("fc_9"))]});
    account.issue(Protocol::OpenAiResponses, &response("resp_kept", true));
    account.issue(Protocol::OpenAiResponses, &response("resp_gone", false));
    let host = Host { account, ..host() };
    let after = |id: &str, input: &[Value]| with(&body("gpt-5", input), "previous_response_id", json!(id));
    host.accepts(&after("resp_kept", &[output("a")]));
    host.refuses(&after("resp_kept", &[user("on")]), "responses.call_without_output", "a");
    let sent_again = [with(&call("b"), "id", json!("fc_9")), output("b"), output("a")];
    host.refuses(&after("resp_kept", &sent_again), "responses.duplicate_item", "fc_9");
    let refusal =
        host.refuses(&after("resp_gone", &[output("a")]), "responses.previous_response", "not found");
    assert_eq!(refusal.body["error"]["code"], "previous_response_not_found");
    let both = with(&after("resp_kept", &[output("a")]), "conversation", json!("conv_1"));
    host.refuses(&both, "responses.previous_response", "Mutually exclusive");
}

#[test]
fn parameters_are_those_of_the_endpoint() {
    let ask = |model: &str, name: &str, value: Value| with(&body(model, &[user("go")]), name, value);
    for name in ["seed", "stop", "presence_penalty", "n", "logit_bias", "max_tokens", "messages"] {
        host().refuses(&ask("gpt-4o", name, json!(1)), "openai.unknown_parameter", name);
    }
    host().accepts(&ask("gpt-4o", "max_output_tokens", json!(16)));
    let refusal =
        host().refuses(&ask("gpt-4o", "max_output_tokens", json!(15)), "openai.max_output_tokens", ">= 16");
    assert_eq!(refusal.body["error"]["code"], "integer_below_min_value");
    host().refuses(&ask("gpt-5", "temperature", json!(0.5)), "openai.sampling", "temperature");
    host().accepts(&ask("gpt-4o", "temperature", json!(0.5)));
    let refusal = host().refuses(
        &ask("gpt-5.6-sol", "reasoning", json!({"effort": "minimal"})),
        "openai.effort",
        "minimal",
    );
    assert_eq!(refusal.body["error"]["param"], "reasoning.effort");
    host().accepts(&ask("gpt-5", "reasoning", json!({"effort": "minimal"})));
    host().refuses(&ask("gpt-4.1", "reasoning", json!({"effort": "low"})), "openai.effort", "not supported");
    host().refuses(
        &ask("gpt-4.1", "reasoning", json!({"summary": "auto"})),
        "openai.effort",
        "reasoning.summary",
    );
    host().accepts(&with(&ask("gpt-5.1", "reasoning", json!({"effort": "none"})), "temperature", json!(0.5)));
    let mode = json!({"format": {"type": "json_object"}});
    host().refuses(
        &ask("gpt-4o", "text", mode.clone()),
        "openai.json_mode",
        "'input' must contain the word 'json'",
    );
    host().accepts(&with(&body("gpt-4o", &[user("as JSON")]), "text", mode));
}

#[test]
fn tools_are_well_formed() {
    let ask = |tools: Value| with(&body("gpt-4o", &[user("go")]), "tools", tools);
    host().accepts(&ask(json!([{"type": "function", "name": "a", "parameters": null, "strict": null}])));
    host().refuses(&ask(json!([{"type": "function", "name": "a b"}])), "openai.tool_name", "tools[0].name");
    host().refuses(&ask(json!([{"type": "code_interpreter"}])), "openai.server_tool", "container");
    host().accepts(&ask(json!([{"type": "code_interpreter", "container": {"type": "auto"}}])));
    host().accepts(&ask(json!([{"type": "web_search", "filters": {"allowed_domains": ["a.example"]}}])));
    host().refuses(
        &ask(json!([{"type": "web_search", "filters": {"blocked_domains": []}}])),
        "openai.server_tool",
        "filters",
    );
    host().refuses(&ask(json!([{"type": "mcp", "server_label": "a"}])), "openai.server_tool", "Exactly one");
    host().accepts(&ask(json!([{"type": "mcp", "server_label": "a", "server_url": "https://a.example"}])));
    let file = |kind: &str| {
        user(
            json!([{"type": "input_file", "filename": "a", "file_data": format!("data:{kind};base64,AA==")}]),
        )
    };
    host().accepts(&body("gpt-4o", &[file("application/pdf")]));
    host().refuses(&body("gpt-4o", &[file("audio/mpeg")]), "responses.file", "audio/mpeg");
}

#[test]
fn unknown_models_are_a_bad_request() {
    let account = Account::default().with_models(["gpt-5"]);
    let refusal = Host { account, ..host() }.refuses(&body("gpt-x", &[user("go")]), "unknown_model", "gpt-x");
    assert_eq!(
        (refusal.status, &refusal.body["error"]["code"], &refusal.body["error"]["param"]),
        (400, &json!("model_not_found"), &json!("model"))
    );
}
