//! Reads answers: the body of a successful response as it arrives, in pieces of any size.

mod anthropic;
mod draft;
mod gemini;
mod generated_files;
mod ollama;
mod openai_chat;
mod openai_responses;
mod repeat;
mod server_calls;

use llm_do_core::{AttemptCost, ModelError, ModelPart, ModelResponse, Origin, Usage};
use serde_json::Value;

use super::frames::{Frames, ResponseFrame};
use super::{Api, errors, json, truncated};
pub(super) use draft::GENERATED_ID;
use draft::{Draft, Sink};
use repeat::Repeat;

/// How one API's objects become an answer.
trait AnswerReader: Send {
    /// Takes one object: an event of a stream, or the whole answer.
    fn read(&mut self, object: Value, sink: &mut Sink<'_>) -> Result<(), ModelError>;

    /// Takes the mark `[DONE]`, which some APIs send last.
    fn done(&mut self) {}

    /// Returns the key whose value was added as text, where the last object did nothing but that. Another object
    /// that differs in this value alone then adds just its text.
    fn only_text(&self) -> Option<&'static str> {
        None
    }

    /// Adds text as the last object did.
    fn add_text(&mut self, _: &str, _: &mut Sink<'_>) -> Result<(), ModelError> {
        Ok(())
    }

    /// Returns whether nothing can follow any more.
    fn is_complete(&self) -> bool;

    /// Returns whether the provider has named the reason why the answer ends. Usage, or a mark, may still follow.
    fn has_stop_reason(&self) -> bool {
        self.is_complete()
    }

    /// Returns the usage known so far.
    fn usage(&self) -> Option<Usage>;

    /// Returns the answer, or nothing where the provider has not ended it.
    fn finish(self: Box<Self>, origin: &Origin) -> Option<Draft>;
}

/// Reads the body of a response as it arrives.
pub(crate) struct Decoder {
    frames: Frames,
    reader: Box<dyn AnswerReader>,
    repeat: Repeat,
    origin: Origin,
    kept: usize,
    failure: Option<ModelError>,
}

impl Decoder {
    /// A decoder of one response of the model that `origin` names.
    pub(crate) fn new(api: Api, origin: Origin) -> Self {
        let reader: Box<dyn AnswerReader> = match api {
            Api::Anthropic => Box::new(anthropic::Messages::default()),
            Api::OpenAiChat => Box::new(openai_chat::Completion::default()),
            Api::OpenAiResponses => Box::new(openai_responses::ResponsesAnswer::default()),
            Api::Gemini => Box::new(gemini::Generation::default()),
            Api::Ollama => Box::new(ollama::OllamaAnswer::default()),
        };
        let frames = if api == Api::Ollama { Frames::lines() } else { Frames::detected() };
        Self { frames, reader, repeat: Repeat::default(), origin, kept: 0, failure: None }
    }

    /// Takes more bytes and adds what they complete to `parts`, also where they end in an error.
    pub(crate) fn push(&mut self, bytes: &[u8], parts: &mut Vec<ModelPart>) -> Result<(), ModelError> {
        if let Some(failure) = &self.failure {
            return Err(failure.clone());
        }
        if self.is_complete() {
            return Ok(());
        }
        let Self { frames, reader, repeat, kept, .. } = self;
        let mut each =
            |frame: ResponseFrame<'_>| take(&mut **reader, repeat, frame, &mut Sink::new(parts, kept));
        let result = frames.push(bytes, &mut each);
        result.map_err(|error| self.fail(error))
    }

    /// Returns whether the answer is complete, so that the rest of the body need not be awaited.
    pub(crate) fn is_complete(&self) -> bool {
        self.reader.is_complete()
    }

    /// Returns whether the reason why the answer ends has arrived, so that little can follow.
    pub(crate) fn has_stop_reason(&self) -> bool {
        self.reader.has_stop_reason()
    }

