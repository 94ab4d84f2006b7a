//! Cassettes over a provider that answers what it is told.

mod files;
mod recorded;
mod replayed;

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;
use futures::future::BoxFuture;
use futures::{FutureExt, StreamExt, TryStreamExt, stream};
use http::{HeaderValue, Request, Response};
use llm_do_core::{ModelError, ModelErrorKind};
use parking_lot::Mutex;
use serde_json::{Value, json};

use super::{Cassette, CassetteMode};
use crate::transport::{ByteStream, Chunks, Transport};

const CANARY: &str = "sk-canary-0123456789/abc+def";

/// A provider that gives these answers, one after another.
struct Provider(Mutex<VecDeque<Answer>>);

#[derive(Clone)]
struct Answer {
    status: u16,
    headers: Vec<(&'static str, &'static str)>,
    body: Vec<Result<Bytes, ModelError>>,
    refusal: Option<ModelError>,
}

fn provider(answers: impl IntoIterator<Item = Answer>) -> Arc<dyn Transport> {
    Arc::new(Provider(Mutex::new(answers.into_iter().collect())))
}

/// A transport that must not be used.
fn nobody() -> Arc<dyn Transport> {
    provider([])
}

fn says(pieces: &[&[u8]]) -> Answer {
    let body = pieces.iter().map(|piece| Ok(Bytes::copy_from_slice(piece))).collect();
    Answer { status: 200, headers: vec![("content-type", "text/event-stream")], body, refusal: None }
}

fn refuses(kind: ModelErrorKind, message: &str) -> Answer {
    Answer { refusal: Some(ModelError::new(kind, message).not_charged()), ..says(&[]) }
}

impl Transport for Provider {
    fn send(&self, _: Request<Chunks>) -> BoxFuture<'_, Result<Response<ByteStream>, ModelError>> {
        let answer = self.0.lock().pop_front().expect("the provider has no answer left");
        let given = match answer.refusal {
            Some(error) => Err(error),
            None => {
                let mut response = Response::builder().status(answer.status);
                for (name, value) in answer.headers {
                    response = response.header(name, value);
                }
                Ok(response.body(stream::iter(answer.body).boxed()).unwrap())
            }
        };
        std::future::ready(given).boxed()
    }
}

fn request(path: &str, body: &Value) -> Request<Chunks> {
    let mut chunks = Chunks::default();
    chunks.push(body.to_string());
    let mut bearer = HeaderValue::try_from(format!("Bearer {CANARY}")).unwrap();
    bearer.set_sensitive(true);
    Request::post(format!("https://user:sk-canary-0123456789%2Fabc%2Bdef@api.example:8443{path}"))
        .header("content-type", "application/json")
        .header("anthropic-version", "2023-06-01")
        .header("x-api-key", CANARY)
        .header("api-key", CANARY)
        .header("x-goog-api-key", CANARY)
        .header("authorization", bearer)
        .header("cookie", format!("session={CANARY}"))
        .header("x-request-id", "not kept")
        .body(chunks)
        .unwrap()
}

fn prompt(text: &str) -> Request<Chunks> {
    request("/v1/messages", &json!({"model": "m", "messages": [{"role": "user", "content": text}]}))
}

/// The pieces of an answer as text, and the error with which they end.
async fn pieces(response: Response<ByteStream>) -> (Vec<String>, Option<ModelError>) {
    let mut body = response.into_body();
    let mut pieces = Vec::new();
    loop {
        match body.try_next().await {
            Ok(Some(piece)) => pieces.push(String::from_utf8_lossy(&piece).into_owned()),
            Ok(None) => return (pieces, None),
            Err(error) => return (pieces, Some(error)),
        }
    }
}

async fn text(transport: &Arc<dyn Transport>, request: Request<Chunks>) -> String {
    pieces(transport.send(request).await.expect("the request must be answered")).await.0.concat()
}

async fn fails(transport: &Arc<dyn Transport>, request: Request<Chunks>) -> ModelError {
    transport.send(request).await.err().expect("the request must fail")
}

/// A place for a cassette.
struct Place {
    path: PathBuf,
    _directory: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        Self { path: directory.path().join("talk.cassette"), _directory: directory }
    }

    fn open(&self, mode: CassetteMode) -> Cassette {
        Cassette::open(&self.path, mode).unwrap_or_else(|error| panic!("{error}"))
    }

    fn replayed(&self) -> Cassette {
        self.open(CassetteMode::Replay { strict: true })
    }

    fn content(&self) -> String {
        std::fs::read_to_string(&self.path).unwrap()
    }

    /// Records the answers to prompts.
    async fn record(&self, talk: &[(&str, Answer)]) {
        let answers = talk.iter().map(|(_, answer)| answer.clone());
        let transport = self.open(CassetteMode::Record).transport(provider(answers));
        for (text, _) in talk {
            if let Ok(response) = transport.send(prompt(text)).await {
                pieces(response).await;
            }
        }
    }

    fn message_of(&self, error: &ModelError) -> String {
        error.message.replace(self.path.to_str().unwrap(), "FILE")
    }
}
