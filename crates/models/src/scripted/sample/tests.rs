//! Tests of the values that are made for schemas.

use serde_json::Map;

use super::*;
use scalar::MAX_LENGTH;

fn minimal(schema: Value) -> Value {
    minimal_value(&Schema::new(schema).unwrap())
}

/// Schemas with the values that are expected for them.
fn table() -> Vec<(Value, Value)> {
    let tree = json!({
        "$ref": "#/$defs/tree",
        "$defs": {"tree": {
            "type": "object",
            "properties": {"left": {"anyOf": [{"$ref": "#/$defs/tree"}, {"type": "null"}]}, "n": {"type": "integer"}},
            "required": ["n", "left"],
        }},
    });
    vec![
        (json!(true), json!("a")),
        (json!({}), json!("a")),
        (json!({"type": "string"}), json!("a")),
        (json!({"type": "string", "minLength": 3}), json!("aaa")),
        (json!({"type": "string", "maxLength": 0}), json!("")),
        (json!({"type": "string", "enum": ["x", "y"]}), json!("x")),
        (json!({"type": "string", "pattern": "^[A-Z]{2}\\d+$"}), json!("AA0")),
        (json!({"type": "string", "pattern": "^[a-z]*$", "minLength": 4}), json!("aaaa")),
        (json!({"type": "string", "format": "date"}), json!("2000-01-01")),
        (json!({"type": "string", "default": "main"}), json!("main")),
        (json!({"type": "string", "default": 5}), json!("a")),
        (json!({"const": {"k": [1]}}), json!({"k": [1]})),
        (json!({"enum": [null, 1]}), Value::Null),
        (json!({"type": "integer"}), json!(0)),
        (json!({"type": "integer", "minimum": 3}), json!(3)),
        (json!({"type": "integer", "minimum": 2.5}), json!(3)),
        (json!({"type": "integer", "exclusiveMinimum": 3}), json!(4)),
        (json!({"type": "integer", "maximum": -7}), json!(-7)),
        (json!({"type": "integer", "exclusiveMaximum": 0}), json!(-1)),
        (json!({"type": "integer", "minimum": 5, "multipleOf": 4}), json!(8)),
        (json!({"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1}), json!(0.5)),
        (json!({"type": "number", "minimum": 0.25}), json!(0.25)),
        (json!({"minimum": 3}), json!(3)),
        (json!({"type": "boolean"}), json!(false)),
        (json!({"type": "null"}), Value::Null),
        (json!({"type": ["null", "integer"]}), json!(0)),
        (json!({"type": "array"}), json!([])),
        (json!({"type": "array", "items": {"type": "integer"}, "minItems": 2}), json!([0, 0])),
        (json!({"items": {"type": "integer"}, "minItems": 3, "uniqueItems": true}), json!([0, 1, 2])),
        (json!({"items": {"enum": ["x", "y"]}, "minItems": 2, "uniqueItems": true}), json!(["x", "y"])),
        (
            json!({"prefixItems": [{"type": "integer"}], "items": {"type": "boolean"}, "minItems": 2}),
            json!([0, false]),
        ),
        (json!({"type": "array", "contains": {"const": 5}}), json!([5])),
        (json!({"type": "object"}), json!({})),
        (json!({"properties": {"a": {"type": "integer"}, "b": true}, "required": ["a"]}), json!({"a": 0})),
        (
            json!({"type": "object", "required": ["x"], "additionalProperties": {"type": "integer"}}),
            json!({"x": 0}),
        ),
        (
            json!({"type": "object", "properties": {"p": {"type": "null"}}, "minProperties": 2}),
            json!({"p": null, "a": "a"}),
        ),
        (json!({"anyOf": [{"type": "integer"}, {"type": "string"}]}), json!(0)),
        (json!({"oneOf": [{"type": "number"}, {"type": "integer"}, {"type": "string"}]}), json!("a")),
        (
            json!({"properties": {"a": {"type": "integer"}, "b": true}, "anyOf": [{"required": ["b"]}, {"required": ["a"]}]}),
            json!({"b": "a"}),
        ),
        (
            json!({"allOf": [{"properties": {"a": {"minimum": 2}}, "required": ["a"]}, {"properties": {"a": {"type": "integer", "minimum": 1}}}]}),
            json!({"a": 2}),
        ),
        (
            json!({"allOf": [{"anyOf": [{"required": ["a"]}]}, {"anyOf": [{"required": ["b"]}]}], "type": "object"}),
            json!({"a": "a", "b": "a"}),
        ),
        (
            json!({"$defs": {"n": {"type": "integer"}}, "allOf": [{"$ref": "#/$defs/n"}, {"$ref": "#/$defs/n"}]}),
            json!(0),
        ),
        (tree, json!({"n": 0, "left": null})),
    ]
}

#[test]
fn the_minimal_value_of_a_schema_is_the_expected_one_and_fits() {
    for (schema, expected) in table() {
        assert_eq!(minimal(schema.clone()), expected, "{schema}");
        assert!(Schema::new(schema.clone()).unwrap().fits(&expected), "{schema}");
    }
}

#[test]
fn a_minimal_value_fits_wherever_its_schema_stands() {
    let around: [fn(Value) -> Value; 5] = [
        |inner| json!({"type": "object", "properties": {"x": inner}, "required": ["x"], "additionalProperties": false}),
        |inner| json!({"type": "array", "items": inner, "minItems": 2}),
        |inner| json!({"anyOf": [inner, {"type": "null"}]}),
        |inner| json!({"oneOf": [{"const": 7}, {"type": "array", "prefixItems": [inner], "minItems": 1}]}),
        |inner| json!({"allOf": [inner, {}]}),
    ];
    let referred = |inner| json!({"$ref": "#/$defs/it/allOf/0", "$defs": {"it": {"allOf": [inner]}}});
    // References start at the root of their document, so a schema that has some cannot be moved.
    let movable =
        table().into_iter().map(|(schema, _)| schema).filter(|schema| schema.get("$defs").is_none());
    for schema in movable {
        for outer in around {
            for outermost in around {
                let schema = Schema::new(referred(outermost(outer(schema.clone())))).unwrap();
                let value = minimal_value(&schema);
                assert!(schema.fits(&value), "{value} for {schema:?}");
            }
        }
    }
}

#[test]
fn an_impossible_or_endless_schema_ends_in_null() {
    let endless = json!({"$ref": "#/$defs/x", "$defs": {"x": {"properties": {"x": {"$ref": "#/$defs/x"}}, "required": ["x"]}}});
    assert_eq!(minimal(endless), Value::Null);
    assert_eq!(minimal(json!(false)), Value::Null);
    assert_eq!(minimal(json!({"$ref": "#"})), json!("a"), "says nothing, so anything fits");
}

#[test]
fn a_schema_that_would_explode_is_given_up() {
    let level =
        |n: usize| json!({"type": "array", "minItems": 10, "items": {"$ref": format!("#/$defs/l{}", n + 1)}});
    let mut definitions: Map<String, Value> = (0..30).map(|n| (format!("l{n}"), level(n))).collect();
    definitions.insert("l30".to_owned(), json!({"type": "null"}));
    assert_eq!(minimal(json!({"$ref": "#/$defs/l0", "$defs": definitions})), Value::Null);
    let long = minimal(json!({"type": "string", "minLength": 1_000_000_000_000_u64}));
    assert_eq!(long.as_str().map(str::len), Some(MAX_LENGTH));
}
