//! Schemas in the forms of providers: examples, and properties of many random ones.

use std::sync::Arc;

use llm_do_core::{Conversation, Message, ModelRequest, ModelSettings, Schema, ToolDefinition};
use llm_do_provider_rules::{Account, Protocol, ProviderRequest};
use serde_json::{Map, Value, json};

use super::super::{Encoder, RequestTarget};
use super::*;
use crate::profile_of;
use crate::profiles::rules_of;

/// An object with one required field.
fn with(field: Value) -> Value {
    json!({"type": "object", "properties": {"a": field}, "required": ["a"], "additionalProperties": false})
}

fn strict_field(field: Value) -> Option<Value> {
    strict_output(&with(field)).map(|schema| schema["properties"]["a"].clone())
}

fn anthropic_field(field: Value) -> Option<Value> {
    anthropic_output(&with(field)).map(|schema| schema["properties"]["a"].clone())
}

#[test]
fn strict_mode_is_used_only_for_what_openai_accepts() {
    let text = json!({"type": "string"});
    let unchanged = [
        text.clone(),
        with(json!({"type": "array", "items": text})),
        json!({"type": "string", "format": "date-time"}),
        json!({"type": ["string", "null"]}),
        json!({"type": "string", "pattern": "^[a-z]+(?:-[a-z]+)*$"}),
        json!({"type": "integer", "minimum": 1, "maximum": 9, "multipleOf": 2}),
        json!({"anyOf": [text, {"type": "null"}], "description": "d"}),
    ];
    for field in unchanged {
        assert_eq!(strict_field(field.clone()), Some(field));
    }
    let refused = [
        json!({}),
        json!(true),
        json!({"description": "anything"}),
        json!({"type": "array"}),
        json!({"type": "object"}),
        json!({"type": ["object", "null"]}),
        json!({"type": "object", "additionalProperties": {"type": "integer"}}),
        json!({"type": "object", "properties": {}, "additionalProperties": true}),
        json!({"type": "object", "properties": {}}),
        json!({"type": "object", "properties": {"b": text}}),
        json!({"type": "array", "items": {"type": "object"}}),
        json!({"type": "array", "items": text, "uniqueItems": true}),
        json!({"type": "string", "minLength": 1}),
        json!({"type": "string", "maxLength": 9}),
        json!({"type": "string", "pattern": "^(?=a)"}),
        json!({"type": "string", "pattern": "(a)\\1"}),
        json!({"oneOf": [text, {"type": "string", "pattern": "^a"}]}),
        json!({"allOf": [text, {"pattern": "^a"}]}),
        json!({"not": text}),
        json!({"type": "string", "if": {"const": "a"}, "then": {"maxLength": 3}}),
        json!({"const": {"k": 1}}),
        json!({"type": "object", "properties": {}, "patternProperties": {"^a": text}, "additionalProperties": false}),
    ];
    for field in refused {
        assert_eq!(strict_field(field.clone()), None, "{field}");
    }
    for root in [json!({"type": "object"}), text.clone(), json!({"anyOf": [with(text)]}), json!(true)] {
        assert_eq!(strict_output(&root), None, "{root}");
    }
}

#[test]
fn strict_mode_gets_an_equal_schema_without_what_openai_refuses() {
    let cases = [
        (json!({"const": "x"}), json!({"type": "string", "const": "x"})),
        (
            json!({"enum": ["x", 1, null]}),
            json!({"type": ["integer", "null", "string"], "enum": ["x", 1, null]}),
        ),
        (json!({"type": "string", "default": "x", "examples": ["y"]}), json!({"type": "string"})),
        (
            json!({"type": "string", "format": "uri", "description": "A page."}),
            json!({"type": "string", "description": "A page. (format: \"uri\")"}),
        ),
        (json!({"allOf": [{"type": "string"}], "title": "t"}), json!({"type": "string", "title": "t"})),
        (
            json!({"oneOf": [{"type": "string"}, {"type": "integer"}]}),
            json!({"anyOf": [{"type": "string"}, {"type": "integer"}]}),
        ),
        (json!({"type": "string", "minimum": 3, "items": true}), json!({"type": "string"})),
        (
            json!({"properties": {"b": {"anyOf": [{"type": "string"}, {"type": "null"}], "default": null}}}),
            json!({"type": "object", "properties": {"b": {"anyOf": [{"type": "string"}, {"type": "null"}]}},
                "required": ["b"], "additionalProperties": false}),
        ),
        (
            json!({"type": ["array", "null"], "items": {"type": "string"}, "description": "d"}),
            json!({"anyOf": [{"type": "array", "items": {"type": "string"}}, {"type": "null"}], "description": "d"}),
        ),
    ];
    for (field, expected) in cases {
        assert_eq!(strict_field(field.clone()), Some(expected), "{field}");
    }
    let tagged =
        |kind: &str| json!({"type": "object", "properties": {"kind": {"const": kind}}, "required": ["kind"]});
    assert!(strict_field(json!({"oneOf": [tagged("a"), tagged("b")]})).is_some());
    assert!(strict_field(json!({"oneOf": [tagged("a"), tagged("a")]})).is_none());
    let old = json!({"$schema": "http://json-schema.org/draft-07/schema#", "type": "object",
        "properties": {"a": {"type": "string", "format": "uri"}}, "required": ["a"], "additionalProperties": false});
    assert_eq!(strict_output(&old), None, "in this draft a format is checked");
}

