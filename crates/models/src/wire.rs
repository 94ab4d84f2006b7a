//! What goes over the wire: requests out, answers in, without any I/O.
//!
//! An [`encode::Encoder`] writes the requests of one session. A [`Decoder`] takes the body of a successful response as it arrives, in pieces of any size, and yields the
//! same answer whether the body is a stream of events or one JSON document: the body itself tells which.
//! [`errors`] reads the body of a failed one. Sending requests and trying again belong to the providers.
//!
//! # What is kept
//!
//! Everything. A part carries its provider's own block (`raw`) where that block holds more than the part;
//! blocks that have no meaning for llm-do (calls of server-side tools and their results, redacted and
//! encrypted thinking, kinds not known yet) are [`Part::Opaque`](llm_do_core::Part::Opaque). What belongs to
//! the message as a whole is in [`Origin::data`], under the same keys for every provider:
//!
//! | key | holds |
//! | --- | --- |
//! | `id` | the provider's id of the response |
//! | `stop_reason` | the provider's own word |
//! | `usage` | the provider's own usage object, untouched |
//! | `refusal` | the words of a refusal |
//! | `other` | the rest of the response, without the content and without what it repeats of the request |
//!
//! The raw usage is there, and not in a field of [`ModelResponse`], because it is recorded, shown and
//! priced with the message that it belongs to.
//!
//! Calls of server-side tools are shown once more in [`ModelResponse::server_calls`], in one shape for all
//! providers and without their data: images that a provider made stay in their opaque blocks, which go back as
//! they are.
//!
//! # What is sent
//!
//! | part of a message | to its own provider | to another one |
//! | --- | --- | --- |
//! | text | as it came, with citations and signatures | its text |
//! | thinking | as it came; not where it was cut before its signature, or where nothing follows it | left out |
//! | call | with the fields that it came with | its name, arguments and id |
//! | result | by the id of its call, with images and files | the same |
//! | opaque block | as it came; not a server-side call that was cut before its result | left out |
//! | attachment | as the API takes it; else words that name it, with a notice | the same |
//!
//! A provider is the same where its name is the same; what merely speaks the same protocol is another one. An
//! id that the target could not have given is derived from the old one, alike for call and result; an id that
//! was made here ([`GENERATED_ID`]) is not sent to APIs that give none. Arguments that are not a JSON object are
//! sent as `{"invalid_arguments": text}`. A call without a result gets one that says so, and a result without a
//! call becomes text. A message of the model of which nothing is left is not sent; one of the caller says
//! `(empty)`.
//!
//! | | anthropic | openai-chat | openai | gemini | ollama |
//! | --- | --- | --- | --- | --- | --- |
//! | text | blocks | a string, pieces beside media | pieces | parts | a string |
//! | files of a result | in the result | in a message after all results | in the result | parts after the results | images in the result |
//! | schema of the answer | `output_config.format`, closed and without what is not enforced | `response_format` | `text.format` | `responseJsonSchema` | `format` |
//! | thinking | `thinking`, `output_config.effort` | `reasoning_effort`; `reasoning` at OpenRouter | `reasoning` | `thinkingConfig` | `think` |
//! | server-side tools | search, fetch, code | – | search, code, images | search, fetch, code | – |
//! | settings left out | `seed` | – | `seed`, `stop` | `parallel_tool_calls: false` | `tool_choice` but for `none`, `parallel_tool_calls: false` |
//!
//! What is left out is said in a notice, once in a session. `extra_body` goes over all fields but the messages;
//! objects are merged.
//!
//! # One meaning of usage
//!
//! | [`Usage`] | anthropic | openai-chat | openai | gemini | ollama |
//! | --- | --- | --- | --- | --- | --- |
//! | `input` | `input_tokens` | `prompt_tokens` less cached and written | `input_tokens` less cached and written | `promptTokenCount` less cached, and `toolUsePromptTokenCount` | `prompt_eval_count` |
//! | `cache_read` | `cache_read_input_tokens` | `cached_tokens` or `prompt_cache_hit_tokens` | `cached_tokens` | `cachedContentTokenCount` | – |
//! | `cache_write` | `cache_creation_input_tokens` | `cache_write_tokens` | `cache_write_tokens` | – | – |
//! | `output` | `output_tokens` | `completion_tokens`, or `total_tokens` less `prompt_tokens` where that is more | `output_tokens` | `candidatesTokenCount` and `thoughtsTokenCount` | `eval_count` |
//! | `reasoning` | `thinking_tokens` | `reasoning_tokens` | `reasoning_tokens` | `thoughtsTokenCount` | – |
//! | `searches` | `web_search_requests` | – | items `web_search_call` | 1 where `webSearchQueries` are given | – |
//!
//! `requests` is always 1. Some hosts of Chat Completions leave reasoning out of `completion_tokens` but count
//! it in `total_tokens`.
//!
//! # Limits
//!
//! An event, a line and a whole body have at most [`MAX_EVENT_BYTES`]; an event has at most
//! [`MAX_EVENT_VALUES`] JSON values; what is kept of one message weighs at most [`MAX_MESSAGE_BYTES`]. So a
//! decoder never holds more than about 64 megabytes: the message, an event as text, and the same as values.
//!
//! # Ends
//!
//! A body that ends before the provider said why the message ends, and an event that is not JSON, are
//! [`ModelErrorKind::Truncated`] with the usage known so far. No tool call leaves a decoder before that. A body that
//! stays open after the stop reason is settled by whoever reads it; a call with incomplete arguments is then an error.

mod decode;
pub(crate) mod encode;
pub(crate) mod errors;
mod frames;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
mod json;
pub(crate) mod request_rules;
#[cfg(any(test, feature = "fuzzing"))]
mod samples;
#[cfg(test)]
mod tests;

use llm_do_core::{ModelError, ModelErrorKind};

pub(crate) use decode::Decoder;
use decode::GENERATED_ID;

/// The most bytes of one event, one line or one whole body. Images arrive in events of several megabytes.
pub(crate) const MAX_EVENT_BYTES: usize = 16 * 1024 * 1024;

/// The most JSON values in one event: a value costs memory far beyond the two bytes that it may have.
pub(crate) const MAX_EVENT_VALUES: usize = 50_000;

/// The most bytes that one message may weigh, its blocks and texts taken together.
pub(crate) const MAX_MESSAGE_BYTES: usize = 20 * 1024 * 1024;

/// The protocols whose responses can be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Api {
    /// Anthropic's Messages.
    Anthropic,
    /// OpenAI's Chat Completions, and what many hosts make of it.
    OpenAiChat,
    /// OpenAI's Responses.
    OpenAiResponses,
    /// Gemini's `generateContent` and `streamGenerateContent`.
    Gemini,
    /// Ollama's `/api/chat`.
    Ollama,
}

impl Api {
    /// Finds a protocol by the name that manifests use.
    pub(crate) fn from_protocol(name: &str) -> Option<Self> {
        match name {
            "anthropic" => Some(Self::Anthropic),
            "openai" => Some(Self::OpenAiResponses),
            "openai-chat" => Some(Self::OpenAiChat),
            "gemini" => Some(Self::Gemini),
            "ollama" => Some(Self::Ollama),
            _ => None,
        }
    }
}

fn truncated(message: impl Into<String>) -> ModelError {
    ModelError::new(ModelErrorKind::Truncated, message)
}
