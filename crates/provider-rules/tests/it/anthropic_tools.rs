//! Tools and schemas of Anthropic.

use serde_json::{Value, json};

use crate::anthropic::{body, host};
use crate::{user, with};

fn request(tools: Value) -> Value {
    with(&body("claude-opus-4-8", &[user("go")]), "tools", tools)
}

fn tool(name: &str, schema: Value) -> Value {
    json!({"name": name, "description": "d", "input_schema": schema})
}

fn strict(schema: Value) -> Value {
    json!({"name": "look", "strict": true, "input_schema": schema})
}

/// An object with these properties, all required.
fn object(properties: Value) -> Value {
    let required: Vec<&String> = properties.as_object().unwrap().keys().collect();
    json!({"type": "object", "properties": properties, "required": required, "additionalProperties": false})
}

/// An object with so many optional properties and so many that are unions.
fn large(optional: usize, unions: usize) -> Value {
    let optional = (0..optional).map(|n| (format!("o{n}"), json!({"type": "string"})));
    let unions = (0..unions).map(|n| (format!("u{n}"), json!({"type": ["string", "null"]})));
    let properties: serde_json::Map<String, Value> = optional.chain(unions.clone()).collect();
    let required: Vec<String> = unions.map(|(name, _)| name).collect();
    json!({"type": "object", "properties": properties, "required": required, "additionalProperties": false})
}

#[test]
fn definitions_are_well_formed() {
    let rule = "anthropic.tool_definition";
    let empty = json!({"type": "object"});
    host().accepts(&request(json!([tool("look", empty.clone()), tool("look-2", empty.clone())])));
    host().refuses(
        &request(json!([tool("look", empty.clone()), tool("look", empty.clone())])),
        rule,
        "must be unique",
    );
    let search = json!({"type": "web_search_20250305", "name": "web_search"});
    host().refuses(&request(json!([tool("web_search", empty.clone()), search])), rule, "must be unique");
    host().refuses(&request(json!([tool("a.b", empty.clone())])), rule, "tools.0.custom.name");
    host().accepts(&request(json!([tool(&"a".repeat(128), empty.clone())])));
    host().refuses(&request(json!([tool(&"a".repeat(129), empty)])), rule, "tools.0.custom.name");
    for (schema, message) in [
        (json!({"properties": {}}), "input_schema.type: Field required"),
        (json!({"type": "string"}), "Input should be 'object'"),
        (json!(true), "does not match the expected shape"),
        (json!({"type": "object", "anyOf": []}), "does not support oneOf, allOf, or anyOf at the top level"),
        (json!({"type": "object", "properties": {"a b": {}}}), "Property keys should match pattern"),
    ] {
        host().refuses(&request(json!([tool("look", schema)])), rule, message);
    }
    host().accepts(&request(json!([tool(
        "look",
        json!({"type": "object", "properties": {"a.b-c": {"anyOf": []}}})
    )])));
}

#[test]
fn server_tools_have_their_names() {
    let rule = "anthropic.server_tool";
    host().accepts(&request(
        json!([{"type": "web_search_20250305", "name": "web_search", "allowed_domains": ["a"]}]),
    ));
    host().refuses(
        &request(json!([{"type": "web_search_20250305", "name": "search"}])),
        rule,
        "'web_search'",
    );
    let both = json!([{"type": "web_search_20250305", "name": "web_search", "allowed_domains": [], "blocked_domains": []}]);
    host().refuses(&request(both), rule, "Only one of");
    host().refuses(&request(json!([{"type": "telepathy_1", "name": "x"}])), rule, "does not match");
    let recent = json!([{"type": "web_search_20260209", "name": "web_search"}]);
    host().accepts(&request(recent.clone()));
    host().refuses(&with(&body("claude-haiku-4-5", &[user("go")]), "tools", recent), rule, "not supported");
    let schema = json!([{"type": "bash_20250124", "name": "bash", "input_schema": {"type": "object"}}]);
    host().refuses(&request(schema), rule, "Extra inputs");
}

#[test]
fn toolsets_and_servers_belong_together() {
    let server = json!([{"type": "url", "name": "docs", "url": "https://a.example"}]);
    let toolset = |name: &str| json!([{"type": "mcp_toolset", "mcp_server_name": name}]);
    host().accepts(&with(&request(toolset("docs")), "mcp_servers", server.clone()));
    host().refuses(&request(toolset("docs")), "anthropic.mcp_toolset", "has no server");
    host().refuses(
        &with(&request(toolset("other")), "mcp_servers", server),
        "anthropic.mcp_toolset",
        "not referenced",
    );
}

#[test]
fn deferred_tools_are_not_cached_and_not_alone() {
    let deferred = json!({"name": "a", "input_schema": {"type": "object"}, "defer_loading": true});
    let search = json!({"type": "tool_search_tool_bm25_20251119", "name": "tool_search_tool_bm25"});
    host().accepts(&request(json!([deferred, search])));
    host().refuses(&request(json!([deferred])), "anthropic.all_deferred", "must not be deferred");
    let cached = with(&deferred, "cache_control", json!({"type": "ephemeral"}));
    host().refuses(&request(json!([cached, search])), "anthropic.cache_control", "defer_loading");
}

