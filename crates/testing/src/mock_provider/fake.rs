//! The script without sockets.

use std::sync::Arc;

use bytes::Bytes;
use futures::future::BoxFuture;
use futures::{FutureExt, StreamExt, stream};
use http::{HeaderName, Request, Response};
use jiff::Timestamp;
use llm_do_core::{ModelError, ModelErrorKind};
use llm_do_models::{ByteStream, Chunks, Transport};
use tokio::time::Instant;

use super::response::{Fault, MockResponse};
use super::steps::{Step, steps};
use super::{MockRequest, Script};

/// A network without sockets: each request gets the response that is due, with the errors of the real transport.
///
/// Clones share the script. Every attempt counts as a request, also one that would be refused before it is sent.
///
/// ```
/// # use llm_do_testing::{FakeTransport, Fault, MockResponse};
/// let transport = FakeTransport::new([
///     MockResponse::fault(Fault::HangBeforeHeaders),
///     MockResponse::status(429).header("retry-after", "2"),
///     MockResponse::events("data: {}\n\n").cut_after(5),
///     MockResponse::events("data: {}\n\n"),
/// ]);
/// assert_eq!(transport.requests().len(), 0);
/// ```
#[derive(Clone)]
pub struct FakeTransport(Arc<Script>);

impl FakeTransport {
    /// A network that answers the n-th request with the n-th response; the last one is repeated.
    pub fn new(responses: impl IntoIterator<Item = MockResponse>) -> Self {
        Self(Script::new(responses))
    }

    /// Returns the requests so far.
    pub fn requests(&self) -> Vec<MockRequest> {
        self.0.requests()
    }

    async fn exchange(&self, request: Request<Chunks>) -> Result<Response<ByteStream>, ModelError> {
        let host = request.uri().authority().map(ToString::to_string).unwrap_or_default();
        let response = self.0.take();
        self.0.note(noted(request));
        if let Some(fault) = response.fault {
            return Err(failure(fault, &host).await);
        }
        let mut answer = Response::builder().status(response.status);
        for (name, value) in response.headers_at(Timestamp::now()) {
            answer = answer.header(HeaderName::try_from(name).expect("a header must have a name"), value);
        }
        Ok(answer.body(body(response, host)).expect("the response of a script must be valid"))
    }
}

impl Transport for FakeTransport {
    fn send(&self, request: Request<Chunks>) -> BoxFuture<'_, Result<Response<ByteStream>, ModelError>> {
        self.exchange(request).boxed()
    }
}

fn noted(request: Request<Chunks>) -> MockRequest {
    let (head, body) = request.into_parts();
    MockRequest {
        method: head.method.to_string(),
        path: head.uri.path_and_query().map_or("/", |path| path.as_str()).to_owned(),
        headers: head.headers,
        body: body.to_vec().into(),
        at: Instant::now(),
    }
}

async fn failure(fault: Fault, host: &str) -> ModelError {
    let name = host.split(':').next().unwrap_or_default();
    let unsent = |kind, message: String| ModelError::new(kind, message).not_charged();
    match fault {
        // Only a server on this machine is certain not to be there the next moment.
        Fault::RefuseConnection if !matches!(name, "127.0.0.1" | "localhost") => {
            unsent(ModelErrorKind::Network, format!("connection refused by {host}: nothing listens there"))
        }
        Fault::RefuseConnection => {
            let error = unsent(ModelErrorKind::Network, format!("nothing listens at {host}"));
            ModelError { is_final: true, ..error }
        }
        Fault::ResetBeforeHeaders => ModelError::new(
            ModelErrorKind::Network,
            format!("{host} reset the connection before it answered"),
        ),
        Fault::HangBeforeHeaders => std::future::pending().await,
        Fault::DnsFailure => {
            let message =
                format!("could not resolve host {name}; are you offline, or is the name misspelled?");
            unsent(ModelErrorKind::Network, message)
        }
        Fault::TlsFailure => unsent(
            ModelErrorKind::Invalid,
            format!("certificate of {name} is not trusted: its issuer is unknown"),
        ),
    }
}

fn body(response: &MockResponse, host: String) -> ByteStream {
    let pieces = stream::iter(steps(response)).filter_map(move |step| {
        let host = host.clone();
        async move { done(step, &host).await }
    });
    pieces.boxed()
}

async fn done(step: Step, host: &str) -> Option<Result<Bytes, ModelError>> {
    match step {
        Step::Send(piece) => Some(Ok(piece)),
        Step::Wait(time) => {
            tokio::time::sleep(time).await;
            None
        }
        Step::Cut => Some(Err(ModelError::new(
            ModelErrorKind::Network,
            format!("{host} closed the connection in the middle of the answer"),
        ))),
    }
}