    /// Returns the answer of a body that never ends. The stop reason alone does not prove that the arguments of a
    /// call are complete: hosts send it early.
    pub(crate) fn settle(self, parts: &mut Vec<ModelPart>) -> Result<ModelResponse, ModelError> {
        let response = self.finish(parts)?;
        if response.message.tool_calls().all(|call| is_complete_json(&call.arguments)) {
            return Ok(response);
        }
        Err(truncated("the stream went silent in the middle of a call")
            .charged_at_least(Some(response.usage)))
    }

    /// Says that the body has ended: returns the whole answer, or that it was cut.
    pub(crate) fn finish(mut self, parts: &mut Vec<ModelPart>) -> Result<ModelResponse, ModelError> {
        if let Some(failure) = self.failure {
            return Err(failure);
        }
        if !self.is_complete() {
            let Self { frames, reader, repeat, kept, .. } = &mut self;
            let mut each =
                |frame: ResponseFrame<'_>| take(&mut **reader, repeat, frame, &mut Sink::new(parts, kept));
            frames.finish(&mut each).map_err(|error| self.fail(error))?;
        }
        let usage = self.reader.usage();
        match self.reader.finish(&self.origin) {
            Some(draft) => Ok(draft.into_response(self.origin)),
            None => Err(truncated("the answer ended before it was complete").charged_at_least(usage)),
        }
    }

    fn fail(&mut self, error: ModelError) -> ModelError {
        let usage = self.reader.usage();
        // A provider that reports an error instead of an answer has charged nothing. One that reports it after the
        // answer had begun may have charged for what there was of it.
        let cost = match error.cost {
            AttemptCost::Nothing if usage.is_none() && self.kept == 0 => AttemptCost::Nothing,
            AttemptCost::Known(usage) => AttemptCost::Known(usage),
            AttemptCost::Nothing | AttemptCost::Unknown(_) => AttemptCost::Unknown(usage.map(Box::new)),
        };
        self.failure.insert(ModelError { cost, ..error }).clone()
    }
}

fn take(
    reader: &mut dyn AnswerReader,
    repeat: &mut Repeat,
    frame: ResponseFrame<'_>,
    sink: &mut Sink<'_>,
) -> Result<(), ModelError> {
    if reader.is_complete() {
        return Ok(());
    }
    match frame {
        ResponseFrame::Done => reader.done(),
        ResponseFrame::Error(bytes) => return Err(errors::in_stream(bytes).not_charged()),
        ResponseFrame::Data(bytes) => return take_data(reader, repeat, bytes, sink),
    }
    Ok(())
}

fn take_data(
    reader: &mut dyn AnswerReader,
    repeat: &mut Repeat,
    bytes: &[u8],
    sink: &mut Sink<'_>,
) -> Result<(), ModelError> {
    if let Some(text) = repeat.text_in(bytes) {
        return reader.add_text(&text, sink);
    }
    read(reader, json::parse(bytes)?, sink)?;
    match (reader.only_text(), sink.last_text()) {
        (Some(key), Some(text)) => repeat.learn(bytes, key, text),
        _ => repeat.forget(),
    }
    Ok(())
}

/// Reads an object, or each object of an array: so Gemini streams where no events are asked for.
fn read(reader: &mut dyn AnswerReader, value: Value, sink: &mut Sink<'_>) -> Result<(), ModelError> {
    match value {
        Value::Array(values) => values.into_iter().try_for_each(|value| read_object(reader, value, sink)),
        value => read_object(reader, value, sink),
    }
}

fn read_object(reader: &mut dyn AnswerReader, object: Value, sink: &mut Sink<'_>) -> Result<(), ModelError> {
    if json::has_error(&object) {
        return Err(errors::in_answer(&object).not_charged());
    }
    reader.read(object, sink)
}

fn is_complete_json(arguments: &str) -> bool {
    arguments.trim().is_empty() || serde_json::from_str::<serde::de::IgnoredAny>(arguments).is_ok()
}
