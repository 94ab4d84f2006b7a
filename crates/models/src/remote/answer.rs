//! An answer as it arrives: the body is decoded, keys are masked, and the end is found even if the stream stays open.

use std::collections::VecDeque;
use std::time::Duration;

use bytes::Bytes;
use futures::{FutureExt, StreamExt, stream};
use llm_do_core::{ModelError, ModelPart};
use tokio::time::{Instant, timeout, timeout_at};

use super::limits::AttemptLimits;
use crate::mask::{AnswerMask, Mask};
use crate::transport::ByteStream;
use crate::wire::Decoder;

/// How long the end of a complete answer is awaited, so that its connection can be used again.
const DRAIN_LIMIT: Duration = Duration::from_millis(50);

/// How long more is awaited after the stop reason, if nothing of the answer arrives. Usage follows at once, and some
/// servers never close the stream.
pub(super) const SETTLE_LIMIT: Duration = Duration::from_secs(5);

/// An answer as it arrives.
pub(super) struct ArrivingAnswer {
    /// Gone once the answer has ended.
    decoder: Option<Decoder>,
    body: ByteStream,
    parts: VecDeque<ModelPart>,
    read: Vec<ModelPart>,
    mask: AnswerMask,
    /// Why the answer broke off.
    error: Option<ModelError>,
    limits: AttemptLimits,
    /// When an answer whose stop reason has arrived counts as complete.
    settle_at: Option<Instant>,
    host: String,
    is_stream: bool,
}

impl ArrivingAnswer {
    pub(super) fn new(
        decoder: Decoder,
        body: ByteStream,
        mask: &Mask,
        limits: AttemptLimits,
        host: String,
        is_stream: bool,
    ) -> Self {
        Self {
            decoder: Some(decoder),
            body,
            parts: VecDeque::new(),
            read: Vec::new(),
            mask: AnswerMask::new(mask),
            error: None,
            limits,
            settle_at: None,
            host,
            is_stream,
        }
    }

    /// Puts notices about the request before the answer.
    pub(super) fn after(self, notices: VecDeque<ModelPart>) -> Self {
        Self { parts: notices, ..self }
    }

    /// Returns the next part, or the error that ended the answer.
    pub(super) async fn next(&mut self) -> Option<Result<ModelPart, ModelError>> {
        loop {
            if let Some(part) = self.parts.pop_front() {
                return Some(Ok(part));
            }
            if let Some(error) = self.error.take() {
                return Some(Err(error));
            }
            let decoder = self.decoder.as_mut()?;
            let outcome =
                if decoder.is_complete() { self.finish(None).await } else { self.read_more().await };
            if let Err(error) = outcome {
                self.decoder = None;
                // What was held back came before the error.
                self.mask.finish(&mut self.parts);
                self.error = Some(self.mask.error(error));
            }
        }
    }

    async fn read_more(&mut self) -> Result<(), ModelError> {
        if self.settle_at.is_some_and(|end| end <= Instant::now()) {
            return self.settle();
        }
        // What is there already needs no clock.
        let arrived = match (self.body.next().now_or_never(), self.settle_at) {
            (Some(arrived), _) => Ok(arrived),
            (None, Some(end)) => match timeout_at(end, self.body.next()).await {
                Ok(arrived) => Ok(arrived),
                Err(_) => return self.settle(),
            },
            (None, None) => self.limits.within(self.is_stream, &self.host, self.body.next()).await,
        };
        match arrived {
            Ok(Some(Ok(bytes))) => self.take(&bytes),
            Ok(Some(Err(error))) => self.finish(Some(error)).await,
            Ok(None) => self.finish(None).await,
            Err(error) => Err(self.with_reported(error)),
        }
    }

    fn take(&mut self, bytes: &Bytes) -> Result<(), ModelError> {
        let Some(decoder) = &mut self.decoder else { return Ok(()) };
        let result = decoder.push(bytes, &mut self.read);
        let has_content = !self.read.is_empty();
        self.read.drain(..).for_each(|part| self.mask.push(part, &mut self.parts));
        // What keeps a connection alive brings nothing and gains no time.
        if decoder.has_stop_reason() && (has_content || self.settle_at.is_none()) {
            self.settle_at = Some((Instant::now() + SETTLE_LIMIT).min(self.limits.end));
        }
        result
    }

    /// Ends an answer whose stop reason has arrived and whose stream stays open.
    fn settle(&mut self) -> Result<(), ModelError> {
        let Some(decoder) = self.decoder.take() else { return Ok(()) };
        let response = decoder.settle(&mut self.read)?;
        self.body = stream::empty().boxed();
        self.read.push(ModelPart::Finished(response));
        self.read.drain(..).for_each(|part| self.mask.push(part, &mut self.parts));
        Ok(())
    }

    /// Ends the answer. A connection that broke after the answer was complete has done no harm.
    async fn finish(&mut self, broken: Option<ModelError>) -> Result<(), ModelError> {
        let Some(decoder) = self.decoder.take() else { return Ok(()) };
        let is_early = broken.is_none() && decoder.is_complete();
        let finished = decoder.finish(&mut self.read);
        if is_early {
            drain(std::mem::replace(&mut self.body, stream::empty().boxed())).await;
        }
        let response = finished.map_err(|error| match broken {
            Some(broken) => ModelError { message: broken.message, ..error },
            None => error,
        })?;
        self.read.push(ModelPart::Finished(response));
        self.read.drain(..).for_each(|part| self.mask.push(part, &mut self.parts));
        Ok(())
    }

    /// Adds what the provider reported before an attempt was given up.
    fn with_reported(&mut self, error: ModelError) -> ModelError {
        let cut = self.decoder.take().and_then(|decoder| decoder.finish(&mut self.read).err());
        ModelError { cost: cut.map(|cut| cut.cost).unwrap_or_default(), ..error }
    }
}

/// Reads the end of a body whose answer is complete: only then can its connection serve the next request. It is not
/// left to a task, as a recording of the body must be written before the run can end.
async fn drain(mut body: ByteStream) {
    if matches!(body.next().now_or_never(), Some(None)) {
        return;
    }
    // Whoever keeps the body open for longer gets another connection.
    let _ = timeout(DRAIN_LIMIT, async { while let Some(Ok(_)) = body.next().await {} }).await;
}
