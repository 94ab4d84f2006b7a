//! JSON Schemas in the form that each provider accepts.
//!
//! Providers accept different subsets of JSON Schema and refuse the whole request for anything else, so every
//! form is written from an allow-list. What a form leaves out is checked when the answer or the call arrives:
//! validation always uses the original schema.

mod dialect;
mod limits;
mod references;
mod tool_input;
mod union;

use serde_json::Value;

use super::Api;
use dialect::{ANTHROPIC, GEMINI, OPENAI_STRICT};
pub(super) use tool_input::{has_only_valid_names, tool_input, without_invalid_names};

/// Keywords that combine schemas or refer to one. At the top of a schema most providers refuse them.
const COMBINERS: &[&str] = &["allOf", "anyOf", "oneOf", "$ref", "not", "enum", "const"];

/// Returns whether the API can enforce a schema on the answer.
pub(crate) fn can_enforce(api: Api, schema: &Value) -> bool {
    match api {
        Api::Anthropic => anthropic_output(schema).is_some(),
        Api::OpenAiChat | Api::OpenAiResponses => !has_combiner(schema),
        Api::Gemini => gemini_output(schema).is_some(),
        Api::Ollama => true,
    }
}

/// Returns the schema in the form that OpenAI enforces strictly. It accepts nothing that the original refuses.
pub(super) fn strict_output(schema: &Value) -> Option<Value> {
    let strict = OPENAI_STRICT.rewrite_root(schema)?;
    limits::fits_openai(&strict).then_some(strict)
}

/// Returns the schema in the form that Anthropic enforces: wider than the original, never narrower.
pub(super) fn anthropic_output(schema: &Value) -> Option<Value> {
    let output = ANTHROPIC.rewrite_root(&references::inlined(schema)?)?;
    limits::fits_anthropic(&output).then_some(output)
}

/// Returns the schema in the form that Gemini enforces: wider than the original, never narrower.
pub(super) fn gemini_output(schema: &Value) -> Option<Value> {
    GEMINI.rewrite(&references::inlined(schema)?)
}

/// Returns the input schema of a tool in the form that Gemini accepts.
pub(super) fn gemini_tool_input(schema: &Value) -> Value {
    let input = tool_input(schema);
    let inlined = references::inlined(&input);
    GEMINI.rewrite(inlined.as_ref().unwrap_or(&input)).unwrap_or_else(tool_input::any_object)
}

fn has_combiner(schema: &Value) -> bool {
    COMBINERS.iter().any(|key| schema.get(key).is_some())
}

#[cfg(test)]
mod tests;
