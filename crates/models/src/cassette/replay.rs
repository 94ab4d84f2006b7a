//! Answers requests from recorded exchanges.

use std::path::PathBuf;

use bytes::Bytes;
use futures::StreamExt;
use futures::stream;
use http::header::RETRY_AFTER;
use http::{HeaderName, HeaderValue, Request, Response, StatusCode};
use llm_do_core::{ModelError, ModelErrorKind};
use parking_lot::Mutex;

use super::Warnings;
use super::asked::{Asked, mask_of};
use super::difference::difference;
use super::format::{Answered, BodyEnding, BodyPiece, Exchange, Outcome};
use crate::mask::Mask;
use crate::transport::{ByteStream, Chunks};

/// The header in which some providers say how many milliseconds to wait.
const RETRY_AFTER_MS: &str = "retry-after-ms";

/// The longest wait, in seconds, that is left out of a replay whatever follows. Who was told to wait longer and did
/// not ask again must not ask again now.
const MAX_WAIT: f64 = 60.0;

/// Recorded exchanges, each to be used once.
pub(super) struct CassetteReplay {
    path: PathBuf,
    is_strict: bool,
    recorded: Mutex<Vec<Recorded>>,
    warnings: Warnings,
    hidden: Mutex<Vec<String>>,
}

struct Recorded {
    line: usize,
    exchange: Exchange,
    is_used: bool,
}

impl CassetteReplay {
    pub(super) fn new(
        path: PathBuf,
        exchanges: Vec<(usize, Exchange)>,
        is_strict: bool,
        warnings: Warnings,
    ) -> Self {
        let recorded =
            exchanges.into_iter().map(|(line, exchange)| Recorded { line, exchange, is_used: false });
        Self { path, is_strict, recorded: Mutex::new(recorded.collect()), warnings, hidden: Mutex::default() }
    }

    pub(super) fn hide(&self, secrets: impl IntoIterator<Item = String>) {
        self.hidden.lock().extend(secrets);
    }

    pub(super) fn pass_over(&self, exchanges: usize) {
        self.recorded.lock().iter_mut().take(exchanges).for_each(|one| one.is_used = true);
    }

    pub(super) fn unused(&self) -> Vec<String> {
        let recorded = self.recorded.lock();
        let unused = recorded.iter().filter(|recorded| !recorded.is_used);
        let described = unused.map(|Recorded { line, exchange, .. }| {
            format!("line {line}: {} {}", exchange.request.method, exchange.request.target())
        });
        described.collect()
    }

    /// Answers a request with the exchange that was recorded for it.
    pub(super) fn answer(&self, request: &Request<Chunks>) -> Result<Response<ByteStream>, ModelError> {
        let asked = Asked::new(request, &mask_of(request, self.hidden.lock().clone()));
        // A key of today may be a word of the recorded prompt, which was recorded unmasked.
        let unmasked = Asked::new(request, &Mask::default());
        let mut recorded = self.recorded.lock();
        let same = recorded.iter().position(|one| {
            let request = &one.exchange.request;
            !one.is_used && (request.asks_like(&unmasked) || request.asks_like(&asked))
        });
        let chosen = match same {
            Some(index) => index,
            None => self.nearest(&recorded, &asked)?,
        };
        recorded[chosen].is_used = true;
        let Exchange { request, outcome, .. } = &recorded[chosen].exchange;
        let is_asked_again =
            recorded.iter().any(|one| !one.is_used && one.exchange.request.asks_like(request));
        played(outcome, is_asked_again)
    }

    /// Chooses an exchange for a request that was not recorded, where that is permitted.
    fn nearest(&self, recorded: &[Recorded], asked: &Asked) -> Result<usize, ModelError> {
        let unused = recorded.iter().enumerate().filter(|(_, one)| !one.is_used);
        let same_path = unused.clone().filter(|(_, one)| one.exchange.request.goes_where(asked));
        let nearest = most_alike(same_path, asked);
        let describe = |to: Option<&Recorded>| self.describe(recorded, asked, to);
        match nearest {
            Some((index, one)) if !self.is_strict => {
                let message = describe(Some(one));
                self.warnings.all().push(format!("{message}\nline {} answers it all the same", one.line));
                Ok(index)
            }
            nearest => {
                let nearest = nearest.or_else(|| most_alike(unused, asked)).map(|(_, one)| one);
                let message = format!("{}\nto record anew, use `--cassette-mode record`", describe(nearest));
                Err(ModelError::new(ModelErrorKind::Invalid, message))
            }
        }
    }

    fn describe(&self, recorded: &[Recorded], asked: &Asked, nearest: Option<&Recorded>) -> String {
        let path = self.path.display();
        let request = format!("{} {}", asked.method, asked.target());
        let times = recorded.iter().filter(|one| one.exchange.request.asks_like(asked)).count();
        let what = match times {
            0 => format!("the cassette `{path}` has no answer to this request: {request}"),
            _ => {
                format!("the cassette `{path}` has no more answers to this request, only {times}: {request}")
            }
        };
        match nearest {
            None => format!("{what}\nno recorded exchange is left"),
            Some(one) => {
                let difference = difference(&one.exchange.request, asked);
                format!(
                    "{what}\nthe nearest that is left is in line {}; it differs so:\n{difference}",
                    one.line
                )
            }
        }
    }
}

fn most_alike<'a>(
    recorded: impl Iterator<Item = (usize, &'a Recorded)>,
    asked: &Asked,
) -> Option<(usize, &'a Recorded)> {
    let measured =
        recorded.map(|(index, one)| (super::difference::likeness(&one.exchange.request, asked), index, one));
    // Of those alike, the first is taken.
    let best = measured.max_by(|(one, first, _), (other, second, _)| one.cmp(other).then(second.cmp(first)));
    best.map(|(_, index, one)| (index, one))
}

fn played(outcome: &Outcome, is_asked_again: bool) -> Result<Response<ByteStream>, ModelError> {
    match outcome {
        Outcome::Error(error) => Err(error.clone()),
        Outcome::Response(answered) => {
            let mut response = Response::new(body(answered));
            *response.status_mut() = StatusCode::from_u16(answered.status).unwrap_or_default();
            let headers = answered.headers.iter().filter_map(|(name, value)| {
                Some((HeaderName::try_from(name).ok()?, HeaderValue::try_from(value).ok()?))
            });
            response.headers_mut().extend(headers);
            if is_asked_again || asks_to_wait(answered).is_some_and(|wait| wait <= MAX_WAIT) {
                response.headers_mut().remove(RETRY_AFTER_MS);
                response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("0"));
            }
            Ok(response)
        }
    }
}

/// Returns the seconds that a provider asked to wait.
fn asks_to_wait(answered: &Answered) -> Option<f64> {
    let number = |name: &str| answered.headers.get(name)?.trim().parse::<f64>().ok();
    number(RETRY_AFTER_MS).map(|wait| wait / 1_000.0).or_else(|| number(RETRY_AFTER.as_str()))
}

fn body(answered: &Answered) -> ByteStream {
    let pieces: Vec<Bytes> = answered.pieces.iter().map(BodyPiece::to_bytes).collect();
    let end = match &answered.ending {
        BodyEnding::Whole => None,
        BodyEnding::Cut(error) => Some(error.clone()),
        BodyEnding::Unread => Some(ModelError::new(
            ModelErrorKind::Network,
            "the recorded answer ends here, since it was not read to its end",
        )),
    };
    stream::iter(pieces.into_iter().map(Ok)).chain(stream::iter(end.map(Err))).boxed()
}
