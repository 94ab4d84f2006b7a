//! How requests reach providers: one trait, so that a recording or a test can replace the network.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures::future::BoxFuture;
use futures::stream::BoxStream;
use http_body::{Body, Frame, SizeHint};
use llm_do_core::ModelError;

/// Sends requests. It knows nothing of models: no protocol, no retries, no limits of time but that of connecting.
///
/// An error says by its `usage` whether the request may have been worked on: `Some` with zeroes where the
/// provider cannot have seen it, `None` where nobody knows.
pub trait Transport: Send + Sync {
    /// Sends a request and waits for the head of the response.
    fn send(
        &self,
        request: http::Request<Chunks>,
    ) -> BoxFuture<'_, Result<http::Response<ByteStream>, ModelError>>;

    /// Returns whether requests reach providers, which want keys. A recording that is replayed needs none.
    fn needs_keys(&self) -> bool {
        true
    }
}

/// The body of a response as it arrives. It ends with an error where the connection breaks.
pub type ByteStream = BoxStream<'static, Result<Bytes, ModelError>>;

/// The body of a request: pieces that are shared with earlier requests, never copied to be sent.
#[derive(Debug, Clone, Default)]
pub struct Chunks {
    pieces: VecDeque<Bytes>,
    length: u64,
}

impl Chunks {
    /// Adds a piece at the end.
    pub fn push(&mut self, piece: impl Into<Bytes>) {
        let piece = piece.into();
        if !piece.is_empty() {
            self.length += piece.len() as u64;
            self.pieces.push_back(piece);
        }
    }

    /// Returns how many bytes there are.
    pub fn len(&self) -> u64 {
        self.length
    }

    /// Returns whether there are none.
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// Returns the pieces in order.
    pub fn pieces(&self) -> impl Iterator<Item = &Bytes> {
        self.pieces.iter()
    }

    /// Returns all bytes in one piece.
    pub fn to_vec(&self) -> Vec<u8> {
        self.pieces.iter().flat_map(|piece| piece.iter().copied()).collect()
    }
}

impl Body for Chunks {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let piece = self.pieces.pop_front();
        self.length -= piece.as_ref().map_or(0, |piece| piece.len() as u64);
        Poll::Ready(piece.map(|piece| Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.pieces.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.length)
    }
}
