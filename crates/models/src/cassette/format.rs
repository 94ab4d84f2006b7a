//! The file: a header, then one exchange per line.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use llm_do_core::ModelError;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::asked::Asked;
use super::{CassetteError, Warnings};
use crate::regular_file;

/// The version of the format, raised when a reader of the old one would err.
const VERSION: u64 = 1;
/// The field of the first line that tells a cassette from other files, and its version.
const HEADER: &str = "llm_do_cassette";

/// One request and what came of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Exchange {
    /// When it began, counted over the recording: lines are in the order in which exchanges ended.
    pub(super) number: u64,
    pub(super) request: Asked,
    #[serde(flatten)]
    pub(super) outcome: Outcome,
}

/// What came of a request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Outcome {
    Response(Answered),
    /// The request failed before a response came.
    Error(ModelError),
}

impl Outcome {
    /// Returns whether a provider did what it was asked.
    pub(super) fn is_answer(&self) -> bool {
        matches!(self, Self::Response(answered) if (200..300).contains(&answered.status))
    }
}

/// A response.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Answered {
    pub(super) status: u16,
    pub(super) headers: BTreeMap<String, String>,
    /// The body in the pieces in which it came.
    pub(super) pieces: Vec<BodyPiece>,
    #[serde(default, skip_serializing_if = "BodyEnding::is_whole")]
    pub(super) ending: BodyEnding,
}

/// How a body ended.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum BodyEnding {
    /// As it should.
    #[default]
    Whole,
    /// The connection broke.
    Cut(ModelError),
    /// Its reader wanted no more.
    Unread,
}

impl BodyEnding {
    fn is_whole(&self) -> bool {
        *self == Self::Whole
    }
}

/// A piece of a body.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub(super) enum BodyPiece {
    Text(String),
    /// Bytes that are not UTF-8, such as half of a letter.
    Bytes {
        base64: String,
    },
}

impl BodyPiece {
    pub(super) fn new(bytes: Vec<u8>) -> Self {
        String::from_utf8(bytes)
            .map_or_else(|error| Self::Bytes { base64: STANDARD.encode(error.as_bytes()) }, Self::Text)
    }

    fn is_readable(&self) -> bool {
        match self {
            Self::Text(_) => true,
            Self::Bytes { base64 } => STANDARD.decode(base64).is_ok(),
        }
    }

    pub(super) fn to_bytes(&self) -> Bytes {
        match self {
            Self::Text(text) => Bytes::copy_from_slice(text.as_bytes()),
            Self::Bytes { base64 } => STANDARD.decode(base64).unwrap_or_default().into(),
        }
    }
}

/// Returns the first line of a file.
pub(super) fn header() -> String {
    format!("{{\"{HEADER}\":{VERSION}}}")
}

/// Reads the exchanges of a file, in the order in which they began, each with its line.
pub(super) fn read(path: &Path, warnings: &Warnings) -> Result<Vec<(usize, Exchange)>, CassetteError> {
    let bytes = regular_file::read(path)
        .map_err(|source| CassetteError::Unreadable { path: path.to_owned(), source })?;
    let mut lines = bytes.split_inclusive(|byte| *byte == b'\n').zip(1..);
    check_header(path, lines.next().map(|(line, _)| line))?;
    let mut exchanges = Vec::new();
    for (line, number) in lines {
        match exchange(line) {
            Ok(None) => {}
            Ok(Some(exchange)) => exchanges.push((number, exchange)),
            // What the recording's process did not live to write to its end.
            Err(_) if !line.ends_with(b"\n") => warnings.all().push(format!(
                "line {number} of the cassette `{}` was cut while it was written and is not used",
                path.display()
            )),
            Err(why) => return Err(CassetteError::Line { path: path.to_owned(), line: number, why }),
        }
    }
    exchanges.sort_by_key(|(_, exchange)| exchange.number);
    Ok(exchanges)
}

/// Returns whether there is a cassette with exchanges. A file that is something else is an error.
pub(super) fn holds_exchanges(path: &Path) -> Result<bool, CassetteError> {
    let bytes = match regular_file::read(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        read => read.map_err(|source| CassetteError::Unreadable { path: path.to_owned(), source })?,
    };
    let mut lines = bytes.split_inclusive(|byte| *byte == b'\n');
    match check_header(path, lines.next()) {
        // What an earlier or later version recorded may be replaced too.
        Ok(()) | Err(CassetteError::Version { .. }) => Ok(lines.any(|line| !line.trim_ascii().is_empty())),
        Err(error) => Err(error),
    }
}

fn check_header(path: &Path, line: Option<&[u8]>) -> Result<(), CassetteError> {
    // A file without a line is a recording that never began.
    let Some(line) = line else { return Ok(()) };
    let header = serde_json::from_slice::<Value>(line).unwrap_or_default();
    match header[HEADER].as_u64() {
        Some(VERSION) => Ok(()),
        Some(version) => Err(CassetteError::Version { path: path.to_owned(), version }),
        None => Err(CassetteError::NotACassette { path: path.to_owned() }),
    }
}

fn exchange(line: &[u8]) -> Result<Option<Exchange>, String> {
    if line.trim_ascii().is_empty() {
        return Ok(None);
    }
    let exchange: Exchange = serde_json::from_slice(line).map_err(|error| error.to_string())?;
    match &exchange.outcome {
        Outcome::Response(answered) if !answered.pieces.iter().all(BodyPiece::is_readable) => {
            Err("a piece of its body is not base64".to_owned())
        }
        Outcome::Response(answered) if http::StatusCode::from_u16(answered.status).is_err() => {
            Err(format!("{} is not a status", answered.status))
        }
        _ => Ok(Some(exchange)),
    }
}
