//! What a provider was asked.

use bytes::Bytes;
use http::HeaderMap;
use serde_json::Value;
use tokio::time::Instant;

/// A request as it reached the provider.
#[derive(Debug, Clone)]
pub struct MockRequest {
    /// The method, such as `POST`.
    pub method: String,
    /// The path with its query.
    pub path: String,
    /// The headers.
    pub headers: HeaderMap,
    /// The body.
    pub body: Bytes,
    /// When it came, on the clock of the test: virtual where time is paused.
    pub at: Instant,
}

impl MockRequest {
    /// Returns the body as JSON.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| {
            panic!("the body is not valid JSON ({error}): {}", self.body.escape_ascii())
        })
    }

    /// Returns a header as text, or nothing where it is missing.
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().expect("a header must be text"))
    }
}
