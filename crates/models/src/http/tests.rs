//! The transport against real sockets of this machine.

mod errors;
mod exchanges;
mod proxied;
mod secured;
mod server;

use bytes::Bytes;
use futures::TryStreamExt;
use llm_do_core::{AttemptCost, ModelError};

use super::{HttpSettings, HttpTransport};
use crate::transport::{Chunks, Transport};

/// What came back: the status and the whole body.
type Answer = (u16, String);

fn transport() -> HttpTransport {
    HttpTransport::new(HttpSettings::default()).unwrap()
}

async fn post(transport: &HttpTransport, address: &str, body: &str) -> Result<Answer, ModelError> {
    let mut chunks = Chunks::default();
    chunks.push(body.to_owned());
    let request = http::Request::post(address).header("x-api-key", "canary-key").body(chunks).unwrap();
    let response = transport.send(request).await?;
    let status = response.status().as_u16();
    let pieces: Vec<Bytes> = response.into_body().try_collect().await?;
    Ok((status, String::from_utf8(pieces.concat()).unwrap()))
}

async fn fails(transport: &HttpTransport, address: &str) -> ModelError {
    post(transport, address, "{}").await.expect_err("the request must fail")
}
