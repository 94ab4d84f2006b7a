//! OpenAI's own endpoints: Chat Completions and Responses.

mod chat;
mod issued;
mod models;
mod parameters;
mod responses;
mod schema;
mod tools;

pub(crate) use chat::check as check_chat;
pub(crate) use issued::Issued;
pub(crate) use responses::check as check_responses;
