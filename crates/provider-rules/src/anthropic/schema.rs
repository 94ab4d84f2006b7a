//! Schemas that the provider compiles: strict tools and output formats.

use serde_json::Value;

use super::models::AnthropicModel;
use crate::json::{is_set, items};
use crate::refusal::Check;
use crate::{ProviderRefusal, schema};

const MAX_STRICT_TOOLS: usize = 20;
/// Over all schemas of a request.
const MAX_OPTIONAL: usize = 24;
/// Over all schemas of a request.
const MAX_UNIONS: usize = 16;
const UNSUPPORTED: &[&str] = &[
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "minLength",
    "maxLength",
    "pattern",
    "maxItems",
    "uniqueItems",
    "minProperties",
    "maxProperties",
    "not",
    "oneOf",
];
const FORMATS: &[&str] =
    &["date-time", "time", "date", "duration", "email", "hostname", "uri", "ipv4", "ipv6", "uuid"];

pub(super) fn check_request(body: &Value, model: Option<&AnthropicModel>) -> Check {
    let is_strict = |tool: &&Value| tool["strict"] == true;
    let tools = items(body, "tools").iter().enumerate().filter(|(_, tool)| is_strict(tool));
    let mut schemas: Vec<(String, &Value)> =
        tools.map(|(index, tool)| (format!("tools.{index}.custom"), &tool["input_schema"])).collect();
    let strict_tools = schemas.len();
    for format in [&body["output_config"]["format"], &body["output_format"]] {
        check_format(format, body)?;
        schemas
            .extend(is_set(format).then_some(("output_config.format.schema".to_owned(), &format["schema"])));
    }
    if !schemas.is_empty() && model.is_some_and(|model| !model.has_strict) {
        return Err(refusal("structured outputs are not supported for this model"));
    }
    if strict_tools > MAX_STRICT_TOOLS {
        return Err(refusal(format!(
            "Too many strict tools ({strict_tools}). The maximum number of strict tools supported is {MAX_STRICT_TOOLS}."
        )));
    }
    for (path, schema) in &schemas {
        check_schema(schema, path)?;
    }
    check_totals(&schemas)
}

fn refusal(message: impl Into<String>) -> ProviderRefusal {
    ProviderRefusal::anthropic("anthropic.strict_schema", message)
}

fn check_format(format: &Value, body: &Value) -> Check {
    if !is_set(format) {
        return Ok(());
    }
    if format["type"] != "json_schema" {
        return Err(refusal("output_config.format.type: Input should be 'json_schema'"));
    }
    let cites = |block: &Value| block["citations"]["enabled"] == true;
    let blocks = || items(body, "messages").iter().flat_map(|message| items(message, "content"));
    let nested = blocks().flat_map(|block| items(block, "content"));
    match blocks().chain(nested).any(cites) {
        true => Err(ProviderRefusal::anthropic(
            "anthropic.format_with_citations",
            "output_config.format: citations are not supported with output formats",
        )),
        false => Ok(()),
    }
}

fn check_schema(root: &Value, path: &str) -> Check {
    if root["type"].is_null() && is_set(&root["$ref"]) {
        return Err(refusal(format!("{path}: schema must have a 'type' at the top level")));
    }
    if let Some(circle) = schema::circular_reference(root) {
        return Err(refusal(format!("{path}: Circular reference detected in schema definitions: {circle}")));
    }
    schema::walk(root, &mut |schema| check_node(schema, path))?;
    let (optional, unions) = counts(root);
    match optional >= MAX_OPTIONAL || unions >= MAX_UNIONS {
        true => Err(refusal(format!("{path}: Schema is too complex for compilation."))),
        false => Ok(()),
    }
}

fn check_node(schema: &Value, path: &str) -> Check {
    let refuse = |message: String| Err(refusal(format!("{path}: {message}")));
    if schema.is_boolean() {
        return refuse("For 'object' type, property 'properties' is not supported".to_owned());
    }
    let kind = schema["type"].as_str().unwrap_or("object");
    if let Some(keyword) = UNSUPPORTED.iter().find(|keyword| is_set(&schema[**keyword])) {
        return refuse(format!("For '{kind}' type, property '{keyword}' is not supported"));
    }
    if schema["minItems"].as_u64().is_some_and(|least| least > 1) {
        return refuse("For 'array' type, 'minItems' values other than 0 or 1 are not supported".to_owned());
    }
    if let Some(format) = schema["format"].as_str().filter(|format| !FORMATS.contains(format)) {
        return refuse(format!("For '{kind}' type, 'format' value '{format}' is not supported"));
    }
    match schema::is_object(schema) && schema["additionalProperties"] != false {
        true => {
            refuse("For 'object' type, 'additionalProperties' must be explicitly set to false".to_owned())
        }
        false => Ok(()),
    }
}

/// Returns how many properties are optional, and how many are unions, at any depth.
fn counts(root: &Value) -> (usize, usize) {
    let (mut optional, mut unions) = (0, 0);
    let _: Result<(), ()> = schema::walk(root, &mut |schema| {
        for (name, property) in schema["properties"].as_object().into_iter().flatten() {
            optional += usize::from(!items(schema, "required").iter().any(|required| required == name));
            unions += usize::from(property["anyOf"].is_array() || property["type"].is_array());
        }
        Ok(())
    });
    (optional, unions)
}

fn check_totals(schemas: &[(String, &Value)]) -> Check {
    let totals = schemas.iter().map(|(_, schema)| counts(schema));
    let (optional, unions) = totals.fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
    if optional > MAX_OPTIONAL {
        return Err(refusal(format!(
            "Schemas contain too many optional parameters ({optional}), which would make grammar compilation \
             inefficient. Reduce the number of optional parameters in your tool schemas (limit: {MAX_OPTIONAL})."
        )));
    }
    match unions > MAX_UNIONS {
        true => Err(refusal(format!(
            "Schemas contain too many parameters with union types ({unions} parameters with type arrays or anyOf) \
             (limit: {MAX_UNIONS})."
        ))),
        false => Ok(()),
    }
}
