//! What a request may use at most, estimated before it is sent.

use std::sync::Arc;

use llm_do_core::{
    Failure, FailureKind, MediaTokens, Message, Model, Name, Part, Prices, ServerTool, ToolDefinition,
    ToolResult, Usage,
};

use super::{Asking, AttemptError};
use crate::budget::{Ask, Pricing};
use crate::state::live::{AgentFrame, ConversationState};
use crate::state::run_state::RunState;

/// How many times more tokens another model may count for the same text.
const OTHER_TOKENIZER: u64 = 2;

/// Uses of a server-side tool in one request, where the agent does not limit them.
const SERVER_TOOL_USES: u32 = 5;

impl Asking<'_> {
    /// Returns what the request may use at most; nothing where no ceiling limits requests.
    pub(super) fn budget_ask(
        &self,
        conversation_state: &ConversationState,
        model: &dyn Model,
        tools: &[Arc<ToolDefinition>],
    ) -> Result<Option<Ask>, AttemptError> {
        if !self.run.budget.limits_requests(self.frame.ceiling) {
            return Ok(None);
        }
        let profile = model.profile();
        let input = self.input_bound(conversation_state, model.name(), profile.media, tools);
        let output = self.wanted_output().unwrap_or(profile.default_max_output);
        let server_tools = self.frame.agent_state.server_tools.get().map_or(&[][..], Vec::as_slice);
        let allowance = server_tools.iter().map(allowance).sum();
        let cost = self.pricing(model.name(), input, searches(server_tools))?;
        Ok(Some(Ask { input, output, allowance, cost }))
    }

    /// Returns an upper bound of the input: what the last answer reported, and the size of what is new since.
    fn input_bound(
        &self,
        conversation_state: &ConversationState,
        model: &Name,
        media: MediaTokens,
        tools: &[Arc<ToolDefinition>],
    ) -> u64 {
        let messages = conversation_state.conversation.messages();
        let size = |from: usize| messages[from..].iter().map(|message| message_tokens(message, media)).sum();
        let whole = || self.opening_bytes(tools).saturating_add(size(0));
        match conversation_state.measured.as_ref().filter(|measured| measured.messages <= messages.len()) {
            None => whole(),
            Some(measured) if measured.model.as_ref() == Some(model) => {
                measured.tokens.saturating_add(size(measured.messages))
            }
            Some(measured) => {
                let counted = measured.tokens.saturating_mul(OTHER_TOKENIZER);
                counted.saturating_add(size(measured.messages)).min(whole())
            }
        }
    }

    pub(super) fn opening_bytes(&self, tools: &[Arc<ToolDefinition>]) -> u64 {
        let instructions = self.frame.instructions().map_or(0, |text| text.len());
        let size = |tool: &ToolDefinition| {
            tool.name.len() + tool.description.len() + tool.input.source().to_string().len()
        };
        let tools: usize = tools.iter().map(|tool| size(tool)).sum();
        (instructions + tools) as u64
    }

    pub(super) fn wanted_output(&self) -> Option<u64> {
        let tuned = self.frame.agent_state.tuned.lock().max_tokens;
        tuned.or_else(|| self.frame.plan.spec.as_ref().and_then(|spec| spec.settings.max_tokens))
    }

    /// Returns what the request costs, its input at the dearest rate. Searches cost something only if there is an
    /// allowance for what they find.
    fn pricing(&self, model: &Name, input: u64, searches: u64) -> Result<Option<Pricing>, AttemptError> {
        let prices = self.run.shared.prices.clone();
        if dearest(&*prices, model, Usage { requests: 1, ..Usage::default() }, input).is_none() {
            check_price(self.run, self.frame, model)?;
            return Ok(None);
        }
        let model = model.clone();
        // Input and output together, since a long input makes the output dearer too.
        Ok(Some(Arc::new(move |allowance, output| {
            let searches = if allowance > 0 { searches } else { 0 };
            let usage = Usage { requests: 1, output, searches, ..Usage::default() };
            dearest(&*prices, &model, usage, input.saturating_add(allowance)).unwrap_or(u64::MAX)
        })))
    }
}

/// A limit of the cost holds for models whose price is known.
pub(crate) fn check_price(run: &RunState, frame: &AgentFrame, model: &Name) -> Result<(), Failure> {
    let one = Usage { requests: 1, output: 1, ..Usage::default() };
    if !run.budget.limits_cost(frame.ceiling) || dearest(&*run.shared.prices, model, one, 1).is_some() {
        return Ok(());
    }
    let message = format!("the cost is limited and the price of `{model}` is unknown");
    Err(Failure::new(FailureKind::Limit, message).with_hint("give a price for it, or limit tokens instead"))
}

/// Returns what a usage costs together with input at the dearest rate.
fn dearest(prices: &dyn Prices, model: &str, usage: Usage, input: u64) -> Option<u64> {
    let kinds = [
        Usage { input, ..usage },
        Usage { cache_read: input, ..usage },
        Usage { cache_write: input, ..usage },
    ];
    kinds.iter().filter_map(|usage| prices.price(model, usage)).max().map(|money| money.0)
}

/// Returns how many input tokens a message has at most: one for each byte of its text, and what its attachments cost.
pub(super) fn message_tokens(message: &Message, media: MediaTokens) -> u64 {
    message.parts.iter().map(|part| part_tokens(part, media)).fold(64, u64::saturating_add)
}

fn part_tokens(part: &Part, media: MediaTokens) -> u64 {
    match part {
        Part::Attachment(attachment) => media.estimate(attachment),
        Part::ToolResult(result) if !result.attachments.is_empty() => {
            let text = ToolResult { attachments: Vec::new(), ..result.clone() };
            let attached = result.attachments.iter().map(|attachment| media.estimate(attachment));
            attached.fold(written_bytes(&Part::ToolResult(text)), u64::saturating_add)
        }
        part => written_bytes(part),
    }
}

fn written_bytes(part: &Part) -> u64 {
    serde_json::to_vec(part).map_or(0, |text| text.len() as u64)
}

/// Returns how many tokens a server-side tool usually adds to the input of a request.
fn allowance(tool: &ServerTool) -> u64 {
    let uses = |max_uses: &Option<u32>| u64::from(max_uses.unwrap_or(SERVER_TOOL_USES).min(SERVER_TOOL_USES));
    match tool {
        ServerTool::WebSearch { max_uses, .. } => uses(max_uses) * 8_000,
        ServerTool::WebFetch { max_uses, .. } => uses(max_uses) * 20_000,
        ServerTool::CodeExecution {} | ServerTool::ImageGeneration {} => 10_000,
    }
}

/// Returns how many searches a request makes at most, for which most providers charge separately.
fn searches(tools: &[ServerTool]) -> u64 {
    let max_uses = tools.iter().filter_map(|tool| match tool {
        ServerTool::WebSearch { max_uses, .. } => Some(max_uses.unwrap_or(SERVER_TOOL_USES)),
        _ => None,
    });
    max_uses.map(u64::from).sum()
}