#[test]
fn references_in_strict_mode_have_nothing_beside_them() {
    let schema = |field: Value, key: &str| {
        json!({"type": "object", "properties": {"a": field}, "required": ["a"], "additionalProperties": false,
            key: {"Node": with(json!({"anyOf": [{"$ref": format!("#/{key}/Node")}, {"type": "null"}]}))}})
    };
    for key in ["$defs", "definitions"] {
        let reference = format!("#/{key}/Node");
        let strict = strict_output(&schema(json!({"$ref": reference, "description": "d"}), key)).unwrap();
        let wrapped = json!({"anyOf": [{"$ref": "#/$defs/Node"}], "description": "d"});
        assert_eq!(strict["properties"]["a"], wrapped);
        assert_eq!(strict["$defs"]["Node"]["properties"]["a"]["anyOf"][0], json!({"$ref": "#/$defs/Node"}));
        assert_eq!(strict_output(&schema(json!({"$ref": reference, "minProperties": 1}), key)), None);
    }
    assert_eq!(strict_output(&schema(json!({"$ref": "#/$defs/Other"}), "$defs")), None);
    let rooted = json!({"$ref": "#/$defs/Node", "$defs": {"Node": with(json!({"type": "string"}))}});
    assert_eq!(strict_output(&rooted).unwrap()["type"], "object");
}

#[test]
fn a_schema_beyond_the_limits_of_strict_mode_is_not_strict() {
    let nested = |levels: usize| (0..levels).fold(json!({"type": "string"}), |inner, _| with(inner));
    assert!(strict_output(&nested(5)).is_some() && strict_output(&nested(6)).is_none());
    let values = |count: usize| (0..count).map(|n| json!(format!("value-{n}"))).collect::<Vec<_>>();
    assert!(strict_field(json!({"type": "string", "enum": values(1_000)})).is_some());
    assert!(strict_field(json!({"type": "string", "enum": values(1_001)})).is_none());
    let long = values(300).into_iter().map(|value| json!(format!("{value}{}", "x".repeat(60))));
    assert!(strict_field(json!({"type": "string", "enum": long.collect::<Vec<_>>()})).is_none());
    let fields: Map<String, Value> = (0..5_001).map(|n| (format!("f{n}"), json!({"type": "null"}))).collect();
    let wide = json!({"type": "object", "properties": fields, "required": fields.keys().collect::<Vec<_>>()});
    assert!(strict_output(&wide).is_none());
}

