//! A provider that looks at what it is sent: it refuses what real providers refuse, and answers the rest as a test
//! says.
//!
//! Answers are written as the provider writes them, with reasoning and its signatures when the model reasons, whole
//! or as a stream. What is issued is remembered, so that the next request must send it back as it was.

mod answer;
mod faults;
mod route;
mod stream;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;
use futures::future::BoxFuture;
use futures::{FutureExt, StreamExt};
use http::{Request, Response};
use llm_do_core::{ModelError, ModelErrorKind};
use llm_do_models::{ByteStream, Chunks, Transport};
use llm_do_provider_rules::{Account, OptionalRules, Protocol, ProviderRefusal, ProviderRequest, Reasoning};
use parking_lot::{Mutex, MutexGuard};
use serde_json::Value;

pub use answer::MockAnswer;
pub use faults::ProviderFault;
use route::Route;

/// A network whose providers refuse what the real ones refuse, with their own errors.
///
/// Clones share everything. Each provider has an account of its own.
#[derive(Clone)]
pub struct StrictProvider(Arc<Inner>);

struct Inner {
    route: Route,
    optional: OptionalRules,
    answer: Box<Answerer>,
    fault: Box<FaultChooser>,
    state: Mutex<State>,
}

type Answerer = dyn Fn(&StrictRequest) -> MockAnswer + Send + Sync;
type FaultChooser = dyn Fn(&StrictRequest) -> Option<ProviderFault> + Send + Sync;

#[derive(Default)]
struct State {
    accounts: HashMap<String, Account>,
    requests: Vec<StrictRequest>,
    refused: Vec<(StrictRequest, ProviderRefusal)>,
}

/// A request that reached a [`StrictProvider`].
#[derive(Debug, Clone)]
pub struct StrictRequest {
    /// How many requests came before it.
    pub index: usize,
    /// The protocol of its endpoint.
    pub protocol: Protocol,
    /// The provider, by its prefix in model names.
    pub provider: String,
    /// The path of its URL.
    pub path: String,
    /// The body.
    pub body: Arc<Value>,
}

impl StrictRequest {
    /// Returns the request in the form that is checked.
    pub fn as_checked(&self) -> ProviderRequest<'_> {
        ProviderRequest {
            protocol: self.protocol,
            provider: &self.provider,
            path: &self.path,
            body: &self.body,
        }
    }

    /// Returns whether the answer is to be streamed.
    pub fn is_streamed(&self) -> bool {
        match self.protocol {
            Protocol::Gemini => self.path.contains(":streamGenerateContent"),
            Protocol::Ollama => self.body["stream"] != false,
            _ => self.body["stream"] == true,
        }
    }
}

/// The APIs that a [`StrictProvider`] can be made for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MockApi {
    /// Anthropic's Messages.
    Anthropic,
    /// OpenAI's Responses.
    Responses,
    /// OpenAI's Chat Completions.
    Chat,
    /// Gemini's `generateContent`.
    Gemini,
}

impl MockApi {
    /// Returns the protocol.
    pub fn protocol(self) -> Protocol {
        match self {
            Self::Anthropic => Protocol::AnthropicMessages,
            Self::Responses => Protocol::OpenAiResponses,
            Self::Chat => Protocol::OpenAiChat,
            Self::Gemini => Protocol::Gemini,
        }
    }

    /// Returns the messages of a request.
    pub fn messages(self, body: &Value) -> &[Value] {
        self.protocol().messages(body)
    }
}

impl StrictProvider {
    /// A provider of an API, whose model answers a valid body as the function says.
    pub fn new(api: MockApi, answer: impl Fn(&Value) -> MockAnswer + Send + Sync + 'static) -> Self {
        Self::of(Route::Fixed(api.protocol()), move |request| answer(&request.body))
    }

    /// All built-in providers at their own addresses.
    pub fn all(answer: impl Fn(&StrictRequest) -> MockAnswer + Send + Sync + 'static) -> Self {
        Self::of(Route::ByAddress, answer)
    }

    fn of(route: Route, answer: impl Fn(&StrictRequest) -> MockAnswer + Send + Sync + 'static) -> Self {
        Self(Arc::new(Inner {
            route,
            optional: OptionalRules::default(),
            answer: Box::new(answer),
            fault: Box::new(|_| None),
            state: Mutex::default(),
        }))
    }

    /// The network with uncertain rules.
    ///
    /// # Panics
    ///
    /// If the network is shared already.
    #[must_use]
    pub fn optional(mut self, rules: OptionalRules) -> Self {
        self.inner_mut().optional = rules;
        self
    }

