//! Calls that the provider makes itself, and what refers to tools.

use serde_json::Value;

use super::{blocks, is_type};
use crate::ProviderRefusal;
use crate::json::{items, text};
use crate::refusal::Check;

/// Checks that server calls have results and results have calls, and that references name tools.
pub(super) fn check(body: &Value, messages: &[Value]) -> Check {
    let mut open: Vec<&str> = Vec::new();
    for (index, message) in messages.iter().enumerate() {
        if !open.is_empty() && !is_only_results(message) {
            return Err(without_result(open[0]));
        }
        for block in blocks(message) {
            check_block(body, block, index, &mut open)?;
        }
    }
    Ok(())
}

fn check_block<'a>(body: &Value, block: &'a Value, index: usize, open: &mut Vec<&'a str>) -> Check {
    let kind = text(block, "type");
    match kind {
        "server_tool_use" | "mcp_tool_use" => open.push(text(block, "id")),
        "tool_result" => return check_references(body, block),
        _ if kind.ends_with("_tool_result") => {
            let id = text(block, "tool_use_id");
            let Some(position) = open.iter().position(|open| *open == id) else {
                return Err(without_call(index, kind, id));
            };
            open.remove(position);
            return check_advisor(body, kind);
        }
        _ => {}
    }
    Ok(())
}

/// While a server call is open, only messages that hold nothing but client results may follow.
fn is_only_results(message: &Value) -> bool {
    let is_result = |block: &Value| is_type(block, "tool_result");
    // The continuation of the turn may bring the result itself.
    message["role"] == "assistant" || (!blocks(message).is_empty() && blocks(message).iter().all(is_result))
}

fn check_references(body: &Value, result: &Value) -> Check {
    let is_offered = |name: &str| items(body, "tools").iter().any(|tool| tool["name"] == name);
    let references = items(result, "content").iter().filter(|block| is_type(block, "tool_reference"));
    match references.map(|block| text(block, "tool_name")).find(|name| !is_offered(name)) {
        Some(name) => Err(ProviderRefusal::anthropic(
            "anthropic.tool_reference",
            format!("Tool reference '{name}' not found in available tools"),
        )),
        None => Ok(()),
    }
}

fn check_advisor(body: &Value, kind: &str) -> Check {
    let is_advisor = |tool: &Value| text(tool, "type").starts_with("advisor_");
    match kind == "advisor_tool_result" && !items(body, "tools").iter().any(is_advisor) {
        true => Err(ProviderRefusal::anthropic(
            "anthropic.advisor",
            "messages: `advisor_tool_result` blocks need the advisor tool in `tools`",
        )),
        false => Ok(()),
    }
}

fn without_result(id: &str) -> ProviderRefusal {
    ProviderRefusal::anthropic(
        "anthropic.server_call_without_result",
        format!("messages: `server_tool_use` with id `{id}` was found without a corresponding result block"),
    )
}

fn without_call(index: usize, kind: &str, id: &str) -> ProviderRefusal {
    ProviderRefusal::anthropic(
        "anthropic.server_result_without_call",
        format!("messages.{index}: unexpected `tool_use_id` found in `{kind}` blocks: {id}"),
    )
}
