//! Models that are asked over HTTP: encode, send, decode.
//!
//! One request is one attempt. Trying again, and what an attempt may cost, belong to the runtime; here are the
//! limits of one attempt: how long a provider may be silent, and how long an answer may take.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::future::BoxFuture;
use futures::{FutureExt, StreamExt, stream};
use http::header::{ACCEPT, CONTENT_TYPE, USER_AGENT};
use http::{HeaderMap, HeaderValue, Request, Response, Uri};
use jiff::Timestamp;
use llm_do_core::{
    Model, ModelError, ModelErrorKind, ModelPart, ModelProfile, ModelRequest, ModelSession, ModelSettings,
    ModelStream, Name, Origin, Usage,
};
use tokio::time::{Instant, timeout, timeout_at};

use crate::mask::Mask;
use crate::provider::{Endpoint, headers_of};
use crate::transport::{ByteStream, Chunks, Transport};
use crate::wire::encode::{Encoded, Encoder, Target};
use crate::wire::{Decoder, errors};

/// How long a provider may be silent where the agent does not say.
pub(crate) const IDLE_LIMIT: Duration = Duration::from_mins(5);

/// How long an answer may take where the agent does not say.
pub(crate) const TOTAL_LIMIT: Duration = Duration::from_mins(30);

/// The most bytes of the body of a failed response that are read.
const MOST_ERROR_BYTES: usize = 256 * 1024;

/// How long the end of a complete answer is awaited, so that its connection can be used again.
const DRAIN_LIMIT: Duration = Duration::from_secs(2);

/// A model at the end of a network.
pub(crate) struct RemoteModel(Arc<Remote>);

struct Remote {
    name: Name,
    model: String,
    profile: ModelProfile,
    endpoint: Endpoint,
    headers: HeaderMap,
    mask: Mask,
    transport: Arc<dyn Transport>,
}

impl RemoteModel {
    /// A model of a provider.
    pub(crate) fn new(
        name: Name,
        model: &str,
        profile: ModelProfile,
        endpoint: Endpoint,
        transport: Arc<dyn Transport>,
    ) -> Self {
        let mut headers = endpoint.headers.clone();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(USER_AGENT, HeaderValue::from_static(concat!("llm-do/", env!("CARGO_PKG_VERSION"))));
        let mask = Mask::new(endpoint.secrets.iter().cloned());
        Self(Arc::new(Remote { name, model: model.to_owned(), profile, endpoint, headers, mask, transport }))
    }
}

impl Model for RemoteModel {
    fn name(&self) -> &Name {
        &self.0.name
    }

    fn profile(&self) -> ModelProfile {
        self.0.profile.clone()
    }

    fn open(&self) -> Box<dyn ModelSession> {
        let remote = self.0.clone();
        let target = Target {
            api: remote.endpoint.api,
            provider: remote.endpoint.provider.clone(),
            model: remote.model.clone(),
            profile: remote.profile.clone(),
        };
        Box::new(Session { encoder: Encoder::new(target), remote, place: None })
    }
}

/// One agent call's side of a remote model.
struct Session {
    remote: Arc<Remote>,
    encoder: Encoder,
    /// The path of the previous request and its address.
    place: Option<(String, Uri)>,
}

impl ModelSession for Session {
    fn request<'a>(
        &'a mut self,
        request: ModelRequest<'a>,
    ) -> BoxFuture<'a, Result<ModelStream<'a>, ModelError>> {
        Box::pin(async move {
            let encoded = self.encoder.encode(&request)?;
            let limits = Limits::of(request.settings);
            let address = self.address(&encoded.path)?;
            self.remote.ask(address, encoded, request.settings, limits).await
        })
    }
}

impl Session {
    /// Returns the address of a path; it is nearly always that of the previous request.
    fn address(&mut self, path: &str) -> Result<Uri, ModelError> {
        if let Some((known, address)) = &self.place
            && known == path
        {
            return Ok(address.clone());
        }
        let written = format!("{}{path}", self.remote.endpoint.base_url);
        let address: Uri = written.parse().map_err(|_| {
            let words = format!("`{}` is no name that an address can hold", self.remote.model);
            ModelError::new(ModelErrorKind::Invalid, words)
        })?;
        self.place = Some((path.to_owned(), address.clone()));
        Ok(address)
    }
}

/// How long one attempt may take.
#[derive(Clone, Copy)]
struct Limits {
    idle: Duration,
    total: Duration,
    end: Instant,
}

impl Limits {
    fn of(settings: &ModelSettings) -> Self {
        let total = settings.timeout.map_or(TOTAL_LIMIT, Duration::from_secs);
        let idle = settings.idle_timeout.map_or(IDLE_LIMIT, Duration::from_secs);
        Self { idle, total, end: Instant::now() + total }
    }

    /// Waits for something that may not take longer than the provider may be silent.
    async fn within<T>(
        &self,
        is_stream: bool,
        host: &str,
        work: impl Future<Output = T>,
    ) -> Result<T, ModelError> {
        // An answer that is not streamed is silent until it is complete.
        let silence = if is_stream { Instant::now() + self.idle } else { self.end };
        match timeout_at(silence.min(self.end), work).await {
            Ok(done) => Ok(done),
            Err(_) if silence < self.end => Err(self.silent(host)),
            Err(_) => Err(self.overdue(host)),
        }
    }

