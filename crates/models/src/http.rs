//! The network: requests over HTTP/1.1, with kept connections, TLS, proxies and errors that a person can act on.
//!
//! [`HttpTransport`] adds as little as it can to a bare client: a request is sent as it is built, and a response
//! is handed on piece by piece. It follows no redirect, since a key must not travel to an address that somebody
//! else chose, and it repeats nothing but requests that a closed idle connection never took.

mod connection;
mod connector;
mod failure;
mod packed;
mod proxies;
mod settings;
#[cfg(test)]
mod tests;
mod tls;

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use futures::Stream;
use futures::future::BoxFuture;
use http::header::PROXY_AUTHORIZATION;
use http::uri::Authority;
use http::{Request, Response, Uri};
use http_body::Body;
use hyper::body::Incoming;
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use llm_do_core::{ModelError, ModelErrorKind};

use crate::transport::{ByteStream, Chunks, Transport};
use connector::Connector;
pub(crate) use failure::{is_absent, is_without_tls};
use packed::Packed;
use proxies::Proxies;
pub use settings::HttpSettings;

/// The transport of real requests.
///
/// A clone shares the connections. It must be used inside one Tokio runtime with I/O and time.
#[derive(Clone)]
pub struct HttpTransport {
    client: Client<Connector, Packed>,
    proxies: Proxies,
}

impl HttpTransport {
    /// Makes a transport. It opens nothing and reads no file: certificates are read for the first `https` address.
    pub fn new(settings: HttpSettings) -> Result<Self, ModelError> {
        let proxies = Proxies::new(&settings)?;
        let connector = Connector::new(proxies.clone(), &settings);
        let client = Client::builder(TokioExecutor::new()).http1_writev(true).build(connector);
        Ok(Self { client, proxies })
    }

    async fn exchange(&self, mut request: Request<Chunks>) -> Result<Response<ByteStream>, ModelError> {
        let host = host_of(request.uri())?;
        if let Some(authorization) = self.proxies.authorization(request.uri()) {
            request.headers_mut().insert(PROXY_AUTHORIZATION, authorization);
        }
        match self.client.request(request.map(Packed::new)).await {
            Ok(response) => Ok(response.map(|body| -> ByteStream { Box::pin(Pieces { body, host }) })),
            Err(error) => Err(failure::request_error(&error, &host)),
        }
    }
}

impl Transport for HttpTransport {
    fn send(&self, request: Request<Chunks>) -> BoxFuture<'_, Result<Response<ByteStream>, ModelError>> {
        Box::pin(self.exchange(request))
    }
}

/// Returns the host to be named in errors, of an address that can be asked.
fn host_of(address: &Uri) -> Result<Authority, ModelError> {
    let is_http = matches!(address.scheme_str(), Some("http" | "https"));
    match address.authority() {
        Some(host) if is_http => Ok(host.clone()),
        _ => Err(ModelError::new(
            ModelErrorKind::Invalid,
            "the address of the provider must begin with `http://` or `https://` and name a host",
        )),
    }
}

/// The body of a response, piece by piece.
struct Pieces {
    body: Incoming,
    host: Authority,
}

impl Stream for Pieces {
    type Item = Result<Bytes, ModelError>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        loop {
            return Poll::Ready(match ready!(Pin::new(&mut self.body).poll_frame(context)) {
                // A frame without data holds trailers, which no provider's protocol uses.
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(piece) => Some(Ok(piece)),
                    Err(_) => continue,
                },
                Some(Err(error)) => Some(Err(failure::body_error(&error, &self.host))),
                None => None,
            });
        }
    }
}
