//! Turns, function calls and their signatures.

use std::collections::HashMap;

use serde_json::Value;

use super::models::GeminiModel;
use crate::json::{is_set, items, text};
use crate::refusal::Check;
use crate::{Account, ProviderRefusal};

/// Stands for a signature that was not issued, for history of other models.
const SKIP_VALIDATION: &str = "skip_thought_signature_validator";
/// Files that a function response of Gemini 3 may hold.
const RESPONSE_TYPES: &[&str] = &["image/png", "image/jpeg", "image/webp", "application/pdf", "text/plain"];

/// The signatures that were issued, each with the name of the function called at the same part.
#[derive(Debug, Clone, Default)]
pub(crate) struct IssuedSignatures(HashMap<String, String>);

impl IssuedSignatures {
    pub(crate) fn remember(&mut self, response: &Value) {
        let contents = items(response, "candidates").iter().map(|candidate| &candidate["content"]);
        for part in contents.flat_map(|content| items(content, "parts")) {
            if let Some(signature) = part["thoughtSignature"].as_str() {
                self.0.insert(signature.to_owned(), text(&part["functionCall"], "name").to_owned());
            }
        }
    }
}

pub(super) fn check(body: &Value, model: Option<&GeminiModel>, account: &Account) -> Check {
    let contents = items(body, "contents");
    for (index, content) in contents.iter().enumerate() {
        check_role(content)?;
        check_call_turn(contents, index)?;
        check_responses(contents, index, model)?;
    }
    if account.optional.gemini_last_content_model && contents.last().is_some_and(is_model) {
        return Err(ProviderRefusal::gemini(
            "gemini.last_content",
            "Please ensure that the last content has the role 'user'.",
        ));
    }
    match model.is_some_and(GeminiModel::is_since_3) {
        true => check_signatures(contents, &account.gemini),
        false => check_no_tool_parts(contents, model),
    }
}

fn is_model(content: &Value) -> bool {
    content["role"] == "model"
}

fn count(content: &Value, key: &str) -> usize {
    items(content, "parts").iter().filter(|part| is_set(&part[key])).count()
}

fn check_role(content: &Value) -> Check {
    match content["role"].as_str() {
        None | Some("user" | "model" | "function") => Ok(()),
        Some(_) => Err(ProviderRefusal::gemini("gemini.role", "Please use a valid role: user, model.")),
    }
}

/// A turn with calls comes after the user's or after responses, and before as many responses.
fn check_call_turn(contents: &[Value], index: usize) -> Check {
    let calls = count(&contents[index], "functionCall");
    if calls == 0 {
        return Ok(());
    }
    if index.checked_sub(1).is_none_or(|before| is_model(&contents[before])) {
        return Err(ProviderRefusal::gemini(
            "gemini.call_turn",
            "Please ensure that function call turn comes immediately after a user turn or after a function response turn.",
        ));
    }
    let responses = contents.get(index + 1).map_or(0, |content| count(content, "functionResponse"));
    if responses == calls { Ok(()) } else { Err(wrong_count()) }
}

fn wrong_count() -> ProviderRefusal {
    ProviderRefusal::gemini(
        "gemini.response_count",
        "Please ensure that the number of function response parts is equal to the number of function call parts of the \
         function call turn.",
    )
}

fn check_responses(contents: &[Value], index: usize, model: Option<&GeminiModel>) -> Check {
    if count(&contents[index], "functionResponse") == 0 {
        return Ok(());
    }
    let Some(calls) = index.checked_sub(1).map(|before| &contents[before]) else { return Err(wrong_count()) };
    if count(calls, "functionCall") == 0 {
        return Err(wrong_count());
    }
    let ids: Vec<&str> = ids_of_calls(calls);
    for part in items(&contents[index], "parts").iter().filter(|part| is_set(&part["functionResponse"])) {
        check_response(&part["functionResponse"], &ids, model)?;
    }
    Ok(())
}

fn ids_of_calls(content: &Value) -> Vec<&str> {
    items(content, "parts").iter().filter_map(|part| part["functionCall"]["id"].as_str()).collect()
}

fn check_response(response: &Value, ids: &[&str], model: Option<&GeminiModel>) -> Check {
    let refuse = |message: &str| Err(ProviderRefusal::gemini("gemini.function_response", message));
    if !response["response"].is_object() {
        return refuse(
            "Invalid value at 'contents[].parts[].function_response.response' (type.googleapis.com/google.protobuf.Struct)",
        );
    }
    if response["id"].as_str().is_some_and(|id| !ids.is_empty() && !ids.contains(&id)) {
        return refuse("The id of the function response does not match the id of a function call.");
    }
    let parts = items(response, "parts");
    if !parts.is_empty() && model.is_some_and(|model| !model.is_since_3()) {
        return refuse("Function response parts are not supported for this model.");
    }
    let is_allowed = |part: &Value| RESPONSE_TYPES.contains(&text(&part["inlineData"], "mimeType"));
    match parts.iter().all(is_allowed) {
        true => Ok(()),
        false => refuse("Unsupported MIME type in function response parts."),
    }
}

/// In the current loop of calls, the first call of each turn carries its signature.
fn check_signatures(contents: &[Value], issued: &IssuedSignatures) -> Check {
    let is_of_loop = |content: &Value| is_model(content) || count(content, "functionResponse") > 0;
    let start = contents.iter().rposition(|content| !is_of_loop(content)).map_or(0, |index| index + 1);
    for (index, content) in contents.iter().enumerate().skip(start) {
        let first = items(content, "parts").iter().find(|part| is_set(&part["functionCall"]));
        let Some(part) = first else { continue };
        check_signature(part, index, issued)?;
    }
    Ok(())
}

fn check_signature(part: &Value, index: usize, issued: &IssuedSignatures) -> Check {
    let (name, signature) = (text(&part["functionCall"], "name"), text(part, "thoughtSignature"));
    if signature.is_empty() {
        return Err(ProviderRefusal::gemini(
            "gemini.missing_signature",
            format!(
                "Function call is missing a thought_signature in functionCall parts. This is required for tools to work \
                 correctly. Additional data, function call `default_api:{name}`, position {}.",
                index + 1
            ),
        ));
    }
    match signature == SKIP_VALIDATION || issued.0.get(signature).is_some_and(|called| called == name) {
        true => Ok(()),
        false => Err(ProviderRefusal::gemini("gemini.invalid_signature", "Thought signature is not valid.")),
    }
}

/// Calls of server tools come back only from Gemini 3 on.
fn check_no_tool_parts(contents: &[Value], model: Option<&GeminiModel>) -> Check {
    let has_tool_part = |content: &Value| count(content, "toolCall") + count(content, "toolResponse") > 0;
    match model.is_some() && contents.iter().any(has_tool_part) {
        true => {
            Err(ProviderRefusal::gemini("gemini.tool_parts", "Tool call context circulation is not enabled."))
        }
        false => Ok(()),
    }
}
