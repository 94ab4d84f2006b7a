//! Turns an answer into what a session returns: a stream of small parts, paced and counted.
//!
//! Usage is estimated at four bytes per token where the answer does not set it: the input is the
//! instructions and what is new since the model last spoke (as if a cache served the rest), the output what
//! is said, thought and asked. An estimated answer longer than the request permits is cut as a provider
//! cuts it, in the middle and with [`StopReason::MaxTokens`].
//!
//! This module does not choose what to answer: see [`super::script`] and [`super::test_model`].

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use futures::stream;
use llm_do_core::{
    AttemptCost, Message, ModelError, ModelPart, ModelRequest, ModelResponse, ModelStream, Origin, Part,
    Role, StopReason, ToolCall, Usage,
};

use super::history::{estimated_tokens, message_bytes, unanswered};
use super::reply::{Act, ScriptedAnswer};

/// Delivers an answer. Waits that come first, and a failure after them, belong to the request itself.
pub(crate) async fn deliver(
    answer: ScriptedAnswer,
    request: &ModelRequest<'_>,
    origin: &Origin,
) -> Result<ModelStream<'static>, ModelError> {
    let mut beats = compose(answer, request, origin);
    while let Some(Beat::Wait(delay)) = beats.front() {
        tokio::time::sleep(*delay).await;
        beats.pop_front();
    }
    if let Some(Beat::Part(Err(error))) = beats.front() {
        return Err(error.clone());
    }
    Ok(stream::iter(beats).filter_map(play).boxed())
}

/// One moment of a stream.
enum Beat {
    Wait(Duration),
    Part(Result<ModelPart, ModelError>),
}

async fn play(beat: Beat) -> Option<Result<ModelPart, ModelError>> {
    match beat {
        Beat::Wait(delay) => {
            tokio::time::sleep(delay).await;
            None
        }
        Beat::Part(part) => Some(part),
    }
}

fn compose(answer: ScriptedAnswer, request: &ModelRequest<'_>, origin: &Origin) -> VecDeque<Beat> {
    let explicit = answer.usage;
    let (acts, is_cut) = match (explicit, output_limit(request)) {
        (None, Some(tokens)) => within(answer.acts, tokens),
        _ => (answer.acts, false),
    };
    let usage = explicit.unwrap_or_else(|| estimate(&acts, request));
    let pace = answer.pace;
    let mut beats = VecDeque::new();
    let mut parts = Vec::new();
    for act in acts {
        match act {
            Act::Say(text) => {
                beats.extend(paced(pieces(&text).map(ModelPart::Text), pace));
                parts.push(Part::text(text));
            }
            Act::Think(text) => {
                beats.extend(paced(pieces(&text).map(ModelPart::Thinking), pace));
                parts.push(Part::thinking(text));
            }
            Act::Ask { tool, arguments } => {
                let id = call_id(request, &parts);
                parts.push(Part::ToolCall(ToolCall { id, name: tool, arguments, raw: None }));
            }
            Act::Wait(delay) => beats.push_back(Beat::Wait(delay)),
            Act::Fail(error) => {
                beats.push_back(Beat::Part(Err(failed(error, explicit, !parts.is_empty()))));
                return beats;
            }
            Act::Cut => return beats,
        }
    }
    let stop = if is_cut { Some(StopReason::MaxTokens) } else { answer.stop };
    let response = finished(parts, stop, usage, origin);
    beats.push_back(Beat::Part(Ok(ModelPart::Finished(response))));
    beats
}

/// A failure with what it cost. A request that fails before anything is said was refused, and costs nothing.
fn failed(error: ModelError, usage: Option<Usage>, has_begun: bool) -> ModelError {
    let cost = match usage {
        Some(usage) => AttemptCost::Known(Box::new(usage)),
        None if has_begun => AttemptCost::Unknown(None),
        None => AttemptCost::Nothing,
    };
    ModelError { cost, ..error }
}

/// Parts with a wait after each, where there is one.
fn paced(parts: impl Iterator<Item = ModelPart>, pace: Option<Duration>) -> impl Iterator<Item = Beat> {
    parts.flat_map(move |part| std::iter::once(Beat::Part(Ok(part))).chain(pace.map(Beat::Wait)))
}

/// Splits a text after each space.
fn pieces(text: &str) -> impl Iterator<Item = String> {
    text.split_inclusive(' ').map(str::to_owned)
}

/// Names a call by the length of the conversation and its place in the answer.
fn call_id(request: &ModelRequest<'_>, parts: &[Part]) -> String {
    let turn = request.conversation.messages().len();
    let index = parts.iter().filter(|part| matches!(part, Part::ToolCall(_))).count();
    format!("call_{turn}_{index}")
}

fn finished(parts: Vec<Part>, stop: Option<StopReason>, usage: Usage, origin: &Origin) -> ModelResponse {
    let message = Message { role: Role::Assistant, parts, origin: Some(origin.clone()) };
    let asks = message.tool_calls().next().is_some();
    let usual = if asks { StopReason::ToolUse } else { StopReason::EndTurn };
    ModelResponse::new(message, stop.unwrap_or(usual), usage)
}

fn estimate(acts: &[Act], request: &ModelRequest<'_>) -> Usage {
    let new = unanswered(request.conversation).iter().map(|message| message_bytes(message));
    let thinking = acts.iter().filter(|act| matches!(act, Act::Think(_))).map(act_bytes).sum();
    Usage {
        requests: 1,
        input: estimated_tokens(request.instructions.len() + new.sum::<usize>()),
        output: estimated_tokens(acts.iter().map(act_bytes).sum()),
        reasoning: estimated_tokens(thinking),
        ..Usage::default()
    }
}

fn act_bytes(act: &Act) -> usize {
    match act {
        Act::Say(text) | Act::Think(text) => text.len(),
        Act::Ask { tool, arguments } => tool.len() + arguments.len(),
        Act::Wait(_) | Act::Fail(_) | Act::Cut => 0,
    }
}

/// Returns the fewest output tokens that the budget and the agent's settings permit.
fn output_limit(request: &ModelRequest<'_>) -> Option<u64> {
    [request.max_output, request.settings.max_tokens].into_iter().flatten().min()
}

/// Keeps what fits into so many output tokens, and says whether something did not.
fn within(acts: Vec<Act>, tokens: u64) -> (Vec<Act>, bool) {
    let mut left = usize::try_from(tokens.saturating_mul(4)).unwrap_or(usize::MAX);
    let mut kept = Vec::new();
    for act in acts {
        let bytes = act_bytes(&act);
        if bytes > left {
            kept.extend(beginning(act, left));
            return (kept, true);
        }
        left -= bytes;
        kept.push(act);
    }
    (kept, false)
}

/// Returns the first bytes of an act, or nothing where they would say nothing.
fn beginning(act: Act, bytes: usize) -> Option<Act> {
    let start = |text: &str, bytes: usize| Arc::<str>::from(&text[..text.floor_char_boundary(bytes)]);
    match act {
        Act::Say(text) => Some(Act::Say(start(&text, bytes))).filter(|act| act_bytes(act) > 0),
        Act::Think(text) => Some(Act::Think(start(&text, bytes))).filter(|act| act_bytes(act) > 0),
        Act::Ask { tool, arguments } => {
            let left = bytes.checked_sub(tool.len())?;
            Some(Act::Ask { tool, arguments: start(&arguments, left) })
        }
        Act::Wait(_) | Act::Fail(_) | Act::Cut => Some(act),
    }
}
