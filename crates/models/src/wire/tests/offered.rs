//! What is offered to a model: one tool or schema that a provider refuses never breaks a request.

use std::sync::Arc;

use llm_do_core::{Message, ModelProfile, Schema, ServerTool, ToolDefinition};
use serde_json::{Value, json};

use super::super::Api;
use super::super::encode::RequestTarget;
use super::requests::{Asked, body, encoded, target};

const APIS: [Api; 5] = [Api::Anthropic, Api::OpenAiChat, Api::OpenAiResponses, Api::Gemini, Api::Ollama];

fn tool(name: &str, input: Value) -> Arc<ToolDefinition> {
    Arc::new(ToolDefinition::new(name, "", Schema::new(input).unwrap()))
}

/// Returns the input schemas of a request by the names of the tools.
fn inputs(api: Api, sent: &Value) -> Vec<(String, Value)> {
    let tools = match api {
        Api::Gemini => &sent["tools"][0]["functionDeclarations"],
        _ => &sent["tools"],
    };
    let input = |tool: &Value| {
        let function = tool.get("function").unwrap_or(tool);
        let keys = ["input_schema", "parameters", "parametersJsonSchema"];
        let schema = keys.into_iter().find_map(|key| function.get(key)).cloned().unwrap_or_default();
        (function["name"].as_str().unwrap_or_default().to_owned(), schema)
    };
    tools.as_array().into_iter().flatten().map(input).collect()
}

#[test]
fn the_input_of_every_tool_is_an_object_without_combiners_at_its_top() {
    let text = json!({"type": "string"});
    let schemas = [
        json!({}),
        json!({"properties": {"a": text}}),
        json!({"type": "object"}),
        json!({"anyOf": [{"properties": {"a": text}}, {"properties": {"b": text}}]}),
        json!({"type": "object", "properties": {"a": text}, "oneOf": [{"required": ["a"]}]}),
        json!({"allOf": [{"properties": {"a": text}}, {"required": ["a"]}]}),
        json!({"$ref": "#/$defs/T", "$defs": {"T": {"type": "object", "properties": {"a": text}}}}),
        json!({"$ref": "#/$defs/T", "$defs": {"T": {"properties": {"a": {"$ref": "#/$defs/T"}}}}}),
    ];
    let mut asked = Asked::of([Message::user("hi")]);
    asked.tools = (0..).zip(schemas).map(|(number, schema)| tool(&format!("t{number}"), schema)).collect();
    for api in APIS {
        let inputs = inputs(api, &body(&encoded(target(api), &asked)));
        assert_eq!(inputs.len(), asked.tools.len());
        for (name, schema) in inputs {
            assert_eq!(schema["type"], "object", "{api:?} {name}: {schema}");
            assert!(schema["properties"].is_object(), "{api:?} {name}: {schema}");
            for key in ["anyOf", "oneOf", "allOf", "$ref"] {
                assert!(schema.get(key).is_none(), "{api:?} {name}: {schema}");
            }
        }
    }
}

#[test]
fn a_parameter_or_tool_with_a_name_that_a_provider_refuses_is_left_out_with_a_notice() {
    let text = json!({"type": "string"});
    let mut asked = Asked::of([Message::user("hi")]);
    asked.tools = vec![
        tool("plain", json!({"type": "object", "properties": {"a.b-c_1": text}})),
        tool("optional", json!({"type": "object", "properties": {"größe": text, "a": text}})),
        tool("required", json!({"type": "object", "properties": {"a b": text}, "required": ["a b"]})),
        tool("7zip", json!({"type": "object", "properties": {}})),
    ];
    let names = |api| {
        let encoded = encoded(target(api), &asked);
        let names = inputs(api, &body(&encoded)).into_iter().map(|(name, _)| name).collect::<Vec<_>>();
        (names, encoded.notices)
    };
    let (offered, notices) = names(Api::Anthropic);
    assert_eq!(offered, ["plain", "optional", "7zip"]);
    assert!(notices.len() == 2 && notices.iter().any(|notice| notice.contains("`required`")), "{notices:?}");
    let (_, optional) = &inputs(Api::Anthropic, &body(&encoded(target(Api::Anthropic), &asked)))[1];
    assert_eq!(optional["properties"], json!({"a": text}));
    let (offered, notices) = names(Api::Gemini);
    assert_eq!(offered, ["plain", "optional", "required"]);
    assert!(notices.len() == 1 && notices[0].contains("`7zip`"), "{notices:?}");
    assert_eq!(
        names(Api::OpenAiResponses),
        (asked.tools.iter().map(|it| it.name.to_string()).collect(), Vec::new())
    );
}

#[test]
fn server_side_tools_that_a_provider_refuses_together_are_left_out_with_a_notice() {
    let search = |allowed: &[&str], blocked: &[&str]| ServerTool::WebSearch {
        max_uses: None,
        allowed_domains: allowed.iter().map(|&it| it.to_owned()).collect(),
        blocked_domains: blocked.iter().map(|&it| it.to_owned()).collect(),
    };
    let profile = ModelProfile { server_tools: &["web_search"], ..ModelProfile::default() };
    let names = |asked: &Asked| {
        let encoded = encoded(RequestTarget { profile: profile.clone(), ..target(Api::Anthropic) }, asked);
        let tools = body(&encoded)["tools"].take();
        let name = |tool: &Value| tool["name"].as_str().unwrap_or_default().to_owned();
        (tools.as_array().into_iter().flatten().map(name).collect::<Vec<_>>(), encoded.notices.len())
    };
    let mut asked = Asked::of([Message::user("hi")]);
    asked.server_tools = vec![search(&[], &[]), search(&["a.org"], &[])];
    assert_eq!(names(&asked), (vec!["web_search".to_owned()], 0), "each kind once");
    asked.server_tools = vec![search(&["a.org"], &["b.org"])];
    assert_eq!(names(&asked), (Vec::new(), 1), "contradictory domains");
    asked.server_tools = vec![search(&[], &[])];
    asked.tools = vec![tool("web_search", json!({"type": "object", "properties": {}}))];
    assert_eq!(names(&asked), (vec!["web_search".to_owned()], 1), "the agent's own tool stays");
}

#[test]
fn the_schema_of_an_answer_has_only_what_its_provider_accepts() {
    let field = json!({"oneOf": [{"const": "a"}, {"const": "b"}], "default": "a"});
    let link = json!({"type": "string", "format": "uri"});
    let schema =
        json!({"type": "object", "properties": {"kind": field, "link": link}, "required": ["kind", "link"]});
    let mut asked = Asked::of([Message::user("hi")]);
    asked.output_schema = Some(Schema::new(schema).unwrap());
    let union = json!({"anyOf": [{"const": "a", "type": "string"}, {"const": "b", "type": "string"}]});
    let strict = body(&encoded(target(Api::OpenAiResponses), &asked))["text"]["format"].take();
    assert_eq!((&strict["strict"], &strict["schema"]["properties"]["kind"]), (&json!(true), &union));
    assert_eq!(strict["schema"]["properties"]["link"].get("format"), None);
    let native = body(&encoded(target(Api::Anthropic), &asked))["output_config"]["format"]["schema"].take();
    assert_eq!((&native["properties"]["kind"], &native["properties"]["link"]), (&union, &link));
}