#[test]
fn anthropic_gets_only_keywords_that_it_accepts() {
    let cases = [
        (
            json!({"oneOf": [{"type": "string"}, {"type": "string", "pattern": "^(?=a)"}]}),
            json!({"anyOf": [{"type": "string"}, {"type": "string", "description": "(pattern: \"^(?=a)\")"}]}),
        ),
        (
            json!({"type": "integer", "minimum": 0, "description": "How many."}),
            json!({"type": "integer", "description": "How many. (minimum: 0)"}),
        ),
        (
            json!({"type": "array", "items": {"type": "string"}, "minItems": 2, "uniqueItems": true}),
            json!({"type": "array", "items": {"type": "string"}, "description": "(minItems: 2, uniqueItems: true)"}),
        ),
        (
            json!({"type": "array", "items": {"type": "string"}, "minItems": 1}),
            json!({"type": "array", "items": {"type": "string"}, "minItems": 1}),
        ),
        (json!({"type": "string", "format": "uri"}), json!({"type": "string", "format": "uri"})),
        (
            json!({"type": "string", "format": "binary"}),
            json!({"type": "string", "description": "(format: \"binary\")"}),
        ),
        (json!({"type": "string", "default": "x", "x-note": 1, "$comment": "c"}), json!({"type": "string"})),
        (
            json!({"type": "object", "properties": {"b": {"type": "string"}}}),
            json!({"type": "object", "properties": {"b": {"type": "string"}}, "additionalProperties": false}),
        ),
        (json!({"const": 3}), json!({"const": 3, "type": "integer"})),
    ];
    for (field, expected) in cases {
        assert_eq!(anthropic_field(field.clone()), Some(expected), "{field}");
    }
    let refused = [
        json!({}),
        json!(true),
        json!({"type": "object"}),
        json!({"type": "object", "additionalProperties": {"type": "string"}}),
        json!({"type": "array"}),
        json!({"allOf": [with(json!({"type": "string"})), {"properties": {"b": {"type": "string"}}}]}),
    ];
    for field in refused {
        assert_eq!(anthropic_field(field.clone()), None, "{field}");
    }
}

#[test]
fn anthropic_gets_references_replaced_and_no_recursion() {
    let node = with(json!({"anyOf": [{"$ref": "#/$defs/Node"}, {"type": "null"}]}));
    let recursive =
        json!({"type": "object", "properties": {"a": {"$ref": "#/$defs/Node"}}, "$defs": {"Node": node}});
    assert_eq!(anthropic_output(&recursive), None);
    assert_eq!(gemini_output(&recursive), None);
    let own = json!({"type": "object", "properties": {"a": {"$ref": "#"}}});
    assert_eq!(anthropic_output(&own), None);
    let plain = json!({"type": "object", "properties": {"a": {"$ref": "#/$defs/T", "description": "d"}},
        "$defs": {"T": {"type": "string", "description": "old"}}});
    let expected = json!({"type": "object", "properties": {"a": {"type": "string", "description": "d"}},
        "additionalProperties": false});
    assert_eq!(anthropic_output(&plain), Some(expected));
    let doubling: Map<String, Value> = (0..40)
        .map(|n| {
            let next = json!({"$ref": format!("#/$defs/d{}", n + 1)});
            (format!("d{n}"), json!({"anyOf": [next, next]}))
        })
        .chain([("d40".to_owned(), json!({"type": "string"}))])
        .collect();
    let bomb = json!({"type": "object", "properties": {"a": {"$ref": "#/$defs/d0"}}, "required": ["a"],
        "$defs": doubling});
    assert_eq!(anthropic_output(&bomb), None);
    assert_eq!(strict_output(&bomb), None);
}

#[test]
fn a_schema_too_complex_for_anthropic_is_not_sent_to_it() {
    let object = |count: usize, field: &Value| {
        let fields: Map<String, Value> = (0..count).map(|n| (format!("f{n}"), field.clone())).collect();
        json!({"type": "object", "properties": fields})
    };
    let text = json!({"type": "string"});
    assert!(anthropic_output(&object(23, &text)).is_some() && anthropic_output(&object(24, &text)).is_none());
    let union = json!({"type": ["string", "null"]});
    assert!(
        anthropic_output(&object(15, &union)).is_some() && anthropic_output(&object(16, &union)).is_none()
    );
}

#[test]
fn gemini_gets_only_keywords_that_it_accepts() {
    let schema = json!({"type": "object", "$schema": "x", "title": "t", "properties": {
        "kind": {"const": "a", "title": "k"},
        "count": {"type": "integer", "exclusiveMinimum": 0, "examples": [1]},
        "at": {"type": "string", "format": "date-time"},
        "either": {"oneOf": [{"type": "string"}, {"type": "integer"}]},
        "map": {"type": "object", "additionalProperties": {"type": "string", "minLength": 1}}},
        "required": ["kind"]});
    let expected = json!({"type": "object", "properties": {
        "kind": {"enum": ["a"], "type": "string"},
        "count": {"type": "integer", "description": "(exclusiveMinimum: 0)"},
        "at": {"type": "string", "description": "(format: \"date-time\")"},
        "either": {"anyOf": [{"type": "string"}, {"type": "integer"}]},
        "map": {"type": "object", "properties": {},
            "additionalProperties": {"type": "string", "description": "(minLength: 1)"}}},
        "required": ["kind"]});
    assert_eq!(gemini_output(&schema), Some(expected.clone()));
    assert_eq!(gemini_tool_input(&schema), expected);
}

