//! A provider that looks at what it is sent: it refuses invalid conversations, and answers the others as a test says.

use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use futures::future::BoxFuture;
use futures::{FutureExt, StreamExt, stream};
use http::{Request, Response};
use llm_do_core::ModelError;
use llm_do_models::{ByteStream, Chunks, Transport};
use serde_json::{Value, json};

use super::conversation::MockApi;

/// A network whose provider refuses invalid conversations with status 400, as the real ones do.
///
/// Requests must ask for whole answers and not for streams (`stream: false` in the settings of the model).
#[derive(Clone)]
pub struct StrictProvider(Arc<Inner>);

struct Inner {
    api: MockApi,
    answer: Box<dyn Fn(&Value) -> MockAnswer + Send + Sync>,
    requests: Mutex<Vec<(String, Value)>>,
    refusals: Mutex<Vec<String>>,
}

/// What the model of a strict provider says.
#[derive(Debug, Clone)]
pub enum MockAnswer {
    /// Text, and the end.
    Says(String),
    /// Calls of tools, by name and arguments.
    Asks(Vec<(&'static str, Value)>),
}

impl StrictProvider {
    /// A provider of an API, whose model answers a valid body as the function says.
    pub fn new(api: MockApi, answer: impl Fn(&Value) -> MockAnswer + Send + Sync + 'static) -> Self {
        let answer = Box::new(answer);
        Self(Arc::new(Inner { api, answer, requests: Mutex::default(), refusals: Mutex::default() }))
    }

    /// Returns the requests so far: path and body.
    pub fn requests(&self) -> Vec<(String, Value)> {
        self.0.requests.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns why requests were refused.
    pub fn refusals(&self) -> Vec<String> {
        self.0.refusals.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn exchange(&self, request: Request<Chunks>) -> (u16, Value) {
        let path = request.uri().path().to_owned();
        let text = request.into_body().to_vec();
        let body: Value = serde_json::from_slice(&text).unwrap_or_default();
        let place = {
            let mut requests = self.0.requests.lock().unwrap_or_else(PoisonError::into_inner);
            requests.push((path, body.clone()));
            requests.len()
        };
        match self.0.api.refusal(&body) {
            Some(refusal) => {
                let error =
                    json!({"error": {"type": "invalid_request_error", "message": refusal, "code": 400}});
                self.0.refusals.lock().unwrap_or_else(PoisonError::into_inner).push(refusal);
                (400, error)
            }
            None => (200, written(self.0.api, place, &(self.0.answer)(&body))),
        }
    }
}

impl Transport for StrictProvider {
    fn send(&self, request: Request<Chunks>) -> BoxFuture<'_, Result<Response<ByteStream>, ModelError>> {
        let (status, body) = self.exchange(request);
        let body: ByteStream = stream::iter([Ok(Bytes::from(body.to_string()))]).boxed();
        let response =
            Response::builder().status(status).header("content-type", "application/json").body(body);
        futures::future::ready(Ok(response.expect("the response of a script must be valid"))).boxed()
    }
}

/// Writes an answer as the API does. The place of the request makes its ids unique.
fn written(api: MockApi, place: usize, answer: &MockAnswer) -> Value {
    let (text, calls) = match answer {
        MockAnswer::Says(text) => (Some(text), &[][..]),
        MockAnswer::Asks(calls) => (None, calls.as_slice()),
    };
    let id = |index: usize| format!("call_{place}_{index}");
    let stop = |asks: &'static str, says: &'static str| if calls.is_empty() { says } else { asks };
    let mut items: Vec<Value> = Vec::new();
    match api {
        MockApi::Anthropic => {
            items.extend(text.map(|text| json!({"type": "text", "text": text})));
            items.extend(calls.iter().enumerate().map(|(index, (name, input))| {
                json!({"type": "tool_use", "id": id(index), "name": name, "input": input})
            }));
            json!({"id": "m", "type": "message", "role": "assistant", "model": "m", "content": items,
                "stop_reason": stop("tool_use", "end_turn"), "usage": {"input_tokens": 3, "output_tokens": 2}})
        }
        MockApi::Responses => {
            items.extend(text.map(|text| {
                let content = json!([{"type": "output_text", "text": text, "annotations": []}]);
                json!({"type": "message", "id": format!("msg_{place}"), "role": "assistant", "content": content})
            }));
            items.extend(calls.iter().enumerate().map(|(index, (name, input))| {
                json!({"type": "function_call", "id": format!("fc_{place}_{index}"), "call_id": id(index), "name": name,
                    "arguments": input.to_string()})
            }));
            json!({"id": "r", "object": "response", "status": "completed", "output": items,
                "usage": {"input_tokens": 3, "output_tokens": 2, "total_tokens": 5}})
        }
        MockApi::Chat => {
            items.extend(calls.iter().enumerate().map(|(index, (name, input))| {
                json!({"id": id(index), "type": "function", "function": {"name": name, "arguments": input.to_string()}})
            }));
            let mut message = json!({"role": "assistant", "content": text});
            if !items.is_empty() {
                message["tool_calls"] = items.into();
            }
            let choice = json!({"index": 0, "message": message, "finish_reason": stop("tool_calls", "stop")});
            json!({"id": "c", "object": "chat.completion", "choices": [choice],
                "usage": {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5}})
        }
        MockApi::Gemini => {
            items.extend(text.map(|text| json!({"text": text})));
            items.extend(
                calls.iter().map(|(name, input)| json!({"functionCall": {"name": name, "args": input}})),
            );
            let content = json!({"role": "model", "parts": items});
            json!({"candidates": [{"content": content, "finishReason": "STOP", "index": 0}],
                "usageMetadata": {"promptTokenCount": 3, "candidatesTokenCount": 2}})
        }
    }
}
