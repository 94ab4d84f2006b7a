//! OpenAI's own endpoints: Chat Completions and Responses.

mod chat;
mod issued;
mod models;
mod parameters;
mod responses;
mod schema;
mod tools;

pub(crate) use chat::check as check_chat;
pub(crate) use issued::IssuedReasoning;
pub(crate) use responses::check as check_responses;

use crate::{ProviderRequest, Reasoning};

/// Returns whether the model reasons before it answers a request to the Responses endpoint.
pub(crate) fn reasoning(request: &ProviderRequest<'_>) -> Reasoning {
    let effort = request.body["reasoning"]["effort"].as_str();
    match parameters::is_reasoning(effort, models::find(request.model())) {
        true => Reasoning::Always,
        false => Reasoning::Off,
    }
}
