//! Gemini's `generateContent`, as the Developer API has it.

mod contents;
mod models;
mod schema;
mod thinking;
mod tools;

pub(crate) use contents::IssuedSignatures;

use serde_json::Value;

use crate::json::{is_set, items};
use crate::refusal::Check;
use crate::{Account, ProviderRefusal, ProviderRequest, Reasoning};
use models::GeminiModel;

pub(crate) fn check(request: &ProviderRequest<'_>, account: &Account) -> Check {
    let (body, name) = (request.body, request.model());
    let model = models::find(name);
    if items(body, "contents").is_empty() {
        return Err(ProviderRefusal::gemini(
            "gemini.empty",
            "* GenerateContentRequest.contents: contents is not specified",
        ));
    }
    check_instructions(body, name)?;
    contents::check(body, model.as_ref(), account)?;
    tools::check(body, name, model.as_ref())?;
    check_formats(body, model.as_ref())?;
    thinking::check(body, model.as_ref())
}

/// Returns whether the model characters what it answers: from Gemini 3 on it cannot be switched off.
pub(crate) fn reasoning(request: &ProviderRequest<'_>) -> Reasoning {
    let is_since_3 = models::find(request.model()).is_some_and(|model| model.is_since_3());
    if is_since_3 { Reasoning::Always } else { Reasoning::Off }
}

/// Returns the model in `/v1beta/models/NAME:generateContent`.
pub(crate) fn model_in_path(path: &str) -> &str {
    let name = path.rsplit_once("models/").map_or("", |(_, name)| name);
    name.split([':', '?']).next().unwrap_or_default()
}

fn check_instructions(body: &Value, name: &str) -> Check {
    if is_set(&body["systemInstruction"]) && name.starts_with("gemma") {
        let message = format!("Developer instruction is not enabled for models/{name}");
        return Err(ProviderRefusal::gemini("gemini.system_instruction", message));
    }
    let beside = ["systemInstruction", "tools", "toolConfig"].iter().any(|key| is_set(&body[*key]));
    match is_set(&body["cachedContent"]) && beside {
        true => Err(ProviderRefusal::gemini(
            "gemini.cached_content",
            "Tool config, tools and system instruction should not be set in the request when using cached content.",
        )),
        false => Ok(()),
    }
}

/// A format for the answer, and what it does not go together with before Gemini 3.
fn check_formats(body: &Value, model: Option<&GeminiModel>) -> Check {
    let config = &body["generationConfig"];
    if is_set(&config["responseSchema"]) && is_set(&config["responseJsonSchema"]) {
        return Err(ProviderRefusal::gemini(
            "gemini.both_schemas",
            "Only one of response_schema and response_json_schema can be set",
        ));
    }
    if is_set(&config["responseSchema"]) {
        schema::check(&config["responseSchema"], "generation_config.response_schema")?;
    }
    let has_format = is_set(&config["responseSchema"])
        || is_set(&config["responseJsonSchema"])
        || config["responseMimeType"] == "application/json";
    let is_old = model.is_some_and(|model| !model.is_since_3());
    match has_format && is_old && !items(body, "tools").is_empty() {
        true => Err(ProviderRefusal::gemini(
            "gemini.tools_with_format",
            "Function calling with a response mime type: 'application/json' is unsupported",
        )),
        false => Ok(()),
    }
}
