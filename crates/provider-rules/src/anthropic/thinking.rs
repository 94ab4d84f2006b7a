//! Thinking: the settings that a model takes, and blocks that come back.

use std::collections::HashMap;

use serde_json::Value;

use super::models::AnthropicModel;
use super::{blocks, forces_tool, is_type};
use crate::ProviderRefusal;
use crate::json::{is_set, items, text};
use crate::refusal::Check;

/// The least budget.
const MIN_BUDGET: u64 = 1024;

/// The thinking blocks that were issued.
#[derive(Debug, Clone, Default)]
pub(crate) struct IssuedThinking {
    /// By signature (or the data of a redacted block): its text and its response.
    blocks: HashMap<String, (String, usize)>,
    /// The signatures of each response that thought, in order.
    responses: Vec<Vec<String>>,
}

impl IssuedThinking {
    pub(crate) fn remember(&mut self, response: &Value) {
        let thoughts: Vec<&Value> = blocks(response).iter().filter(|block| is_thinking(block)).collect();
        let position = self.responses.len();
        for block in &thoughts {
            self.blocks.insert(mark(block).to_owned(), (text(block, "thinking").to_owned(), position));
        }
        self.responses.push(thoughts.iter().map(|block| mark(block).to_owned()).collect());
    }
}

fn is_thinking(block: &Value) -> bool {
    is_type(block, "thinking") || is_type(block, "redacted_thinking")
}

/// Returns what proves that a block was issued.
fn mark(block: &Value) -> &str {
    text(block, if is_type(block, "thinking") { "signature" } else { "data" })
}

/// Checks the settings.
pub(super) fn check(body: &Value, messages: &[Value], model: Option<&AnthropicModel>) -> Check {
    check_type(body, model)?;
    check_effort(body, model)?;
    if body["thinking"]["type"] == "enabled" {
        check_budget(body)?;
        check_loop(messages)?;
    }
    check_forced(body, model)
}

fn check_type(body: &Value, model: Option<&AnthropicModel>) -> Check {
    let refuse = |message: String| Err(ProviderRefusal::anthropic("anthropic.thinking_type", message));
    let Some(kind) = body["thinking"]["type"].as_str() else {
        return if is_set(&body["thinking"]) {
            refuse("thinking.type: Field required".to_owned())
        } else {
            Ok(())
        };
    };
    match model {
        Some(model) if !model.thinking.contains(&kind) && kind == "enabled" => refuse(
            "\"thinking.type.enabled\" is not supported for this model. Use \"thinking.type.adaptive\" and \
             \"output_config.effort\" to control thinking behavior."
                .to_owned(),
        ),
        Some(model) if !model.thinking.contains(&kind) => {
            refuse(format!("\"thinking.type.{kind}\" is not supported for this model."))
        }
        _ => Ok(()),
    }
}

fn check_effort(body: &Value, model: Option<&AnthropicModel>) -> Check {
    let (Some(effort), Some(model)) = (body["output_config"]["effort"].as_str(), model) else {
        return Ok(());
    };
    let refuse = |message: String| Err(ProviderRefusal::anthropic("anthropic.effort", message));
    if model.efforts.is_empty() {
        return refuse("This model does not support the effort parameter.".to_owned());
    }
    if !model.efforts.contains(&effort) {
        let mut levels = model.efforts.to_vec();
        levels.sort_unstable();
        return refuse(format!(
            "This model does not support effort level '{effort}'. Supported levels: {}.",
            levels.join(", ")
        ));
    }
    match body["thinking"]["type"] == "disabled" && model.efforts_that_think.contains(&effort) {
        true => refuse(format!("Effort level '{effort}' is not supported when thinking is disabled.")),
        false => Ok(()),
    }
}

