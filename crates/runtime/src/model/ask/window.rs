//! How much of an input fits into the context window of the model that will read it.
//!
//! A window is known in tokens and a text in bytes, so this is an estimate on the safe side: three bytes of prose or code
//! are less than a token, and one character of most other scripts is about one.

use llm_do_core::{ContextUse, Model, Name};

use super::{Asking, message_tokens};
use crate::state::live::{AgentFrame, ConversationState, LiveCall};
use crate::state::run_state::RunState;

/// Bytes of text that are counted as one token.
const BYTES_PER_TOKEN: u64 = 3;
/// The part of the window that stays free for results of tools and for the answer.
const RESERVE: u64 = 4;

/// What is known about the model that an input is for.
#[derive(Debug)]
pub(crate) struct InputRoom {
    /// The model.
    pub(crate) model: Name,
    /// How many tokens it reads at once.
    pub(crate) window: u64,
    /// How many bytes of text still fit, the answer left out.
    pub(crate) bytes: u64,
}

/// Returns how much text the model of an agent call can be given now; nothing if its window is not known.
pub(crate) async fn input_room(run: &RunState, call: &LiveCall, frame: &AgentFrame) -> Option<InputRoom> {
    let asking = Asking { run, call, frame, key: &call.info.id, turn: 0 };
    let mut conversation_state = frame.agent_state.conversation_state.lock().await;
    let choice = asking.candidates(&conversation_state).into_iter().next()?;
    // A model that cannot be opened fails with the first request, which says why.
    let position = asking.model_handle(&mut conversation_state, &choice).ok()?;
    let model = conversation_state.model_handles[position].model.clone();
    let profile = model.profile();
    let window = profile.context_window?;
    let reserve = asking.wanted_output().unwrap_or(profile.default_max_output).max(window / RESERVE);
    let used = asking.used_tokens(&conversation_state, &*model);
    let tokens = window.saturating_sub(reserve.min(window / 2)).saturating_sub(used);
    Some(InputRoom { model: choice.name().clone(), window, bytes: tokens.saturating_mul(BYTES_PER_TOKEN) })
}

/// Tokens that an answer may always have. Whoever has no room for them is told that the window is full.
const MIN_OUTPUT: u64 = 256;
/// Tokens that stay free between the estimate and the end of the window.
const MARGIN: u64 = 64;

/// Returns how many tokens an answer may have, so that it fits into the window together with the request: a provider that adds up
/// both refuses more. `default` is what is asked for where nobody says how many; nothing is returned if that fits.
///
/// A request that does not fit itself is left as it is: the provider knows best, and says so.
pub(super) fn fitting_output(context: ContextUse, wanted: Option<u64>, default: u64) -> Option<u64> {
    if context.used >= context.window {
        return wanted;
    }
    let room = (context.window - context.used).saturating_sub(MARGIN).max(MIN_OUTPUT);
    match wanted {
        Some(wanted) => Some(wanted.min(room)),
        None => (default > room).then_some(room),
    }
}

impl Asking<'_> {
    /// Returns how much of the window of a model the next request takes; nothing if the window is not known.
    pub(super) fn context_use(
        &self,
        conversation_state: &ConversationState,
        model: &dyn Model,
    ) -> Option<ContextUse> {
        let window = model.profile().context_window?;
        Some(ContextUse { used: self.used_tokens(conversation_state, model), window })
    }

    /// Estimates what instructions, tools and the conversation so far take.
    fn used_tokens(&self, conversation_state: &ConversationState, model: &dyn Model) -> u64 {
        let messages = conversation_state.conversation.messages();
        let (measured, from) =
            conversation_state.measured.as_ref().map_or((0, 0), |known| (known.tokens, known.messages));
        let media = model.profile().media;
        let new = messages.iter().skip(from).map(|message| message_tokens(message, media)).sum::<u64>();
        let opening = if from == 0 { self.opening_bytes(self.offered(model)) } else { 0 };
        measured.saturating_add(opening.saturating_add(new) / BYTES_PER_TOKEN)
    }
}
