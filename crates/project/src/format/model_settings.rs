//! Checks `model_settings` beyond their schema: hints, headers, and fields of the request body.

use llm_do_core::nearest;
use serde_json::Value;

use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::document::entry_span;
use crate::format::front_matter::HeaderDocument;
use crate::format::header_problem;

/// The values of `effort`, from least to most.
const EFFORTS: [&str; 7] = ["none", "minimal", "low", "medium", "high", "xhigh", "max"];

/// Fields that only some providers know.
const OF_PROVIDERS: [&str; 29] = [
    "audio",
    "frequency_penalty",
    "include",
    "keep_alive",
    "logit_bias",
    "logprobs",
    "metadata",
    "min_p",
    "mirostat",
    "modalities",
    "num_ctx",
    "options",
    "prediction",
    "presence_penalty",
    "prompt_cache_key",
    "provider",
    "repeat_penalty",
    "repetition_penalty",
    "safety_identifier",
    "safety_settings",
    "service_tier",
    "store",
    "top_a",
    "top_k",
    "top_logprobs",
    "truncation",
    "typical_p",
    "user",
    "verbosity",
];

/// Why a request cannot ask for several answers.
const ONE_ANSWER: &str = "only one answer per request is supported, because budgets are computed from it";

/// Keys that are often written here, and what to write instead.
const ELSEWHERE: [(&str, &str); 22] = [
    ("anthropic_thinking", "write `thinking: true` or a number of tokens"),
    ("api_key", "keys come from the environment; `llm-do models` shows which variables are read"),
    ("base_url", "an address belongs to a provider of the manifest: `providers.NAME.base_url`"),
    ("best_of", ONE_ANSWER),
    ("budget_tokens", "write `thinking: NUMBER`"),
    ("fallback_models", "`fallback_models` belongs beside `model_settings`, not inside it"),
    ("google_thinking_config", "write `thinking` with a number of tokens, or `effort`"),
    ("max_retries", "set `runtime.model_attempts` in the manifest"),
    ("model", "`model` belongs beside `model_settings`, not inside it"),
    ("n", ONE_ANSWER),
    ("openai_reasoning_effort", "write `effort`"),
    ("output_schema", "`output_schema` belongs beside `model_settings`, not inside it"),
    ("reasoning", "write `effort`, or `thinking` with a number of tokens"),
    ("response_format", "write the schema of the answer under `output_schema`, beside `model_settings`"),
    ("retries", "set `runtime.model_attempts` in the manifest"),
    ("server_side_tools", "`server_side_tools` belongs beside `model_settings`, not inside it"),
    ("system", "the text below the header is the agent's instructions"),
    ("thinking_budget", "write `thinking: NUMBER`"),
    ("thinking_config", "write `thinking` with a number of tokens, or `effort`"),
    ("thinking_level", "write `effort`"),
    ("tools", "`tools` belongs beside `model_settings`, not inside it"),
    ("toolsets", "`toolsets` belongs beside `model_settings`, not inside it"),
];

/// Fields of a body that llm-do must know: their values decide about tools, budgets and how answers are read.
const OWN_FIELDS: [(&str, &str); 19] = [
    ("best_of", ONE_ANSWER),
    ("candidateCount", ONE_ANSWER),
    ("contents", "llm-do writes the conversation itself"),
    ("functions", "list tools under `tools` or `toolsets`"),
    ("input", "llm-do writes the conversation itself"),
    ("instructions", "the text below the header is the agent's instructions"),
    ("max_completion_tokens", "write `max_tokens` under `model_settings`"),
    ("max_output_tokens", "write `max_tokens` under `model_settings`"),
    ("max_tokens", "write `max_tokens` under `model_settings`"),
    ("messages", "llm-do writes the conversation itself"),
    ("model", "write `model` in the header"),
    ("n", ONE_ANSWER),
    ("previous_response_id", "llm-do writes the conversation itself"),
    ("stream", "write `stream` under `model_settings`"),
    ("stream_options", "write `stream` under `model_settings`"),
    ("system", "the text below the header is the agent's instructions"),
    ("systemInstruction", "the text below the header is the agent's instructions"),
    ("tool_choice", "write `tool_choice` under `model_settings`"),
    ("tools", "list tools under `tools`, `toolsets` or `server_side_tools`"),
];