    fn silent(&self, host: &str) -> ModelError {
        let words = format!(
            "nothing came from {host} for {} s; `model_settings.idle_timeout` sets the limit",
            self.idle.as_secs()
        );
        ModelError::new(ModelErrorKind::Network, words)
    }

    fn overdue(&self, host: &str) -> ModelError {
        let words = format!(
            "the answer of {host} took longer than {} s; `model_settings.timeout` sets the limit",
            self.total.as_secs()
        );
        ModelError::new(ModelErrorKind::TimedOut, words)
    }
}

impl Remote {
    async fn ask<'a>(
        self: &Arc<Self>,
        address: Uri,
        encoded: Encoded,
        settings: &ModelSettings,
        limits: Limits,
    ) -> Result<ModelStream<'a>, ModelError> {
        let is_stream = encoded.is_stream;
        let host = address.host().unwrap_or_default().to_owned();
        let place = without_user(&address);
        let notices = encoded.notices.iter().map(|notice| ModelPart::Notice(notice.clone())).collect();
        let request = self.http_request(address, encoded, settings)?;
        let sent = limits.within(is_stream, &host, self.transport.send(request)).await;
        let response = sent.and_then(|sent| sent).map_err(|error| self.mask.error(error))?;
        if !response.status().is_success() {
            let error = failure(response, &host, limits).await;
            return Err(self.mask.error(self.placed(error, &place)));
        }
        check_content(&response, &host).map_err(|error| self.mask.error(error))?;
        // Boxed: a stream hands its state on with every part.
        let answer = Box::new(Answer {
            remote: self.clone(),
            decoder: Some(Decoder::new(self.endpoint.api, self.origin())),
            body: response.into_body(),
            parts: notices,
            read: Vec::new(),
            limits,
            host,
            is_stream,
        });
        Ok(stream::unfold(answer, |mut answer| async move { answer.next().await.map(|part| (part, answer)) })
            .boxed())
    }

    /// Says what was asked for where, since a wrong address looks like a model that is not there.
    fn placed(&self, error: ModelError, place: &str) -> ModelError {
        if error.kind != ModelErrorKind::NotFound {
            return error;
        }
        let message = format!("{} (`{}` was asked for at {place})", error.message, self.model);
        ModelError { message, ..error }
    }

    fn http_request(
        &self,
        address: Uri,
        encoded: Encoded,
        settings: &ModelSettings,
    ) -> Result<Request<Chunks>, ModelError> {
        let mut request = Request::new(encoded.body);
        *request.method_mut() = http::Method::POST;
        *request.uri_mut() = address;
        *request.headers_mut() = self.headers.clone();
        let accepted = if encoded.is_stream { "text/event-stream" } else { "application/json" };
        request.headers_mut().insert(ACCEPT, HeaderValue::from_static(accepted));
        for (name, value) in encoded.headers {
            let value = HeaderValue::from_str(&value).map_err(|_| no_header(name))?;
            request.headers_mut().insert(name, value);
        }
        if !settings.extra_headers.is_empty() {
            let extra = headers_of(&settings.extra_headers)
                .map_err(|words| ModelError::new(ModelErrorKind::Invalid, words))?;
            request.headers_mut().extend(extra);
        }
        Ok(request)
    }

    fn origin(&self) -> Origin {
        Origin {
            provider: self.endpoint.provider.clone(),
            model: self.model.clone(),
            data: serde_json::Value::Null,
        }
    }
}

/// An address as it may be shown: without a user, whose password may stand there, and without a query.
fn without_user(address: &Uri) -> String {
    let port = address.port_u16().map(|port| format!(":{port}")).unwrap_or_default();
    let (scheme, host) = (address.scheme_str().unwrap_or_default(), address.host().unwrap_or_default());
    format!("{scheme}://{host}{port}{}", address.path())
}

fn no_header(name: &str) -> ModelError {
    ModelError::new(ModelErrorKind::Invalid, format!("the header `{name}` cannot be sent"))
}

/// Reads a failed response.
async fn failure(response: Response<ByteStream>, host: &str, limits: Limits) -> ModelError {
    let (head, mut body) = response.into_parts();
    let mut text = Vec::new();
    // Whatever part of it comes says more than that the rest did not.
    while text.len() < MOST_ERROR_BYTES {
        match limits.within(true, host, body.next()).await {
            Ok(Some(Ok(bytes))) => text.extend_from_slice(&bytes),
            _ => break,
        }
    }
    let header = |name: &str| head.headers.get(name).and_then(|value| value.to_str().ok());
    let error = errors::of_response(head.status.as_u16(), &header, &text, Timestamp::now());
    // What a provider refuses it does not charge for.
    error.with_usage(Usage { requests: 1, ..Usage::default() })
}

