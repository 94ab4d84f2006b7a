//! Reads what providers answer: bytes in, parts out, without any I/O.
//!
//! A [`Decoder`] takes the body of a successful response as it arrives, in pieces of any size, and yields the
//! same answer whether the body is a stream of events or one JSON document: the body itself tells which.
//! [`errors`] reads the body of a failed one. Sending requests and trying again belong to the providers.
//!
//! # What is kept
//!
//! Everything. A part carries its provider's own block (`raw`) where that block holds more than the part;
//! blocks that have no meaning for llm-do (calls of server-side tools and their results, redacted and
//! encrypted thinking, kinds not known yet) are [`Part::Opaque`](llm_do_core::Part::Opaque). What belongs to
//! the message as a whole stands in [`Origin::data`], under the same keys for every provider:
//!
//! | key | holds |
//! | --- | --- |
//! | `id` | the provider's id of the response |
//! | `stop_reason` | the provider's own word |
//! | `usage` | the provider's own usage object, untouched |
//! | `refusal` | the words of a refusal |
//! | `other` | the rest of the response, without the content and without what it repeats of the request |
//!
//! The raw usage stands there, and not in a field of [`ModelResponse`], because it is recorded, shown and
//! priced with the message that it belongs to.
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
//! A body that ends before the provider said that the message is complete, and an event that is not JSON, are
//! [`ModelErrorKind::Truncated`] with the usage known so far. No tool call leaves a decoder before that.

mod answer;
mod anthropic;
pub(crate) mod encode;
pub(crate) mod errors;
mod frames;
mod gemini;
mod json;
mod ollama;
mod openai_chat;
mod openai_responses;
mod retry_after;
mod server_calls;
#[cfg(test)]
mod tests;

use llm_do_core::{ModelError, ModelErrorKind, ModelPart, ModelResponse, Origin, Usage};
use serde_json::Value;

use answer::{Draft, Sink};
use frames::{Frame, Frames};

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
    pub(crate) fn of_protocol(name: &str) -> Option<Self> {
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

/// How one API's objects become an answer.
trait Reader: Send {
    /// Takes one object: an event of a stream, or the whole answer.
    fn read(&mut self, object: Value, sink: &mut Sink<'_>) -> Result<(), ModelError>;

    /// Takes the mark `[DONE]`, which some APIs send last.
    fn done(&mut self) {}

    /// Says whether nothing can follow any more.
    fn is_complete(&self) -> bool;

    /// Returns the usage known so far.
    fn usage(&self) -> Option<Usage>;

    /// Returns the answer, or nothing where the provider has not ended it.
    fn finish(self: Box<Self>, origin: &Origin) -> Option<Draft>;
}

/// Reads the body of a response as it arrives.
pub(crate) struct Decoder {
    frames: Frames,
    reader: Box<dyn Reader>,
    origin: Origin,
    kept: usize,
    failure: Option<ModelError>,
}

impl Decoder {
    /// A decoder of one response of the model that `origin` names.
    pub(crate) fn new(api: Api, origin: Origin) -> Self {
        let reader: Box<dyn Reader> = match api {
            Api::Anthropic => Box::new(anthropic::Messages::default()),
            Api::OpenAiChat => Box::new(openai_chat::Completion::default()),
            Api::OpenAiResponses => Box::new(openai_responses::Response::default()),
            Api::Gemini => Box::new(gemini::Generation::default()),
            Api::Ollama => Box::new(ollama::Chat::default()),
        };
        let frames = if api == Api::Ollama { Frames::lines() } else { Frames::detected() };
        Self { frames, reader, origin, kept: 0, failure: None }
    }

    /// Takes more bytes and adds what they complete to `parts`, also where they end in an error.
    pub(crate) fn push(&mut self, bytes: &[u8], parts: &mut Vec<ModelPart>) -> Result<(), ModelError> {
        if let Some(failure) = &self.failure {
            return Err(failure.clone());
        }
        if self.is_complete() {
            return Ok(());
        }
        let Self { frames, reader, kept, .. } = self;
        let result = frames.push(bytes, &mut |frame| take(&mut **reader, frame, &mut Sink::new(parts, kept)));
        result.map_err(|error| self.fail(error))
    }

    /// Says whether the answer is complete, so that the rest of the body need not be awaited.
    pub(crate) fn is_complete(&self) -> bool {
        self.reader.is_complete()
    }

    /// Says that the body has ended: returns the whole answer, or that it was cut.
    pub(crate) fn finish(mut self, parts: &mut Vec<ModelPart>) -> Result<ModelResponse, ModelError> {
        if let Some(failure) = self.failure {
            return Err(failure);
        }
        if !self.is_complete() {
            let Self { frames, reader, kept, .. } = &mut self;
            let mut each = |frame: Frame<'_>| take(&mut **reader, frame, &mut Sink::new(parts, kept));
            frames.finish(&mut each).map_err(|error| self.fail(error))?;
        }
        let usage = self.reader.usage();
        match self.reader.finish(&self.origin) {
            Some(draft) => Ok(draft.into_response(self.origin)),
            None => Err(ModelError {
                usage: usage.map(Box::new),
                ..truncated("the answer ended before it was complete")
            }),
        }
    }

    fn fail(&mut self, error: ModelError) -> ModelError {
        let usage = error.usage.or_else(|| self.reader.usage().map(Box::new));
        self.failure.insert(ModelError { usage, ..error }).clone()
    }
}

fn take(reader: &mut dyn Reader, frame: Frame<'_>, sink: &mut Sink<'_>) -> Result<(), ModelError> {
    if reader.is_complete() {
        return Ok(());
    }
    match frame {
        Frame::Done => reader.done(),
        Frame::Error(bytes) => return Err(errors::in_stream(bytes)),
        Frame::Data(bytes) => return read(reader, json::parse(bytes)?, sink),
    }
    Ok(())
}

/// Reads an object, or each object of an array: so Gemini streams where no events are asked for.
fn read(reader: &mut dyn Reader, value: Value, sink: &mut Sink<'_>) -> Result<(), ModelError> {
    match value {
        Value::Array(values) => values.into_iter().try_for_each(|value| read_object(reader, value, sink)),
        value => read_object(reader, value, sink),
    }
}

fn read_object(reader: &mut dyn Reader, object: Value, sink: &mut Sink<'_>) -> Result<(), ModelError> {
    if json::has_error(&object) { Err(errors::in_answer(&object)) } else { reader.read(object, sink) }
}

fn truncated(message: impl Into<String>) -> ModelError {
    ModelError::new(ModelErrorKind::Truncated, message)
}