fn check_budget(body: &Value) -> Check {
    let refuse = |message: &str| Err(ProviderRefusal::anthropic("anthropic.budget", message));
    let Some(budget) = body["thinking"]["budget_tokens"].as_u64() else {
        return refuse("thinking.enabled.budget_tokens: Field required");
    };
    if budget < MIN_BUDGET {
        return refuse("thinking.enabled.budget_tokens: Input should be greater than or equal to 1024");
    }
    match body["max_tokens"].as_u64().is_some_and(|max_tokens| budget >= max_tokens) {
        true => refuse("`max_tokens` must be greater than `thinking.budget_tokens`."),
        false => Ok(()),
    }
}

/// While tools are being called, the turn of the assistant starts with thinking.
fn check_loop(messages: &[Value]) -> Check {
    let has_results = |message: &&Value| blocks(message).iter().any(|block| is_type(block, "tool_result"));
    if !messages.last().is_some_and(|last| has_results(&last)) {
        return Ok(());
    }
    let is_of_loop = |message: &Value| message["role"] == "assistant" || has_results(&message);
    let start = messages.iter().rposition(|message| !is_of_loop(message)).map_or(0, |index| index + 1);
    let Some(first) = blocks(&messages[start]).first().filter(|block| !is_thinking(block)) else {
        return Ok(());
    };
    let kind = text(first, "type");
    Err(ProviderRefusal::anthropic(
        "anthropic.loop_without_thinking",
        format!(
            "messages.{start}.content.0.type: Expected `thinking` or `redacted_thinking`, but found `{kind}`. When \
             `thinking` is enabled, a final `assistant` message must start with a thinking block."
        ),
    ))
}

fn check_forced(body: &Value, model: Option<&AnthropicModel>) -> Check {
    if !forces_tool(body) {
        return Ok(());
    }
    let refuse = |message: &str| Err(ProviderRefusal::anthropic("anthropic.forced_tool_choice", message));
    if body["thinking"]["type"] == "enabled" {
        return refuse("Thinking may not be enabled when tool_choice forces tool use.");
    }
    match model.is_some_and(|model| !model.takes_forced_choice) {
        true => refuse("tool_choice forces tool use, which is not supported for this model."),
        false => Ok(()),
    }
}

/// The thinking of the latest assistant message comes back as it was issued.
pub(super) fn check_replay(messages: &[Value], issued: &IssuedThinking) -> Check {
    for (index, message) in messages.iter().enumerate() {
        if let Some(position) =
            blocks(message).iter().position(|block| is_thinking(block) && mark(block).is_empty())
        {
            return Err(invalid_signature(index, position));
        }
    }
    let Some(index) = messages.iter().rposition(|message| message["role"] == "assistant") else {
        return Ok(());
    };
    check_latest(&messages[index], index, issued)
}

fn check_latest(message: &Value, index: usize, issued: &IssuedThinking) -> Check {
    let mut sent: Vec<&str> = Vec::new();
    for (position, block) in
        items(message, "content").iter().enumerate().filter(|(_, block)| is_thinking(block))
    {
        let Some((thought, _)) = issued.blocks.get(mark(block)) else {
            return Err(invalid_signature(index, position));
        };
        if thought != text(block, "thinking") {
            return Err(modified(index, position));
        }
        sent.push(mark(block));
    }
    let responses = sent.iter().filter_map(|mark| issued.blocks.get(*mark)).map(|(_, response)| *response);
    let mut expected: Vec<usize> = responses.collect();
    expected.dedup();
    let expected = expected.into_iter().flat_map(|response| &issued.responses[response]);
    if expected.eq(sent.iter().copied()) { Ok(()) } else { Err(modified(index, 0)) }
}

fn invalid_signature(index: usize, position: usize) -> ProviderRefusal {
    ProviderRefusal::anthropic(
        "anthropic.thinking_signature",
        format!("messages.{index}.content.{position}: Invalid `signature` in `thinking` block"),
    )
}

fn modified(index: usize, position: usize) -> ProviderRefusal {
    ProviderRefusal::anthropic(
        "anthropic.thinking_modified",
        format!(
            "messages.{index}.content.{position}: `thinking` or `redacted_thinking` blocks in the latest assistant message \
             cannot be modified. These blocks must remain as they were in the original response."
        ),
    )
}