#[test]
fn choices_have_their_fields() {
    let choose =
        |choice: Value| with(&request(json!([tool("a", json!({"type": "object"}))])), "tool_choice", choice);
    host().accepts(&choose(json!({"type": "tool", "name": "a", "disable_parallel_tool_use": true})));
    host().accepts(&choose(json!({"type": "none"})));
    host().refuses(&choose(json!({"type": "tool"})), "anthropic.tool_choice", "name: Field required");
    host().refuses(
        &choose(json!({"type": "none", "disable_parallel_tool_use": true})),
        "anthropic.tool_choice",
        "Extra",
    );
    host().refuses(&choose(json!({"type": "required"})), "anthropic.tool_choice", "expected tags");
}

#[test]
fn strict_schemas_have_only_what_can_be_compiled() {
    let rule = "anthropic.strict_schema";
    host().accepts(&request(json!([strict(object(json!({
        "a": {"type": "string", "format": "uri", "description": "d", "enum": ["x"]},
        "b": {"type": "array", "items": {"$ref": "#/$defs/n"}, "minItems": 1},
        "c": {"anyOf": [{"type": "null"}, {"const": 1}]},
    })))])));
    let within = |schema: Value| request(json!([strict(object(json!({"a": schema})))]));
    for schema in [
        json!({"type": "integer", "minimum": 1}),
        json!({"type": "integer", "exclusiveMaximum": 1}),
        json!({"type": "integer", "multipleOf": 2}),
        json!({"type": "string", "maxLength": 1}),
        json!({"type": "string", "pattern": "a"}),
        json!({"type": "array", "maxItems": 3}),
        json!({"type": "array", "uniqueItems": true}),
        json!({"oneOf": [{"type": "string"}]}),
        json!({"not": {"type": "string"}}),
    ] {
        host().refuses(&within(schema), rule, "is not supported");
    }
    host().refuses(&within(json!({"type": "array", "minItems": 2})), rule, "'minItems'");
    host().refuses(&within(json!({"type": "string", "format": "regex"})), rule, "'format'");
    host().refuses(&within(json!(true)), rule, "property 'properties' is not supported");
    host().refuses(&within(json!({"type": "object", "properties": {}})), rule, "'additionalProperties'");
    // The same is accepted if the tool is not strict.
    host().accepts(&request(json!([tool(
        "a",
        json!({"type": "object", "properties": {"a": {"minimum": 1}}})
    )])));
}

#[test]
fn strict_schemas_do_not_refer_to_themselves() {
    let rule = "anthropic.strict_schema";
    let node = object(json!({"next": {"anyOf": [{"$ref": "#/$defs/Node"}, {"type": "null"}]}}));
    let mut recursive = object(json!({"root": {"$ref": "#/$defs/Node"}}));
    recursive["$defs"] = json!({"Node": node});
    let message = "Circular reference detected in schema definitions: Node -> Node";
    host().refuses(&request(json!([strict(recursive.clone())])), rule, message);
    recursive["$defs"]["Node"] = object(json!({"leaf": {"type": "string"}}));
    host().accepts(&request(json!([strict(recursive)])));
    let both = json!({"A": object(json!({"b": {"$ref": "#/$defs/B"}})), "B": object(json!({"a": {"$ref": "#/$defs/A"}}))});
    let mut mutual = object(json!({"a": {"$ref": "#/$defs/A"}}));
    mutual["$defs"] = both;
    host().refuses(&request(json!([strict(mutual)])), rule, "A -> B -> A");
    let format = json!({"format": {"type": "json_schema", "schema": {"$ref": "#/$defs/A", "$defs": {"A": object(json!({}))}}}});
    host().refuses(&with(&request(json!([])), "output_config", format), rule, "'type'");
}

#[test]
fn strict_schemas_are_few_and_small() {
    let rule = "anthropic.strict_schema";
    let named = |count: usize, schema: &Value| -> Value {
        let tools =
            (0..count).map(|n| json!({"name": format!("t{n}"), "strict": true, "input_schema": schema}));
        tools.collect::<Vec<_>>().into()
    };
    host().accepts(&request(named(20, &object(json!({})))));
    host().refuses(&request(named(21, &object(json!({})))), rule, "Too many strict tools (21)");
    host().accepts(&request(named(2, &large(12, 0))));
    host().refuses(&request(named(5, &large(5, 0))), rule, "too many optional parameters (25)");
    host().accepts(&request(named(2, &large(0, 8))));
    host().refuses(&request(named(17, &large(0, 1))), rule, "too many parameters with union types (17");
    host().accepts(&request(named(1, &large(23, 0))));
    host().refuses(&request(named(1, &large(24, 0))), rule, "too complex");
    host().accepts(&request(named(1, &large(0, 15))));
    host().refuses(&request(named(1, &large(0, 16))), rule, "too complex");
}

#[test]
fn formats_need_a_recent_model_and_no_citations() {
    let format =
        json!({"format": {"type": "json_schema", "schema": object(json!({"a": {"type": "string"}}))}});
    let ask = |model: &str, message: Value| with(&body(model, &[message]), "output_config", format.clone());
    host().accepts(&ask("claude-opus-4-1", user("go")));
    host().accepts(&ask("claude-haiku-4-5", user("go")));
    let rule = "anthropic.strict_schema";
    host().refuses(&ask("claude-sonnet-4-20250514", user("go")), rule, "not supported for this model");
    let document = |cites: bool| {
        user(json!([{"type": "document", "citations": {"enabled": cites},
        "source": {"type": "text", "media_type": "text/plain", "data": "x"}}]))
    };
    host().accepts(&ask("claude-opus-4-8", document(false)));
    host().refuses(&ask("claude-opus-4-8", document(true)), "anthropic.format_with_citations", "citations");
}