#[test]
fn the_input_of_a_tool_is_an_object_whatever_its_schema() {
    let text = json!({"type": "string"});
    let plain = json!({"type": "object", "properties": {"a": text}, "patternProperties": {"^x": true}});
    assert_eq!(*tool_input(&plain), plain);
    let cases = [
        (json!(true), json!({"type": "object", "properties": {}})),
        (json!({}), json!({"type": "object", "properties": {}})),
        (json!({"type": "object"}), json!({"type": "object", "properties": {}})),
        (json!({"properties": {"a": text}}), json!({"type": "object", "properties": {"a": text}})),
        (
            json!({"$ref": "#/$defs/T", "$defs": {"T": {"properties": {"a": text}, "required": ["a"]}}}),
            json!({"$defs": {"T": {"properties": {"a": text}, "required": ["a"]}}, "type": "object",
                "properties": {"a": text}, "required": ["a"]}),
        ),
        (
            json!({"allOf": [{"properties": {"a": text}, "required": ["a"]}, {"properties": {"b": text}}]}),
            json!({"type": "object", "properties": {"a": text, "b": text}, "required": ["a"]}),
        ),
        (
            json!({"type": "object", "properties": {"a": text, "b": text}, "anyOf": [
                {"required": ["a"]}, {"required": ["b"]}]}),
            json!({"type": "object", "properties": {"a": text, "b": text},
                "description": "Fields that go together: {a} or {b}"}),
        ),
        (
            json!({"description": "Moves.", "oneOf": [
                {"properties": {"k": {"const": 1}, "x": text}, "required": ["k", "x"], "additionalProperties": false},
                {"properties": {"k": {"const": 2}}, "required": ["k"], "additionalProperties": false}]}),
            json!({"description": "Moves. Fields that go together: {k, x} or {k}", "type": "object",
                "properties": {"k": {"anyOf": [{"const": 1}, {"const": 2}]}, "x": text}, "required": ["k"]}),
        ),
    ];
    for (schema, expected) in cases {
        assert_eq!(*tool_input(&schema), expected, "{schema}");
    }
    let looping = json!({"anyOf": [{"$ref": "#"}, {"allOf": [{"$ref": "#"}, {"$ref": "#"}]}]});
    assert_eq!(tool_input(&looping)["properties"], json!({}));
}

/// A source of random schemas and values that is the same on every machine.
struct Random(fastrand::Rng);

impl Random {
    fn new(seed: u64) -> Self {
        Self(fastrand::Rng::with_seed(seed))
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.0.u64(..limit)
    }

    fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    fn pick<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        &items[self.0.usize(..items.len())]
    }

    fn schema(&mut self, depth: u64) -> Value {
        let mut schema = match self.below(if depth == 0 { 5 } else { 12 }) {
            0 => json!({"type": "string"}),
            1 => json!({"type": "integer", "minimum": self.below(3)}),
            2 => json!({"const": self.below(3)}),
            3 => json!({"enum": ["a", "b", null]}),
            4 => json!({"type": ["string", "null"], "pattern": *self.pick(&["^a", "^(?=a)"])}),
            5 => json!({"type": "array", "items": self.schema(depth - 1), "minItems": self.below(3)}),
            6 => json!({"anyOf": [self.schema(depth - 1), self.schema(depth - 1)]}),
            7 => json!({"oneOf": [self.schema(depth - 1), self.schema(depth - 1)]}),
            8 => json!({"allOf": [self.schema(depth - 1)]}),
            9 => json!({"$ref": *self.pick(&["#/$defs/A", "#/$defs/B"])}),
            10 => self.pick(&[json!({}), json!(true), json!({"type": ["array", "null"]})]).clone(),
            _ => self.object(depth - 1),
        };
        let annotations = [("description", json!("d")), ("default", json!("a")), ("format", json!("uri"))];
        let assertions = [("maxLength", json!(1)), ("minProperties", json!(1)), ("uniqueItems", json!(true))];
        for (percent, keywords) in [(30, annotations), (12, assertions)] {
            if let Some(map) = schema.as_object_mut().filter(|_| self.chance(percent)) {
                let (key, value) = self.pick(&keywords).clone();
                map.insert(key.to_owned(), value);
            }
        }
        schema
    }

    fn object(&mut self, depth: u64) -> Value {
        let names = ["a", "b", "c"];
        let mut fields = Map::new();
        for name in names {
            if self.chance(60) {
                fields.insert(name.to_owned(), self.schema(depth));
            }
        }
        let needed: Vec<&String> = fields.keys().filter(|_| self.chance(80)).collect();
        let mut object = json!({"type": "object", "required": needed});
        object["properties"] = fields.clone().into();
        if self.chance(60) {
            object["additionalProperties"] = self.pick(&[json!(false), json!(false), json!(true)]).clone();
        }
        object
    }

    fn root(&mut self) -> Value {
        let mut root = self.object(3);
        // A definition that refers to nothing but itself accepts and refuses nothing.
        root["$defs"] = json!({"A": self.object(1), "B": self.object(1)});
        root
    }

    fn value(&mut self, depth: u64) -> Value {
        match self.below(if depth == 0 { 5 } else { 8 }) {
            0 => json!("a"),
            1 => json!(self.below(4)),
            2 => Value::Null,
            3 => json!("bb"),
            4 => json!(1.5),
            5 => (0..self.below(3)).map(|_| self.value(depth - 1)).collect(),
            _ => {
                let member = |name: &str| self.chance(60).then(|| (name.to_owned(), self.value(depth - 1)));
                ["a", "b", "c", "d"].into_iter().filter_map(member).collect()
            }
        }
    }
}

