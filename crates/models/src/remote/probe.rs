//! Looks whether a provider can be reached with the key that is set: asks for its models, which costs nothing.

use std::time::Duration;

use bytes::Bytes;
use futures::StreamExt;
use http::{Method, Request};
use jiff::Timestamp;
use llm_do_core::{ModelError, ModelErrorKind};
use serde_json::Value;
use tokio::time::timeout;

use crate::mask::Mask;
use crate::provider::Endpoint;
use crate::transport::{ByteStream, Chunks, Transport};
use crate::wire::{Api, errors};

/// How long a provider may take to answer.
const LIMIT: Duration = Duration::from_secs(20);

/// The most bytes of a list of models that are read.
const MAX_BYTES: usize = 16 * 1024 * 1024;

/// Asks a provider which models it has.
pub(crate) async fn models_at(
    endpoint: &Endpoint,
    transport: &dyn Transport,
) -> Result<Vec<String>, ModelError> {
    let mask = Mask::new(endpoint.secrets.iter().cloned());
    let asked = timeout(LIMIT, ask(endpoint, transport)).await;
    let answered = asked.unwrap_or_else(|_| {
        let message = format!("`{}` did not answer within {} s", endpoint.base_url, LIMIT.as_secs());
        Err(ModelError::new(ModelErrorKind::Network, message))
    });
    answered.map_err(|error| mask.error(error))
}

async fn ask(endpoint: &Endpoint, transport: &dyn Transport) -> Result<Vec<String>, ModelError> {
    let mut request = Request::new(Chunks::default());
    *request.method_mut() = Method::GET;
    *request.uri_mut() = format!("{}{}", endpoint.base_url, path(endpoint.api))
        .parse()
        .map_err(|_| ModelError::new(ModelErrorKind::Invalid, "the address cannot be read"))?;
    *request.headers_mut() = endpoint.headers.clone();
    if endpoint.api == Api::Anthropic {
        request.headers_mut().insert("anthropic-version", http::HeaderValue::from_static("2023-06-01"));
    }
    let sent = transport.send(request).await.map_err(|error| endpoint.explain(error))?;
    let (head, body) = sent.into_parts();
    let text = read(body).await?;
    if !head.status.is_success() {
        let header = |name: &str| head.headers.get(name).and_then(|value| value.to_str().ok());
        return Err(errors::from_response(head.status.as_u16(), &header, &text, Timestamp::now()));
    }
    let listed = serde_json::from_slice(&text).ok();
    listed.as_ref().and_then(names).ok_or_else(|| {
        let message = format!("`{}` answered with something else than a list of models", endpoint.base_url);
        ModelError::new(ModelErrorKind::Invalid, message)
    })
}

fn path(api: Api) -> &'static str {
    match api {
        Api::Anthropic => "/v1/models?limit=1000",
        Api::OpenAiChat | Api::OpenAiResponses => "/models",
        Api::Gemini => "/v1beta/models?pageSize=1000",
        Api::Ollama => "/api/tags",
    }
}

async fn read(mut body: ByteStream) -> Result<Vec<u8>, ModelError> {
    let mut text = Vec::new();
    while let Some(piece) = body.next().await {
        let piece: Bytes = piece?;
        text.extend_from_slice(&piece);
        if text.len() > MAX_BYTES {
            return Err(ModelError::new(ModelErrorKind::Server, "the list of models is too long"));
        }
    }
    Ok(text)
}

/// Finds the names in a list of any provider. None where it is not a list of models.
fn names(listed: &Value) -> Option<Vec<String>> {
    let list = ["data", "models"].iter().find_map(|key| listed.get(*key)?.as_array()).or(listed.as_array())?;
    let name = |model: &Value| {
        let name = ["id", "name", "model"].iter().find_map(|key| model.get(*key)?.as_str())?;
        Some(name.trim_start_matches("models/").to_owned())
    };
    let names: Vec<String> = list.iter().filter_map(name).collect();
    (list.is_empty() || !names.is_empty()).then_some(names)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_lists_of_all_providers_are_read() {
        let read = |listed: Value| names(&listed).unwrap();
        assert_eq!(read(json!({"data": [{"id": "a"}, {"id": "b"}]})), ["a", "b"]);
        assert_eq!(read(json!({"models": [{"name": "models/gemini-x"}]})), ["gemini-x"]);
        assert_eq!(read(json!({"models": [{"name": "llama3:8b", "model": "llama3:8b"}]})), ["llama3:8b"]);
        assert!(read(json!({"data": []})).is_empty());
    }

    #[test]
    fn what_is_no_list_of_models_is_none() {
        for other in [json!({"x": 1}), json!({"models": 1}), json!({"data": [1, {"x": 2}]}), json!("ok")] {
            assert_eq!(names(&other), None, "{other}");
        }
    }
}
