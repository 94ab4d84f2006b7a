//! A request as it is kept and compared: without secrets.

use std::collections::BTreeMap;

use http::header::{COOKIE, HeaderName};
use http::{HeaderMap, Request, Uri};
use llm_do_secrets::REMOVED;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::format::BodyPiece;
use crate::mask::Mask;
use crate::transport::Chunks;

/// Headers that say how the provider is spoken to. No other header of a request is kept.
const KEPT: &[&str] = &["accept", "content-type", "anthropic-version", "anthropic-beta", "openai-beta"];
/// Headers that hold secrets, whether or not they are marked so.
const SECRET: &[&str] =
    &["authorization", "proxy-authorization", "x-api-key", "api-key", "x-goog-api-key", "cookie"];
/// Parameters of an address that hold secrets.
const SECRET_PARAMETERS: &[&str] =
    &["key", "api_key", "api-key", "access_token", "token", "sig", "signature"];

/// A shorter key is a placeholder, such as `none` or `ollama`, that prompts may well contain.
const MIN_KEY_LEN: usize = 8;

/// A request without secrets.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Asked {
    pub(super) method: String,
    pub(super) url: String,
    pub(super) headers: BTreeMap<String, String>,
    /// The body: JSON as it is, other text as a string, other bytes as `{"base64": ...}`.
    pub(super) body: Value,
}

impl Asked {
    /// Returns what is kept of a request.
    pub(super) fn new(request: &Request<Chunks>, mask: &Mask) -> Self {
        let headers = request
            .headers()
            .iter()
            .filter(|(name, value)| KEPT.contains(&name.as_str()) && !value.is_sensitive());
        Self {
            method: request.method().to_string(),
            url: mask.text(&without_secrets(request.uri())).into_owned(),
            headers: headers
                .map(|(name, value)| {
                    (name.to_string(), mask.text(value.to_str().unwrap_or_default()).into_owned())
                })
                .collect(),
            body: mask.value(body_of(request.body())),
        }
    }

    /// Returns whether two requests ask for the same, wherever the provider is.
    pub(super) fn asks_like(&self, other: &Self) -> bool {
        self.goes_where(other) && self.body == other.body
    }

    /// Returns whether two requests have the same method and path.
    pub(super) fn goes_where(&self, other: &Self) -> bool {
        self.method == other.method && self.target() == other.target()
    }

    /// Returns path and query.
    pub(super) fn target(&self) -> &str {
        let after_scheme = self.url.split_once("://").map_or(self.url.as_str(), |(_, rest)| rest);
        after_scheme.find('/').map_or("/", |start| &after_scheme[start..])
    }
}

/// Returns the mask of the secrets that a request carries, and of others.
pub(super) fn mask_of(request: &Request<Chunks>, hidden: Vec<String>) -> Mask {
    let carried = secrets_of(request).into_iter().filter(|secret| secret.len() >= MIN_KEY_LEN);
    Mask::new(hidden.into_iter().chain(carried))
}

fn secrets_of(request: &Request<Chunks>) -> Vec<String> {
    let mut secrets = secrets_of_headers(request.headers());
    let parameters = request.uri().query().into_iter().flat_map(|query| query.split('&'));
    secrets.extend(parameters.filter_map(|parameter| {
        let (name, value) = parameter.split_once('=')?;
        SECRET_PARAMETERS.contains(&name).then(|| value.to_owned())
    }));
    if let Some((user, _)) = request.uri().authority().and_then(|host| host.as_str().rsplit_once('@')) {
        secrets.push(user.split_once(':').map_or(user, |(_, password)| password).to_owned());
    }
    secrets
}

pub(crate) fn secrets_of_headers(headers: &HeaderMap) -> Vec<String> {
    let is_secret = |name: &HeaderName| SECRET.contains(&name.as_str());
    let secret = headers.iter().filter(|(name, value)| value.is_sensitive() || is_secret(name));
    secret.filter_map(|(name, value)| Some(secrets_in(name, value.to_str().ok()?))).flatten().collect()
}

/// Returns the secrets of a header's value: `SECRET`, `Bearer SECRET`, or `name=SECRET; name=SECRET`.
fn secrets_in(name: &HeaderName, value: &str) -> Vec<String> {
    let parts: Vec<&str> = match name {
        &COOKIE => value.split(';').filter_map(|cookie| Some(cookie.split_once('=')?.1)).collect(),
        _ => value.split_once(' ').map(|(_, secret)| secret).into_iter().collect(),
    };
    [value].into_iter().chain(parts).map(str::to_owned).collect()
}

/// Returns an address without user, password and keys.
fn without_secrets(address: &Uri) -> String {
    let host = address.authority().map_or("", |host| host.as_str());
    let host = host.rsplit_once('@').map_or(host, |(_, host)| host);
    let scheme = address.scheme_str().unwrap_or("http");
    let query = address.query().map(|query| {
        let parameters: Vec<String> = query.split('&').map(without_secret).collect();
        format!("?{}", parameters.join("&"))
    });
    format!("{scheme}://{host}{}{}", address.path(), query.unwrap_or_default())
}

fn without_secret(parameter: &str) -> String {
    match parameter.split_once('=') {
        Some((name, _)) if SECRET_PARAMETERS.contains(&name) => format!("{name}={REMOVED}"),
        _ => parameter.to_owned(),
    }
}

fn body_of(body: &Chunks) -> Value {
    if body.is_empty() {
        return Value::Null;
    }
    let bytes = body.to_vec();
    serde_json::from_slice(&bytes).unwrap_or_else(|_| match BodyPiece::new(bytes) {
        BodyPiece::Text(text) => Value::String(text),
        BodyPiece::Bytes { base64 } => serde_json::json!({ "base64": base64 }),
    })
}