/// Returns a value that probably fits a schema, for values that no chance would find.
fn sample(root: &Value, schema: &Value, random: &mut Random, depth: u64) -> Value {
    let Some(left) = depth.checked_sub(1) else { return Value::Null };
    if let Some(target) = schema.get("$ref").and_then(Value::as_str) {
        return references::resolve(root, target).map_or(Value::Null, |it| sample(root, it, random, left));
    }
    if let Some(value) = schema.get("const") {
        return value.clone();
    }
    for key in ["enum", "anyOf", "oneOf"] {
        if let Some(choices) = schema.get(key).and_then(Value::as_array) {
            let choice = random.pick(choices).clone();
            return if key == "enum" { choice } else { sample(root, &choice, random, left) };
        }
    }
    let kinds = schema.as_object().and_then(union::types).unwrap_or_default();
    match kinds.first().copied() {
        Some("object") => {
            let fields = schema.get("properties").and_then(Value::as_object).into_iter().flatten();
            let member = |(name, field): (&String, &Value)| (name.clone(), sample(root, field, random, left));
            fields.map(member).collect()
        }
        Some("array") => {
            let items = schema.get("items").cloned().unwrap_or_default();
            (0..=random.below(2)).map(|_| sample(root, &items, random, left)).collect()
        }
        Some("integer" | "number") => json!(random.below(4)),
        Some("null") => Value::Null,
        _ => json!(*random.pick(&["a", "bb"])),
    }
}

/// Asserts that one of two schemas accepts whatever the other one accepts. Returns how many values were tried.
fn assert_accepts_more(wide: &Value, narrow: &Value, random: &mut Random) -> usize {
    let (Ok(outer), Ok(inner)) = (Schema::new(wide.clone()), Schema::new(narrow.clone())) else { return 0 };
    let mut values: Vec<Value> = (0..10).map(|_| random.value(3)).collect();
    values.extend((0..10).map(|_| sample(narrow, narrow, random, 12)));
    values.retain(|value| inner.fits(value));
    for value in &values {
        assert!(outer.fits(value), "{value}\nfits {narrow}\nand not {wide}");
    }
    values.len()
}

#[test]
fn whatever_a_strict_schema_accepts_the_original_accepts() {
    let mut random = Random::new(7);
    let (mut strict, mut accepted) = (0, 0);
    for _ in 0..800 {
        let original = random.root();
        if let Some(schema) = strict_output(&original) {
            strict += 1;
            accepted += assert_accepts_more(&original, &schema, &mut random);
        }
    }
    assert!(strict > 50 && accepted > 300, "{strict} strict schemas, {accepted} values");
}

