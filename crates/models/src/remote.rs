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
use http::header::{ACCEPT, CONTENT_ENCODING, CONTENT_TYPE, HeaderName, LOCATION, USER_AGENT};
use http::{HeaderMap, HeaderValue, Request, Response, Uri};
use jiff::Timestamp;
use llm_do_core::{
    Model, ModelError, ModelErrorKind, ModelPart, ModelProfile, ModelRequest, ModelSession, ModelSettings,
    ModelStream, Name, Origin, Schema,
};
use llm_do_secrets::KnownSecrets;
use tokio::time::{Instant, timeout, timeout_at};

use crate::mask::{AnswerMask, Mask};
use crate::profiles::rules_of;
use crate::provider::{Endpoint, headers_of};
use crate::request_rules::RequestRules;
use crate::transport::{ByteStream, Chunks, Transport};
use crate::wire::encode::{Encoded, Encoder, Target, can_enforce};
use crate::wire::{Api, Decoder, errors};

/// How long a provider may be silent where the agent does not say.
pub(crate) const IDLE_LIMIT: Duration = Duration::from_mins(5);

/// How long an answer may take where the agent does not say.
pub(crate) const TOTAL_LIMIT: Duration = Duration::from_mins(30);

/// The most bytes of the body of a failed response that are read.
const MAX_ERROR_BYTES: usize = 256 * 1024;

/// How long the end of a complete answer is awaited, so that its connection can be used again.
const DRAIN_LIMIT: Duration = Duration::from_millis(50);

/// How long more is awaited after the stop reason, if nothing of the answer arrives. Usage follows at once, and some
/// servers never close the stream.
const SETTLE_LIMIT: Duration = Duration::from_secs(5);

/// A model at the end of a network.
pub(crate) struct RemoteModel(Arc<Remote>);

struct Remote {
    name: Name,
    model: String,
    profile: ModelProfile,
    rules: RequestRules,
    endpoint: Endpoint,
    headers: HeaderMap,
    /// What no answer and no error may show.
    known: KnownSecrets,
    transport: Arc<dyn Transport>,
}

impl RemoteModel {
    /// A model of a provider.
    pub(crate) fn new(
        name: Name,
        model: &str,
        profile: ModelProfile,
        endpoint: Endpoint,
        known: &KnownSecrets,
        transport: Arc<dyn Transport>,
    ) -> Self {
        let mut headers = endpoint.headers.clone();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(USER_AGENT, HeaderValue::from_static(concat!("llm-do/", env!("CARGO_PKG_VERSION"))));
        let known = known.clone();
        let rules = rules_of(&endpoint.protocol, &endpoint.provider, model);
        let model = model.to_owned();
        Self(Arc::new(Remote { name, model, profile, rules, endpoint, headers, known, transport }))
    }
}

impl Model for RemoteModel {
    fn name(&self) -> &Name {
        &self.0.name
    }

    fn profile(&self) -> ModelProfile {
        self.0.profile.clone()
    }

    fn enforces(&self, schema: &Schema, has_tools: bool) -> bool {
        let remote = &self.0;
        // A server that compiles any schema to a grammar accepts all keywords.
        let is_limited = remote.profile.closed_output_only || remote.endpoint.api == Api::Gemini;
        remote.profile.enforces(schema, has_tools)
            && (!is_limited || can_enforce(remote.endpoint.api, schema.source()))
    }

    fn open(&self) -> Box<dyn ModelSession> {
        let remote = self.0.clone();
        let target = Target {
            api: remote.endpoint.api,
            provider: remote.endpoint.provider.clone(),
            model: remote.model.clone(),
            profile: remote.profile.clone(),
            rules: remote.rules.clone(),
        };
        Box::new(Session { encoder: Encoder::new(target), remote, place: None })
    }
}