/// Returns a hint for a setting that does not fit the schema.
pub(crate) fn hint(pointer: &str, header: &Value) -> Option<String> {
    let key = pointer.strip_prefix("/model_settings/")?;
    let written = header.pointer(pointer)?;
    match key {
        "thinking" => Some(thinking_hint(written)),
        "effort" => Some(effort_hint(written)),
        "tool_choice" => tool_choice_hint(written),
        "stop" => written.as_str().map(|text| format!("write a list: `stop: [{}]`", Value::from(text))),
        "timeout" | "idle_timeout" if written.is_string() => Some("write a number of seconds".to_owned()),
        key if OF_PROVIDERS.contains(&key) => Some(format!(
            "`{key}` is a field of some providers: put it under `extra_body`, which is sent unchanged"
        )),
        key => ELSEWHERE.iter().find(|(other, _)| *other == key).map(|(_, hint)| (*hint).to_owned()),
    }
}

fn thinking_hint(written: &Value) -> String {
    match written {
        Value::String(word) => match word.to_lowercase().as_str() {
            "off" | "no" | "none" | "never" | "disabled" | "disable" | "false" => {
                "write `thinking: false`".to_owned()
            }
            "on" | "yes" | "auto" | "adaptive" | "enabled" | "enable" | "always" | "true" => {
                "write `thinking: true`".to_owned()
            }
            word if EFFORTS.contains(&word) => format!("write `effort: {word}`"),
            _ => "write `true`, `false` or a number of tokens; words such as `low` go under `effort`"
                .to_owned(),
        },
        Value::Number(_) => "write `false` for no thinking, else a number of tokens from 1".to_owned(),
        _ => "write `true`, `false` or a number of tokens".to_owned(),
    }
}

fn effort_hint(written: &Value) -> String {
    match written {
        Value::Bool(false) => "write `effort: none`".to_owned(),
        Value::Number(_) => "a number of tokens goes under `thinking`".to_owned(),
        Value::String(word) => match nearest(word, EFFORTS) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("write one of {}", EFFORTS.join(", ")),
        },
        _ => format!("write one of {}", EFFORTS.join(", ")),
    }
}

fn tool_choice_hint(written: &Value) -> Option<String> {
    match written {
        Value::String(word) if word == "any" => Some("write `required`".to_owned()),
        Value::String(word) => Some(match nearest(word, ["auto", "none", "required"]) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("for one tool write `tool_choice: {{tool: {word}}}`"),
        }),
        _ => Some("write `auto`, `none`, `required` or `{tool: NAME}`".to_owned()),
    }
}

/// Checks the headers and fields that an agent adds to requests.
pub(crate) fn check(agent: HeaderDocument<'_>, out: &mut Diagnostics) {
    let Some(settings) = &agent.header.model_settings else { return };
    let Some(written) = agent.node.field("model_settings").map(|field| &field.value) else { return };
    for (name, value) in &settings.extra_headers {
        if out.is_full() {
            return;
        }
        if let Some(problem) = header_problem(name, value) {
            let span = entry_span(written, "extra_headers", name);
            let message = format!("`model_settings.extra_headers`: {}", problem.message);
            out.push(Diagnostic::error_at(agent.source, &span, message).with_hint(problem.hint));
        }
    }
    for (field, hint) in OWN_FIELDS.iter().filter(|(field, _)| settings.extra_body.contains_key(*field)) {
        let span = entry_span(written, "extra_body", field);
        let message = format!("`model_settings.extra_body` may not set `{field}`");
        out.push(Diagnostic::error_at(agent.source, &span, message).with_hint(*hint));
    }
}