    /// The network with faults: the function is asked after each request that is not refused.
    ///
    /// # Panics
    ///
    /// If the network is shared already.
    #[must_use]
    pub fn faults(
        mut self,
        fault: impl Fn(&StrictRequest) -> Option<ProviderFault> + Send + Sync + 'static,
    ) -> Self {
        self.inner_mut().fault = Box::new(fault);
        self
    }

    fn inner_mut(&mut self) -> &mut Inner {
        Arc::get_mut(&mut self.0).expect("a network is set up before it is shared")
    }

    /// Returns the requests so far: path and body.
    pub fn requests(&self) -> Vec<(String, Value)> {
        let state = self.state();
        state.requests.iter().map(|request| (request.path.clone(), Value::clone(&request.body))).collect()
    }

    /// Returns the requests that were refused, with the refusals.
    pub fn refused(&self) -> Vec<(StrictRequest, ProviderRefusal)> {
        self.state().refused.clone()
    }

    /// Returns why requests were refused.
    pub fn refusals(&self) -> Vec<String> {
        self.state().refused.iter().map(|(_, refusal)| refusal.to_string()).collect()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock()
    }

    fn exchange(&self, request: &Request<Chunks>) -> Result<Response<ByteStream>, ModelError> {
        let request = self.receive(request);
        if let Err(refusal) = self.check(&request) {
            return Ok(response(refusal.status, &[], vec![Ok(refusal.body.to_string().into())]));
        }
        let fault = (self.0.fault)(&request);
        if let Some(failure) = fault.and_then(|fault| faults::written(fault, &request)) {
            return failure;
        }
        let answer = self.answer(&request);
        let mut pieces: Vec<Result<Bytes, ModelError>> = match request.is_streamed() {
            true => {
                stream::frames(request.protocol, &answer).into_iter().map(|frame| Ok(frame.into())).collect()
            }
            false => vec![Ok(answer.to_string().into())],
        };
        if fault == Some(ProviderFault::Cut) {
            pieces = cut(pieces);
        }
        Ok(response(200, &[], pieces))
    }

    fn receive(&self, request: &Request<Chunks>) -> StrictRequest {
        let (protocol, provider) = self.0.route.find(request.uri());
        let text: Vec<&[u8]> = request.body().pieces().map(|piece| piece.as_ref()).collect();
        let body: Value = serde_json::from_slice(&text.concat()).unwrap_or_default();
        let mut state = self.state();
        let received = StrictRequest {
            index: state.requests.len(),
            protocol,
            provider: provider.to_owned(),
            path: request.uri().path().to_owned(),
            body: Arc::new(body),
        };
        state.requests.push(received.clone());
        received
    }

    fn check(&self, request: &StrictRequest) -> Result<(), ProviderRefusal> {
        let mut state = self.state();
        let account = state
            .accounts
            .entry(request.provider.clone())
            .or_insert_with(|| Account::default().with_optional(self.0.optional));
        account.check(&request.as_checked()).inspect_err(|refusal| {
            state.refused.push((request.clone(), refusal.clone()));
        })
    }

    /// Writes the answer of the model and remembers what it issues.
    fn answer(&self, request: &StrictRequest) -> Value {
        let said = (self.0.answer)(request);
        let reasons = match request.as_checked().reasoning() {
            Reasoning::Off => false,
            // Not every answer, so that both kinds are sent back.
            Reasoning::Adaptive => !request.index.is_multiple_of(3),
            Reasoning::Always => true,
        };
        let answer = answer::written(request, &said, reasons);
        if let Some(account) = self.state().accounts.get_mut(&request.provider) {
            account.issue(request.protocol, &answer);
        }
        answer
    }
}

impl Transport for StrictProvider {
    fn send(&self, request: Request<Chunks>) -> BoxFuture<'_, Result<Response<ByteStream>, ModelError>> {
        futures::future::ready(self.exchange(&request)).boxed()
    }
}

fn response(
    status: u16,
    headers: &[(&str, &str)],
    pieces: Vec<Result<Bytes, ModelError>>,
) -> Response<ByteStream> {
    let body: ByteStream = futures::stream::iter(pieces).boxed();
    let mut response = Response::builder().status(status).header("content-type", "application/json");
    for (name, value) in headers {
        response = response.header(*name, *value);
    }
    response.body(body).expect("the response of a mock must be valid")
}

/// The first half of a body, and then the end of the connection.
fn cut(pieces: Vec<Result<Bytes, ModelError>>) -> Vec<Result<Bytes, ModelError>> {
    let whole: Vec<u8> = pieces.into_iter().flatten().flatten().collect();
    let half = Bytes::copy_from_slice(&whole[..whole.len() / 2]);
    let end =
        ModelError::new(ModelErrorKind::Network, "the connection was closed in the middle of the answer");
    vec![Ok(half), Err(end)]
}