#[test]
fn wider_forms_refuse_nothing_that_the_original_accepts() {
    let mut random = Random::new(11);
    let mut accepted = 0;
    for _ in 0..400 {
        let original = random.root();
        let input = tool_input(&original).into_owned();
        accepted += assert_accepts_more(&input, &original, &mut random);
        accepted += assert_accepts_more(&gemini_tool_input(&original), &original, &mut random);
        if let Some(output) = gemini_output(&original) {
            accepted += assert_accepts_more(&output, &original, &mut random);
        }
    }
    assert!(accepted > 300, "{accepted} values");
}

/// Returns the schema with all objects closed.
fn closed(schema: &Value) -> Value {
    match schema {
        Value::Array(items) => items.iter().map(closed).collect(),
        Value::Object(map) => {
            let mut closed: Map<String, Value> =
                map.iter().map(|(key, value)| (key.clone(), closed(value))).collect();
            if map.contains_key("properties") {
                closed.insert("additionalProperties".into(), false.into());
            }
            closed.into()
        }
        other => other.clone(),
    }
}

#[test]
fn the_form_for_anthropic_refuses_nothing_that_a_closed_original_accepts() {
    let mut random = Random::new(13);
    let (mut sent, mut accepted) = (0, 0);
    for _ in 0..800 {
        let original = closed(&random.root());
        if let Some(output) = anthropic_output(&original) {
            sent += 1;
            accepted += assert_accepts_more(&output, &original, &mut random);
        }
    }
    assert!(sent > 50 && accepted > 300, "{sent} schemas, {accepted} values");
}

/// Writes a request with a tool and, if the provider can enforce it, a schema of the answer. Returns why a provider
/// refuses it, and whether the schema was sent.
fn refusal(
    api: Api,
    protocol: Protocol,
    provider: &str,
    model: &str,
    schema: &Value,
) -> (Option<String>, bool) {
    let profile = profile_of(provider, provider, model, &[]);
    let schema = Schema::new(schema.clone()).unwrap();
    let is_enforced = profile.enforces(&schema, false) && can_enforce(api, schema.source());
    let conversation = Conversation::from_messages([Arc::new(Message::user("hi"))]);
    let settings = ModelSettings::default();
    let tools = [Arc::new(ToolDefinition::new("t", "d", schema.clone()))];
    let has_both = profile.enforces(&schema, true);
    let request = ModelRequest {
        instructions: "",
        conversation: &conversation,
        tools: if is_enforced && !has_both { &[] } else { &tools },
        server_tools: &[],
        output_schema: Some(&schema).filter(|_| is_enforced),
        settings: &settings,
        max_output: None,
    };
    let rules = rules_of(provider, provider, model);
    let target =
        RequestTarget { api, provider: provider.to_owned(), model: model.to_owned(), profile, rules };
    let encoded = Encoder::new(target).encode(&request).unwrap();
    let body = serde_json::from_slice(&encoded.body.to_vec()).unwrap();
    let request = ProviderRequest { protocol, provider, path: &encoded.path, body: &body };
    let refusal = Account::default().check(&request).err();
    (refusal.map(|refusal| format!("{}: {}\n{body}", refusal.rule, refusal.message())), is_enforced)
}

#[test]
fn no_provider_refuses_a_request_for_its_schemas() {
    let models = [
        (Api::Anthropic, Protocol::AnthropicMessages, "anthropic", "claude-opus-4-8"),
        (Api::OpenAiResponses, Protocol::OpenAiResponses, "openai", "gpt-5.1"),
        (Api::OpenAiChat, Protocol::OpenAiChat, "openai-chat", "gpt-4.1"),
        (Api::Gemini, Protocol::Gemini, "gemini", "gemini-3-flash-preview"),
        (Api::Gemini, Protocol::Gemini, "gemini", "gemini-2.5-flash"),
    ];
    for (api, protocol, name, model) in models {
        let mut random = Random::new(17);
        let mut enforced = 0;
        for round in 0..400 {
            let mut root = random.root();
            let definitions = root["$defs"].clone();
            let schema = match round % 4 {
                0 => closed(&root),
                1 => json!({"oneOf": [root.take(), random.object(2)], "$defs": definitions}),
                2 => json!({"properties": {"größe": root.take()}, "$defs": definitions}),
                _ => root,
            };
            let (refused, is_enforced) = refusal(api, protocol, name, model, &schema);
            assert_eq!(refused, None, "{model}: {schema}");
            enforced += usize::from(is_enforced);
        }
        assert!(enforced > 10, "{model}: {enforced} schemas were enforced");
    }
}