/// Refuses a page of a proxy or a wrong address.
fn check_content(response: &Response<ByteStream>, host: &str) -> Result<(), ModelError> {
    let kind = response.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    if !kind.trim_start().to_ascii_lowercase().starts_with("text/html") {
        return Ok(());
    }
    let words = format!(
        "{host} sent a page (text/html) instead of an answer: is the address right, or does a proxy ask for a login?"
    );
    Err(ModelError::new(ModelErrorKind::Invalid, words))
}

/// An answer as it arrives.
struct Answer {
    remote: Arc<Remote>,
    /// Gone once the answer has ended.
    decoder: Option<Decoder>,
    body: ByteStream,
    parts: VecDeque<ModelPart>,
    read: Vec<ModelPart>,
    limits: Limits,
    host: String,
    is_stream: bool,
}

impl Answer {
    async fn next(&mut self) -> Option<Result<ModelPart, ModelError>> {
        loop {
            if let Some(part) = self.parts.pop_front() {
                return Some(Ok(part));
            }
            let decoder = self.decoder.as_mut()?;
            let outcome = if decoder.is_complete() { self.finish(None) } else { self.read_more().await };
            if let Err(error) = outcome {
                self.decoder = None;
                return Some(Err(self.remote.mask.error(error)));
            }
        }
    }

    async fn read_more(&mut self) -> Result<(), ModelError> {
        // What is there already needs no clock.
        let arrived = match self.body.next().now_or_never() {
            Some(arrived) => Ok(arrived),
            None => self.limits.within(self.is_stream, &self.host, self.body.next()).await,
        };
        match arrived {
            Ok(Some(Ok(bytes))) => self.take(&bytes),
            Ok(Some(Err(error))) => self.finish(Some(error)),
            Ok(None) => self.finish(None),
            Err(error) => Err(self.with_usage(error)),
        }
    }

    fn take(&mut self, bytes: &Bytes) -> Result<(), ModelError> {
        let Some(decoder) = &mut self.decoder else { return Ok(()) };
        let result = decoder.push(bytes, &mut self.read);
        self.parts.extend(self.read.drain(..));
        result
    }

    /// Ends the answer. A connection that broke after the answer was complete has done no harm.
    fn finish(&mut self, broken: Option<ModelError>) -> Result<(), ModelError> {
        let Some(decoder) = self.decoder.take() else { return Ok(()) };
        let is_early = broken.is_none() && decoder.is_complete();
        let finished = decoder.finish(&mut self.read);
        if is_early {
            drain(std::mem::replace(&mut self.body, stream::empty().boxed()));
        }
        let response = finished.map_err(|error| match broken {
            Some(broken) => ModelError { message: broken.message, ..error },
            None => error,
        })?;
        self.parts.extend(self.read.drain(..));
        self.parts.push_back(ModelPart::Finished(response));
        Ok(())
    }

    /// Adds what was used before an attempt was given up.
    fn with_usage(&mut self, error: ModelError) -> ModelError {
        let known = self.decoder.take().and_then(|decoder| decoder.finish(&mut self.read).err());
        ModelError { usage: known.and_then(|known| known.usage), ..error }
    }
}

/// Reads the end of a body whose answer is complete: only then can its connection serve the next request.
fn drain(mut body: ByteStream) {
    if matches!(body.next().now_or_never(), Some(None)) {
        return;
    }
    let rest = async move { while let Some(Ok(_)) = body.next().await {} };
    tokio::spawn(timeout(DRAIN_LIMIT, rest));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Environment;
    use crate::provider::DeclaredProvider;
    use llm_do_core::{Conversation, Message};

    /// A server that has nothing.
    struct Empty;

    impl Transport for Empty {
        fn send(&self, _: Request<Chunks>) -> BoxFuture<'_, Result<Response<ByteStream>, ModelError>> {
            let body = Bytes::from_static(br#"{"error": {"message": "File Not Found", "code": 404}}"#);
            let body = stream::iter([Ok(body)]).boxed();
            Box::pin(async { Ok(Response::builder().status(404).body(body).unwrap()) })
        }
    }

    #[tokio::test]
    async fn a_model_that_is_not_there_is_named_with_its_address() {
        let provider = DeclaredProvider {
            name: "box".into(),
            protocol: "openai-chat".into(),
            base_url: "http://ada:secret@box.lan:9000/nowhere".into(),
            key_env: None,
            headers: Default::default(),
        };
        let endpoint = Endpoint::declared(&provider, &Environment::empty(), true).unwrap();
        let name = Name::from("box:small");
        let model = RemoteModel::new(name, "small", ModelProfile::default(), endpoint, Arc::new(Empty));
        let conversation = Conversation::from_messages([Arc::new(Message::user("Hello"))]);
        let settings = ModelSettings::default();
        let request = ModelRequest {
            instructions: "",
            conversation: &conversation,
            tools: &[],
            server_tools: &[],
            output_schema: None,
            settings: &settings,
            max_output: None,
        };
        let refused = model.open().request(request).await.err().unwrap().to_string();
        let place = "`small` was asked for at http://box.lan:9000/nowhere/chat/completions";
        assert!(refused.contains("File Not Found") && refused.contains(place), "{refused}");
    }
}
