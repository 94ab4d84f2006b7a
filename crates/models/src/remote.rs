//! Models that are asked over HTTP: encode, send, decode.
//!
//! One request is one attempt. Trying again, and what an attempt may cost, belong to the runtime; here are the
//! limits of one attempt ([`AttemptLimits`]).

mod answer;
mod limits;
mod probe;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use futures::future::BoxFuture;
use futures::{StreamExt, stream};
use http::header::{ACCEPT, CONTENT_ENCODING, CONTENT_TYPE, HeaderName, LOCATION, USER_AGENT};
use http::{HeaderMap, HeaderValue, Request, Response, Uri};
use jiff::Timestamp;
use llm_do_core::{
    Model, ModelError, ModelErrorKind, ModelPart, ModelProfile, ModelRequest, ModelSession, ModelSettings,
    ModelStream, Name, Origin, Schema,
};
use llm_do_secrets::KnownSecrets;

use crate::mask::Mask;
use crate::profiles::rules_of;
use crate::provider::{Endpoint, headers_of};
use crate::transport::{ByteStream, Chunks, Transport};
use crate::wire::encode::{Encoded, Encoder, RequestTarget, can_enforce};
use crate::wire::request_rules::RequestRules;
use crate::wire::{Api, Decoder, errors};
use answer::ArrivingAnswer;
use limits::AttemptLimits;
pub(crate) use probe::models_at;

/// The most bytes of the body of a failed response that are read.
const MAX_ERROR_BYTES: usize = 256 * 1024;

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
        let target = RequestTarget {
            api: remote.endpoint.api,
            provider: remote.endpoint.provider.clone(),
            model: remote.model.clone(),
            profile: remote.profile.clone(),
            rules: remote.rules.clone(),
        };
        Box::new(RemoteSession { encoder: Encoder::new(target), remote, address: None })
    }
}

/// One agent call's side of a remote model.
#[derive(Clone)]
struct RemoteSession {
    remote: Arc<Remote>,
    encoder: Encoder,
    /// The path of the previous request and its address.
    address: Option<(String, Uri)>,
}

impl ModelSession for RemoteSession {
    fn request<'a>(
        &'a mut self,
        request: ModelRequest<'a>,
    ) -> BoxFuture<'a, Result<ModelStream<'a>, ModelError>> {
        Box::pin(async move {
            // Nothing has been sent yet, so nothing is charged.
            let encoded = self.encoder.encode(&request).map_err(ModelError::not_charged)?;
            let limits = AttemptLimits::new(request.settings);
            let address = self.address(&encoded.path).map_err(ModelError::not_charged)?;
            self.remote.ask(address, encoded, request.settings, limits).await
        })
    }

    fn fork(&self) -> Option<Box<dyn ModelSession>> {
        Some(Box::new(self.clone()))
    }
}

impl RemoteSession {
    /// Returns the address of a path; it is nearly always that of the previous request.
    fn address(&mut self, path: &str) -> Result<Uri, ModelError> {
        if let Some((known, address)) = &self.address
            && known == path
        {
            return Ok(address.clone());
        }
        let written = format!("{}{path}", self.remote.endpoint.base_url);
        let address: Uri = written.parse().map_err(|_| {
            let message = format!("`{}` is not a name that an address can hold", self.remote.model);
            ModelError::new(ModelErrorKind::Invalid, message)
        })?;
        self.address = Some((path.to_owned(), address.clone()));
        Ok(address)
    }
}

impl Remote {
    async fn ask<'a>(
        self: &Arc<Self>,
        address: Uri,
        encoded: Encoded,
        settings: &ModelSettings,
        limits: AttemptLimits,
    ) -> Result<ModelStream<'a>, ModelError> {
        let is_stream = encoded.is_stream;
        let mask = Mask::from(self.known.mask());
        let host = address.host().unwrap_or_default().to_owned();
        let shown_address = without_user(&address);
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
            return Err(mask.error(self.with_address(error, &shown_address)));
        }
        check_content(&response, &host).map_err(|error| mask.error(error))?;
        let decoder = Decoder::new(self.endpoint.api, self.origin());
        let answer = ArrivingAnswer::new(decoder, response.into_body(), &mask, limits, host, is_stream);
        // Boxed: a stream hands its state on with every part.
        let answer = Box::new(answer.after(notices));
        Ok(stream::unfold(answer, |mut answer| async move { answer.next().await.map(|part| (part, answer)) })
            .boxed())
    }

    /// Names model and address, since a wrong address looks like a model that does not exist.
    fn with_address(&self, error: ModelError, address: &str) -> ModelError {
        if error.kind != ModelErrorKind::NotFound {
            return error;
        }
        let message = format!("{} (`{}` was asked for at {address})", error.message, self.model);
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

/// Headers of protocols that hold a list: what a person adds is appended to what the protocol needs.
const LISTS: &[&str] = &["anthropic-beta"];

/// Puts a header over the one of the same name, or beside it where it is a list.
fn put(headers: &mut HeaderMap, name: HeaderName, value: HeaderValue) {
    let known = headers.get(&name).filter(|_| LISTS.contains(&name.as_str()));
    let joined = known.map(|known| [known.as_bytes(), b",", value.as_bytes()].concat());
    let joined = joined.and_then(|joined| HeaderValue::from_bytes(&joined).ok());
    headers.insert(name, joined.unwrap_or(value));
}

/// An address as it may be shown: without a user, which may include a password, and without a query.
fn without_user(address: &Uri) -> String {
    let port = address.port_u16().map(|port| format!(":{port}")).unwrap_or_default();
    let (scheme, host) = (address.scheme_str().unwrap_or_default(), address.host().unwrap_or_default());
    format!("{scheme}://{host}{port}{}", address.path())
}

fn no_header(name: &str) -> ModelError {
    ModelError::new(ModelErrorKind::Invalid, format!("the header `{name}` cannot be sent"))
}

/// Reads a failed response.
async fn failure(response: Response<ByteStream>, host: &str, limits: AttemptLimits) -> ModelError {
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
    let error = errors::from_response(head.status.as_u16(), &header, &text, Timestamp::now());
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
