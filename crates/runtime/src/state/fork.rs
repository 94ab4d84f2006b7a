//! Forks: an agent that goes on several times from where it is.
//!
//! A child begins with the messages of its parent, which are shared and not copied, then the message whose calls are
//! being run, with an answer to each of them, and its own prompt. So the conversation is one that every provider
//! takes, and the part that a provider may have cached is the same byte for byte.

use std::sync::Arc;

use llm_do_core::{Conversation, Failure, FailureKind, Key, Message, Part, Payload, ToolCall, ToolResult};
use serde_json::Value;

use crate::state::live::{AgentFrame, AgentState, ConversationState, LiveCall, ModelHandle, Turn};

const CHILD: &str = "you are a child that was forked at this call; you have the conversation so far and share nothing \
    with your siblings; do only what you are asked next, and answer with the result, in plain text";

const LEFT_TO_PARENT: &str = "this call is left to the parent of this fork";

/// Begins the conversation of a child: what its parent has said and heard so far, and a prompt.
pub(crate) async fn begin(call: &LiveCall, frame: &AgentFrame, input: &Payload) -> Result<(), Failure> {
    let parent = call.callers_frame();
    let Some(turn) = parent.agent_state.turn.lock().clone() else { return Err(no_turn()) };
    let mut inherited = inherit(&*parent.agent_state.conversation_state.lock().await);
    let history = inherited.conversation.messages().len();
    let prompt = input.value().get("input").and_then(Value::as_str).unwrap_or_default();
    let answers = answers(&turn, call, prompt);
    inherited.append(turn.message, frame.plan.shows_positions);
    inherited.append(Arc::new(answers), frame.plan.shows_positions);
    inherited.announced = history;
    inherited.kept = Some(history);
    if let Some(instructions) = parent.instructions() {
        let _ = frame.agent_state.instructions.set(instructions.clone());
    }
    share_settings(&parent.agent_state, &frame.agent_state);
    *frame.agent_state.conversation_state.lock().await = inherited;
    Ok(())
}

/// Makes the agent state of a session that goes on from where another one is.
pub(crate) async fn agent_state(from: &AgentState) -> AgentState {
    let conversation_state = from.conversation_state.lock().await;
    let history = conversation_state.conversation.messages().len();
    let mut inherited = inherit(&conversation_state);
    inherited.turns.clone_from(&conversation_state.turns);
    inherited.introduced = conversation_state.introduced;
    // What events have not shown yet of the one, those of the other show.
    inherited.announced = conversation_state.announced;
    inherited.kept = conversation_state.kept.or((history > 0).then_some(conversation_state.announced));
    let agent_state = AgentState::with_state(inherited);
    if let Some(instructions) = from.instructions.get() {
        let _ = agent_state.instructions.set(instructions.clone());
    }
    if let Some(descriptors) = from.descriptors.get() {
        let _ = agent_state.descriptors.set(descriptors.fork());
    }
    share_settings(from, &agent_state);
    agent_state
}

/// Makes the agent state of a session that begins anew, with what was chosen for it.
pub(crate) fn fresh_agent_state(from: &AgentState) -> AgentState {
    let agent_state =
        AgentState::with_state(ConversationState { kept: Some(0), ..ConversationState::default() });
    *agent_state.tuned.lock() = from.tuned.lock().clone();
    *agent_state.chosen.lock() = from.chosen.lock().clone();
    agent_state
}

fn share_settings(from: &AgentState, to: &AgentState) {
    if let Some(tools) = from.server_tools.get() {
        let _ = to.server_tools.set(tools.clone());
    }
    *to.tuned.lock() = from.tuned.lock().clone();
    *to.chosen.lock() = from.chosen.lock().clone();
}

/// Says why there is nothing to fork.
pub(crate) fn no_turn() -> Failure {
    Failure::new(FailureKind::Tool, "there is no conversation here that could be forked")
        .with_hint("fork from a tool that the model of an agent calls")
}

/// Shares the messages of a conversation and what models keep of it.
fn inherit(conversation_state: &ConversationState) -> ConversationState {
    let model_handle = |model_handle: &ModelHandle| {
        let session = model_handle.session.fork()?;
        Some(ModelHandle { name: model_handle.name.clone(), model: model_handle.model.clone(), session })
    };
    ConversationState {
        conversation: Conversation::clone(&conversation_state.conversation),
        introduced: true,
        measured: conversation_state.measured.clone(),
        note: conversation_state.note.clone(),
        model_handles: conversation_state.model_handles.iter().filter_map(model_handle).collect(),
        answered: conversation_state.answered.clone(),
        ..ConversationState::default()
    }
}

/// Answers every call of the turn, as providers demand, and adds the prompt.
fn answers(turn: &Turn, call: &LiveCall, prompt: &str) -> Message {
    let calls = turn.message.tool_calls().zip(&turn.keys).enumerate();
    let results = calls.map(|(index, (asked, key))| match turn.results.get(index) {
        Some(result) => result.clone(),
        None if is_below(call, key) => answer(asked, CHILD),
        None => answer(asked, LEFT_TO_PARENT),
    });
    let mut message = Message::results(results);
    message.parts.push(Part::text(prompt));
    message
}

fn answer(call: &ToolCall, text: &str) -> ToolResult {
    ToolResult {
        id: call.id.clone(),
        name: call.name.clone(),
        text: text.into(),
        is_error: false,
        attachments: Vec::new(),
    }
}

fn is_below(call: &LiveCall, key: &Key) -> bool {
    call.info.id == *key || call.parent.as_ref().is_some_and(|parent| is_below(parent, key))
}