/// One agent call's side of a remote model.
#[derive(Clone)]
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
            // Nothing has been sent yet, so nothing is charged.
            let encoded = self.encoder.encode(&request).map_err(ModelError::not_charged)?;
            let limits = Limits::of(request.settings);
            let address = self.address(&encoded.path).map_err(ModelError::not_charged)?;
            self.remote.ask(address, encoded, request.settings, limits).await
        })
    }

    fn fork(&self) -> Option<Box<dyn ModelSession>> {
        Some(Box::new(self.clone()))
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
            let message = format!("`{}` is not a name that an address can hold", self.remote.model);
            ModelError::new(ModelErrorKind::Invalid, message)
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
        let message = format!(
            "nothing came from {host} for {} s; `model_settings.idle_timeout` sets the limit",
            self.idle.as_secs()
        );
        ModelError::new(ModelErrorKind::Network, message)
    }

    fn overdue(&self, host: &str) -> ModelError {
        let message = format!(
            "the answer of {host} took longer than {} s; `model_settings.timeout` sets the limit",
            self.total.as_secs()
        );
        ModelError::new(ModelErrorKind::TimedOut, message)
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
        let mask = Mask::from(self.known.mask());
        let host = address.host().unwrap_or_default().to_owned();
        let place = without_user(&address);
        let notices = encoded.notices.iter().map(|notice| ModelPart::Notice(notice.clone())).collect();
        let request = self.http_request(address, encoded, settings).map_err(ModelError::not_charged)?;
        let sent = limits.within(is_stream, &host, self.transport.send(request)).await;
        let response =
            sent.and_then(|sent| sent).map_err(|error| mask.error(self.endpoint.explain(error)))?;
        if response.status().is_redirection() {
            return Err(mask.error(redirected(&response, &host)));
        }
        if !response.status().is_success() {
            let error = failure(response, &host, limits).await;
            return Err(mask.error(self.placed(error, &place)));
        }
        check_content(&response, &host).map_err(|error| mask.error(error))?;
        // Boxed: a stream hands its state on with every part.
        let answer = Box::new(Answer {
            decoder: Some(Decoder::new(self.endpoint.api, self.origin())),
            body: response.into_body(),
            parts: notices,
            read: Vec::new(),
            mask: AnswerMask::new(&mask),
            error: None,
            limits,
            settle_at: None,
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
            put(request.headers_mut(), HeaderName::from_static(name), value);
        }
        let extra = headers_of(&settings.extra_headers)
            .map_err(|message| ModelError::new(ModelErrorKind::Invalid, message))?;
        for (name, value) in &extra {
            put(request.headers_mut(), name.clone(), value.clone());
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

/// Headers of protocols that hold a list: what a person adds stands beside what the protocol needs.
const LISTS: &[&str] = &["anthropic-beta"];

/// Puts a header over the one of the same name, or beside it where it is a list.
fn put(headers: &mut HeaderMap, name: HeaderName, value: HeaderValue) {
    let known = headers.get(&name).filter(|_| LISTS.contains(&name.as_str()));
    let joined = known.map(|known| [known.as_bytes(), b",", value.as_bytes()].concat());
    let joined = joined.and_then(|joined| HeaderValue::from_bytes(&joined).ok());
    headers.insert(name, joined.unwrap_or(value));
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
    while text.len() < MAX_ERROR_BYTES {
        match limits.within(true, host, body.next()).await {
            Ok(Some(Ok(bytes))) => text.extend_from_slice(&bytes),
            _ => break,
        }
    }
    let header = |name: &str| head.headers.get(name).and_then(|value| value.to_str().ok());
    let error = errors::of_response(head.status.as_u16(), &header, &text, Timestamp::now());
    // What a provider refuses it does not charge for.
    error.not_charged()
}

/// Says where a provider sends its callers. A key must not travel to an address that somebody else chose.
fn redirected(response: &Response<ByteStream>, host: &str) -> ModelError {
    let location = response.headers().get(LOCATION).and_then(|location| location.to_str().ok());
    let location = location.and_then(|location| location.parse::<Uri>().ok());
    let to = match location.as_ref().and_then(Uri::host) {
        Some(other) if other != host => format!("to {other}"),
        _ => "to another of its addresses".to_owned(),
    };
    let message = format!(
        "HTTP {}: {host} redirects {to}, and redirects are not followed; correct the base URL of the provider",
        response.status().as_u16()
    );
    // What a provider refuses it does not charge for.
    ModelError::new(ModelErrorKind::Invalid, message).not_charged()
}

/// Refuses a page of a proxy or a wrong address, and what is packed though nobody asked for it.
fn check_content(response: &Response<ByteStream>, host: &str) -> Result<(), ModelError> {
    let header =
        |name: HeaderName| response.headers().get(name).and_then(|value| value.to_str().ok()).map(str::trim);
    let coding = header(CONTENT_ENCODING).unwrap_or_default();
    if !coding.is_empty() && !coding.eq_ignore_ascii_case("identity") {
        let message = format!(
            "{host} sent an answer with `content-encoding: {coding}`, which was not asked for and cannot be read"
        );
        return Err(ModelError::new(ModelErrorKind::Invalid, message));
    }
    let kind = header(CONTENT_TYPE).unwrap_or_default();
    if !kind.to_ascii_lowercase().starts_with("text/html") {
        return Ok(());
    }
    let message = format!(
        "{host} sent a page (text/html) instead of an answer: is the address right, or does a proxy ask for a login?"
    );
    Err(ModelError::new(ModelErrorKind::Invalid, message))
}

/// An answer as it arrives.
struct Answer {
    /// Gone once the answer has ended.
    decoder: Option<Decoder>,
    body: ByteStream,
    parts: VecDeque<ModelPart>,
    read: Vec<ModelPart>,
    mask: AnswerMask,
    /// Why the answer broke off.
    error: Option<ModelError>,
    limits: Limits,
    /// When an answer whose stop reason has arrived counts as complete.
    settle_at: Option<Instant>,
    host: String,
    is_stream: bool,
}

impl Answer {
    async fn next(&mut self) -> Option<Result<ModelPart, ModelError>> {
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::Mutex;

    use llm_do_core::{Conversation, Message, ServerTool};

    use super::*;
    use crate::Environment;
    use crate::provider::DeclaredProvider;

    const KEY: &str = "sk-canary-0123456789";

    /// A server that always says the same, and remembers the headers that it got.
    #[derive(Default)]
    struct Server {
        /// What it sends again and again, every second, instead of closing the stream; if empty, nothing.
        keeps_open_with: Option<Bytes>,
        status: u16,
        headers: Vec<(&'static str, &'static str)>,
        pieces: Vec<Bytes>,
        got: Mutex<HeaderMap>,
    }

    impl Transport for Server {
        fn send(&self, request: Request<Chunks>) -> BoxFuture<'_, Result<Response<ByteStream>, ModelError>> {
            *self.got.lock().unwrap() = request.headers().clone();
            let mut response = Response::builder().status(self.status);
            for (name, value) in &self.headers {
                response = response.header(*name, *value);
            }
            let pieces: Vec<_> = self.pieces.iter().cloned().map(Ok).collect();
            let more = stream::iter(self.keeps_open_with.clone()).flat_map(|piece| {
                stream::repeat(piece).filter_map(|piece| async move {
                    tokio::time::sleep(Duration::from_secs(1)).await;
                    (!piece.is_empty()).then_some(Ok(piece))
                })
            });
            Box::pin(async { Ok(response.body(stream::iter(pieces).chain(more).boxed()).unwrap()) })
        }
    }

    /// Asks a model at a server, and returns what it said.
    async fn asked(
        server: Server,
        protocol: &str,
        settings: &ModelSettings,
    ) -> (Arc<Server>, Result<Vec<ModelPart>, ModelError>) {
        let provider = DeclaredProvider {
            name: "box".into(),
            protocol: protocol.into(),
            base_url: "http://box.lan:9000/nowhere".into(),
            key_env: Some("BOX_KEY".into()),
            headers: BTreeMap::new(),
            is_users: false,
        };
        let keys = [("BOX_KEY".to_owned(), KEY.to_owned())].into_iter().collect::<Environment>();
        let endpoint = Endpoint::declared(&provider, &keys, true).unwrap();
        let profile = ModelProfile { server_tools: &["web_fetch"], ..ModelProfile::default() };
        let server = Arc::new(server);
        let known = KnownSecrets::default();
        known.add(endpoint.secrets.iter().cloned());
        let model = RemoteModel::new("box:small".into(), "small", profile, endpoint, &known, server.clone());
        let conversation = Conversation::from_messages([Arc::new(Message::user("Hello"))]);
        let fetch =
            ServerTool::WebFetch { max_uses: None, allowed_domains: Vec::new(), blocked_domains: Vec::new() };
        let request = ModelRequest {
            instructions: "",
            conversation: &conversation,
            tools: &[],
            server_tools: if protocol == "anthropic" { std::slice::from_ref(&fetch) } else { &[] },
            output_schema: None,
            settings,
            max_output: None,
        };
        let mut session = model.open();
        let parts = match session.request(request).await {
            Ok(parts) => parts.collect::<Vec<_>>().await.into_iter().collect(),
            Err(error) => Err(error),
        };
        (server, parts)
    }

    async fn refusal(server: Server) -> ModelError {
        asked(server, "openai-chat", &ModelSettings::default()).await.1.unwrap_err()
    }

    #[tokio::test]
    async fn a_model_that_is_not_there_is_named_with_its_address() {
        let body = Bytes::from_static(br#"{"error": {"message": "File Not Found", "code": 404}}"#);
        let refused =
            refusal(Server { status: 404, pieces: vec![body], ..Server::default() }).await.to_string();
        let place = "`small` was asked for at http://box.lan:9000/nowhere/chat/completions";
        assert!(refused.contains("File Not Found") && refused.contains(place), "{refused}");
    }

    #[tokio::test]
    async fn a_redirect_is_an_error_of_the_address_that_names_the_other_host() {
        let location = vec![("location", "https://me:pw@other.example/v1?key=1")];
        let error = refusal(Server { status: 307, headers: location, ..Server::default() }).await;
        assert_eq!(error.kind, ModelErrorKind::Invalid);
        assert_eq!(
            error.message,
            "HTTP 307: box.lan redirects to other.example, and redirects are not followed; correct the base URL \
             of the provider"
        );
        let error = refusal(Server { status: 301, ..Server::default() }).await;
        assert!(error.message.contains("to another of its addresses"), "{error}");
    }

    #[tokio::test]
    async fn a_packed_answer_is_refused_by_its_encoding() {
        let headers = vec![("content-encoding", "gzip")];
        let error = refusal(Server { status: 200, headers, ..Server::default() }).await;
        assert_eq!(error.kind, ModelErrorKind::Invalid);
        assert!(error.message.contains("box.lan sent an answer with `content-encoding: gzip`"), "{error}");
    }

    #[tokio::test]
    async fn what_a_person_adds_to_a_list_stands_beside_what_the_protocol_needs() {
        let mut settings = ModelSettings::default();
        settings.extra_headers.insert("Anthropic-Beta".into(), "mine-1,mine-2".into());
        settings.extra_headers.insert("anthropic-version".into(), "2030-01-01".into());
        let (server, _) = asked(Server { status: 500, ..Server::default() }, "anthropic", &settings).await;
        let got = server.got.lock().unwrap();
        assert_eq!(got["anthropic-beta"], "web-fetch-2025-09-10,mine-1,mine-2");
        assert_eq!(got["anthropic-version"], "2030-01-01", "a version is not a list");
    }

    #[tokio::test]
    async fn a_key_that_an_answer_repeats_is_removed_however_it_arrives() {
        let body = format!(
            "data: {{\"choices\":[{{\"delta\":{{\"content\":\"<{KEY}> sk-canary\"}}}}]}}\n\n\
             data: {{\"choices\":[{{\"delta\":{{}},\"finish_reason\":\"stop\"}}]}}\n\ndata: [DONE]\n\n"
        );
        let body = Bytes::from(body);
        for cut in 0..body.len() {
            let pieces = vec![body.slice(..cut), body.slice(cut..)];
            let server = Server { status: 200, pieces, ..Server::default() };
            let parts = asked(server, "openai-chat", &ModelSettings::default()).await.1.unwrap();
            let said = parts
                .iter()
                .filter_map(|part| if let ModelPart::Text(text) = part { Some(text.as_str()) } else { None });
            assert_eq!(said.collect::<String>(), "<[removed]> sk-canary", "cut at {cut}");
            let Some(ModelPart::Finished(response)) = parts.last() else { panic!("{parts:?}") };
            assert_eq!(response.message.text(), "<[removed]> sk-canary");
        }
    }

    #[tokio::test]
    async fn an_answer_that_breaks_off_shows_what_was_held_back_before_its_error() {
        let body = "data: {\"choices\":[{\"delta\":{\"content\":\"two files\"}}]}\n\n";
        let server = Arc::new(Server { status: 200, pieces: vec![body.into()], ..Server::default() });
        let environment: Environment = [("BOX_KEY".to_owned(), KEY.to_owned())].into_iter().collect();
        let provider = DeclaredProvider {
            name: "box".into(),
            protocol: "openai-chat".into(),
            base_url: "http://box.lan:9000/nowhere".into(),
            key_env: Some("BOX_KEY".into()),
            headers: BTreeMap::new(),
            is_users: true,
        };
        let models =
            crate::StandardModels::new(".").environment(environment).provider(provider).transport(server);
        let model = llm_do_core::Models::resolve(&models, "box:small").unwrap();
        let conversation = Conversation::from_messages([Arc::new(Message::user("Hello"))]);
        let request = ModelRequest {
            instructions: "",
            conversation: &conversation,
            tools: &[],
            server_tools: &[],
            output_schema: None,
            settings: &ModelSettings::default(),
            max_output: None,
        };
        let mut session = model.open();
        let parts: Vec<_> = session.request(request).await.unwrap().collect().await;
        let said: Vec<String> = parts.iter().flatten().map(|part| format!("{part:?}")).collect();
        assert_eq!(said, [r#"Text("two file")"#, r#"Text("s")"#]);
        assert!(parts.last().unwrap().is_err());
    }

    /// What an endpoint sends up to and with the stop reason, and what may follow.
    const OPEN_STREAMS: &[(&str, &str, &str)] = &[
        (
            "openai-chat",
            "data: {\"choices\":[{\"delta\":{\"content\":\"Hi\"}}]}\n\n\
             data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n",
            "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":2}}\n\n",
        ),
        (
            "anthropic",
            "data: {\"type\":\"message_start\",\"message\":{\"usage\":{\"input_tokens\":3}}}\n\n\
             data: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"Hi\"}}\n\n\
             data: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},\"usage\":{\"output_tokens\":2}}\n\n",
            "",
        ),
        (
            "gemini",
            "data: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"Hi\"}]},\"finishReason\":\"STOP\"}],\
             \"usageMetadata\":{\"promptTokenCount\":3,\"candidatesTokenCount\":2}}\n\n",
            "",
        ),
    ];

    #[tokio::test(start_paused = true)]
    async fn an_answer_with_its_stop_reason_is_delivered_though_the_stream_stays_open() {
        for (protocol, answer, after) in OPEN_STREAMS {
            for keep_alive in ["", ": keep-alive\n\n"] {
                let started = Instant::now();
                let pieces =
                    [*answer, *after].into_iter().map(Bytes::from).filter(|it| !it.is_empty()).collect();
                let keeps_open_with = Some(Bytes::from(keep_alive));
                let server = Server { status: 200, pieces, keeps_open_with, ..Server::default() };
                let parts = asked(server, protocol, &ModelSettings::default()).await.1.unwrap();
                let Some(ModelPart::Finished(response)) = parts.last() else { panic!("{parts:?}") };
                assert_eq!(response.message.text(), "Hi", "{protocol}");
                assert_eq!((response.usage.input, response.usage.output), (3, 2), "{protocol}");
                assert!(started.elapsed() <= SETTLE_LIMIT * 2, "{protocol}: {:?}", started.elapsed());
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_is_never_delivered_with_a_part_of_its_arguments() {
        let chunk = |arguments: &str, more: &str| {
            let call = serde_json::json!([{"index": 0, "id": "c", "function": {"name": "f", "arguments": arguments}}]);
            Bytes::from(format!("data: {{\"choices\":[{{\"delta\":{{\"tool_calls\":{call}}}{more}}}]}}\n\n"))
        };
        let finish = ",\"finish_reason\":\"tool_calls\"";
        let whole = r#"{"path": "a", "mode": "b"}"#;
        for end in 0..=whole.len() {
            let pieces = vec![chunk(&whole[..end], finish)];
            let server =
                Server { status: 200, pieces, keeps_open_with: Some(Bytes::new()), ..Server::default() };
            match asked(server, "openai-chat", &ModelSettings::default()).await.1 {
                Ok(parts) => {
                    let Some(ModelPart::Finished(response)) = parts.last() else { panic!("{parts:?}") };
                    let call = response.message.tool_calls().next().unwrap();
                    assert!(end == 0 || &*call.arguments == whole, "{}", call.arguments);
                }
                Err(error) => assert_eq!(error.kind, ModelErrorKind::Truncated, "{end}"),
            }
        }
    }
}
