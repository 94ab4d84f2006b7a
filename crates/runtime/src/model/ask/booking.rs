//! What an attempt used: counted for people, booked against the ceilings.
//!
//! An answer reports what it used. A failed attempt cost nothing, a known amount or an unknown one
//! ([`AttemptCost`]); an unknown amount is booked with everything that was reserved, so that limits hold.

use std::sync::Arc;

use llm_do_core::{AttemptCost, ModelError, ModelResponse, Name, Usage};

use super::Asking;
use crate::budget::{Amount, Reservation};
use crate::state::live::{ConversationState, Measured};

impl Asking<'_> {
    /// Books an attempt and returns its result with prices.
    pub(super) fn booked(
        &self,
        conversation_state: &mut ConversationState,
        model: &Name,
        result: Result<ModelResponse, ModelError>,
        reservation: Option<Reservation<'_>>,
    ) -> Result<Arc<ModelResponse>, ModelError> {
        match result {
            Ok(mut response) => {
                response.usage = self.run.priced_answer(model, response.usage);
                self.note_answer(conversation_state, model, &response.usage);
                self.note_excess(&response, reservation.as_ref());
                self.book(model, &AttemptCost::from_answer(&response.usage), reservation);
                Ok(Arc::new(response))
            }
            Err(mut error) => {
                error.cost = self.run.priced_cost(model, error.cost);
                self.book(model, &error.cost, reservation);
                Err(error)
            }
        }
    }

    /// Keeps what the next request is estimated from. Only an answer says how long the conversation is: a failed attempt
    /// leaves the previous measurement as it was.
    fn note_answer(&self, conversation_state: &mut ConversationState, model: &Name, usage: &Usage) {
        *self.frame.agent_state.model.lock() = Some(model.clone());
        if usage.tokens() > 0 {
            let messages = conversation_state.conversation.messages().len() + 1;
            conversation_state.measured =
                Some(Measured { model: Some(model.clone()), tokens: usage.tokens(), messages });
        }
    }

    /// Reports an answer that used more than was reserved for it, and why.
    fn note_excess(&self, response: &ModelResponse, reservation: Option<&Reservation<'_>>) {
        let (used, reserved) = (Amount::from(&response.usage), reservation.map(Reservation::amount));
        let Some(reserved) = reserved.filter(|reserved| used.tokens > reserved.tokens) else { return };
        let cause = match response.server_calls.len() {
            0 => "the provider counted more than was estimated",
            _ => "its server-side tools read more than was allowed for",
        };
        let text = format!(
            "the request used {} tokens, more than the {} that were reserved for it: {cause}",
            used.tokens, reserved.tokens
        );
        self.run.notice(&self.call.info, text);
    }

    /// Counts what an attempt cost, with prices, and settles its reservation.
    pub(super) fn book(&self, model: &Name, cost: &AttemptCost, reservation: Option<Reservation<'_>>) {
        let usage = cost.counted();
        self.count(model, usage);
        match (cost, reservation) {
            // Everything that was reserved may have been charged.
            (AttemptCost::Unknown(_), Some(reservation)) => drop(reservation),
            (_, reservation) => self.settle(usage, reservation),
        }
    }

    fn settle(&self, usage: Usage, reservation: Option<Reservation<'_>>) {
        match reservation {
            Some(reservation) => reservation.settle(Amount::from(&usage)),
            None => self.run.budget.book(self.frame.ceiling, Amount::from(&usage)),
        }
    }

    /// Adds what was used to the call, its callers and the runtime.
    fn count(&self, model: &Name, usage: Usage) {
        self.call.add_usage(model, usage);
        self.run.shared.usage.lock().add(model, usage);
    }
}
