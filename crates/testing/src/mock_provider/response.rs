//! The script: what a provider answers, and what goes wrong.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use jiff::Timestamp;
use jiff::fmt::rfc2822::DateTimePrinter;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use crate::Chance;

/// In a header, stands for the HTTP date of two seconds after the response is sent.
const DATE_IN_TWO_SECONDS: &str = "{HTTP_DATE_NOW_PLUS_2S}";

/// One answer of a provider, or a fault in its place.
///
/// It can be read from JSON: `{status, headers, body}` with any of `cut_after_bytes`, `drip`,
/// `stall_after_bytes` with `stall_ms`, and `append_generated`; or `{fault}`. The text
/// `{HTTP_DATE_NOW_PLUS_2S}` in a header becomes such a date on the clock of the machine, which virtual time
/// does not move: whoever compares it with another clock must set that one to the machine's.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct MockResponse {
    #[serde(default = "ok")]
    pub(super) status: u16,
    #[serde(default)]
    pub(super) headers: BTreeMap<String, String>,
    #[serde(default, rename = "body", deserialize_with = "one_piece")]
    pub(super) pieces: Vec<Bytes>,
    #[serde(default)]
    pub(super) cut_after_bytes: Option<usize>,
    #[serde(default)]
    pub(super) drip: Option<Drip>,
    #[serde(default)]
    pub(super) stall_after_bytes: Option<usize>,
    #[serde(default)]
    pub(super) stall_ms: u64,
    #[serde(default)]
    pub(super) append_generated: Option<Generated>,
    #[serde(default)]
    pub(super) fault: Option<Fault>,
}

/// A body that comes in small parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub struct Drip {
    /// The size of a part.
    pub bytes: usize,
    /// The time between two parts.
    pub every_ms: u64,
}

/// A text too long to be written down, at the end of a body.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Generated {
    /// What it begins with.
    pub prefix: String,
    /// What is repeated.
    pub repeat: String,
    /// How often.
    pub count: usize,
    /// What it ends with.
    pub suffix: String,
}

/// What goes wrong instead of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fault {
    /// Nothing listens.
    RefuseConnection,
    /// The request is read, and the connection reset.
    ResetBeforeHeaders,
    /// The request is read, and nothing follows.
    HangBeforeHeaders,
    /// The host's name has no address. Only [`FakeTransport`](super::FakeTransport) can do this.
    DnsFailure,
    /// The host's certificate is not trusted. Only [`FakeTransport`](super::FakeTransport) can do this.
    TlsFailure,
}

impl MockResponse {
    /// A response with this status and an empty body.
    pub fn status(status: u16) -> Self {
        Self {
            status,
            headers: BTreeMap::new(),
            pieces: Vec::new(),
            cut_after_bytes: None,
            drip: None,
            stall_after_bytes: None,
            stall_ms: 0,
            append_generated: None,
            fault: None,
        }
    }

    /// A stream of events, given as the text of the whole body.
    pub fn events(body: impl Into<Bytes>) -> Self {
        Self::status(200).header("content-type", "text/event-stream").body(body)
    }

    /// A JSON document with this status.
    pub fn json(status: u16, body: &Value) -> Self {
        Self::status(status).header("content-type", "application/json").body(body.to_string())
    }

    /// A fault instead of a response.
    pub fn fault(fault: Fault) -> Self {
        Self { fault: Some(fault), ..Self::status(200) }
    }

    /// The response with a header.
    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.insert(name.to_owned(), value.to_owned());
        self
    }

    /// The response with this body, sent at once.
    #[must_use]
    pub fn body(self, body: impl Into<Bytes>) -> Self {
        self.pieces([body])
    }

    /// The response with a body in these pieces.
    #[must_use]
    pub fn pieces<B: Into<Bytes>>(mut self, pieces: impl IntoIterator<Item = B>) -> Self {
        self.pieces = pieces.into_iter().map(Into::into).filter(|piece| !piece.is_empty()).collect();
        self
    }

    /// The response, cut off after so many bytes of its body.
    #[must_use]
    pub fn cut_after(mut self, bytes: usize) -> Self {
        self.cut_after_bytes = Some(bytes);
        self
    }

    /// The response in parts of so many bytes, with a time between them.
    #[must_use]
    pub fn drip(mut self, bytes: usize, every: Duration) -> Self {
        self.drip = Some(Drip { bytes, every_ms: milliseconds(every) });
        self
    }

    /// The response, silent for a time after so many bytes of its body.
    #[must_use]
    pub fn stall_after(mut self, bytes: usize, time: Duration) -> Self {
        (self.stall_after_bytes, self.stall_ms) = (Some(bytes), milliseconds(time));
        self
    }

    /// The response, with one of the things that can go wrong at a provider.
    ///
    /// The certificate is always trusted: that it is not is not a fault that a retry could cure.
    #[must_use]
    pub fn broken(&self, chance: &mut Chance) -> Self {
        let length = self.pieces.iter().map(Bytes::len).sum::<usize>();
        match chance.below(9) {
            0 => Self::fault(Fault::RefuseConnection),
            1 => Self::fault(Fault::ResetBeforeHeaders),
            2 => Self::fault(Fault::HangBeforeHeaders),
            3 => Self::fault(Fault::DnsFailure),
            4 => Self::status(*chance.one_of(&[408, 409, 500, 502, 503, 529])),
            5 => Self::status(429).header("retry-after", &chance.between(0, 5).to_string()),
            6 => self.clone().stall_after(chance.below(length), Duration::from_secs(86_400)),
            7 => self
                .clone()
                .drip(chance.between(1, 64), Duration::from_millis(1))
                .cut_after(chance.below(length)),
            _ => self.clone().cut_after(chance.below(length)),
        }
    }

    /// Returns the headers as they are sent now.
    pub(super) fn headers_at(&self, now: Timestamp) -> Vec<(&str, String)> {
        let date = || {
            let date = DateTimePrinter::new().timestamp_to_rfc9110_string(&(now + Duration::from_secs(2)));
            date.expect("the clock must show a year of four digits")
        };
        let headers = self.headers.iter().map(|(name, value)| match value.contains(DATE_IN_TWO_SECONDS) {
            true => (name.as_str(), value.replace(DATE_IN_TWO_SECONDS, &date())),
            false => (name.as_str(), value.clone()),
        });
        headers.collect()
    }

    /// Returns the length that the head promises, where the script has one.
    pub(super) fn promised_length(&self) -> Option<usize> {
        let length = self.headers.iter().find(|(name, _)| name.eq_ignore_ascii_case("content-length"))?.1;
        Some(length.parse().expect("the length of a body must be a number"))
    }
}

fn ok() -> u16 {
    200
}

fn one_piece<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Bytes>, D::Error> {
    let body = String::deserialize(deserializer)?;
    Ok(if body.is_empty() { Vec::new() } else { vec![body.into()] })
}

fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).expect("a test does not take that long")
}
