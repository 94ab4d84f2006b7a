//! Reads bodies of Chat Completions, whichever host they are for.

use serde_json::Value;

use crate::json::items;

/// Returns the content parts of a message; plain text has none.
pub(crate) fn parts(message: &Value) -> &[Value] {
    items(message, "content")
}

/// Returns whether `tool_choice` demands a call.
pub(crate) fn forces_tool(body: &Value) -> bool {
    let choice = &body["tool_choice"];
    choice.is_object() && choice["mode"] != "auto" || choice == "required" || choice == "any"
}

/// Returns whether the answer must be JSON.
pub(crate) fn wants_json(body: &Value) -> bool {
    matches!(body["response_format"]["type"].as_str(), Some("json_object" | "json_schema"))
}
