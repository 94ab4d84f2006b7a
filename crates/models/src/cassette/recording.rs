//! Records exchanges while they pass.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use futures::Stream;
use http::{HeaderMap, Request, Response};
use llm_do_core::{ModelError, ModelErrorKind};
use parking_lot::Mutex;

use super::CassetteError;
use super::asked::{Asked, mask_of};
use super::events::without_spread_secrets;
use super::format::{self, Answered, BodyEnding, BodyPiece, Exchange, Outcome};
use super::new_file::NewFile;
use crate::mask::Mask;
use crate::transport::{ByteStream, Chunks, Transport};

/// Headers of a response on which its reader depends. No other is kept.
const KEPT: &[&str] = &["content-type", "retry-after", "retry-after-ms", "x-should-retry"];

/// A file to which exchanges are added.
pub(super) struct Recording {
    path: PathBuf,
    file: Mutex<NewFile>,
    /// Why the last exchange could not be written.
    failure: Mutex<Option<ModelError>>,
    begun: AtomicU64,
    hidden: Mutex<Vec<String>>,
}

impl Recording {
    /// Begins a new file, if there is none or a cassette.
    pub(super) fn create(path: PathBuf) -> Result<Self, CassetteError> {
        let file = match is_special(&path) {
            true => NewFile::at(&path),
            false => NewFile::beside(&path, format::holds_exchanges(&path)?),
        };
        let begun = file.and_then(|mut file| file.append(&format::header()).map(|()| file));
        match begun {
            Err(source) => Err(CassetteError::Unwritable { path, source }),
            Ok(file) => Ok(Self {
                path,
                file: Mutex::new(file),
                failure: Mutex::default(),
                begun: AtomicU64::new(0),
                hidden: Mutex::default(),
            }),
        }
    }

    /// Goes on with a file that holds exchanges.
    pub(super) fn behind(path: PathBuf, exchanges: &[(usize, Exchange)]) -> Result<Self, CassetteError> {
        let begun = exchanges.iter().map(|(_, exchange)| exchange.number).max().unwrap_or_default();
        match NewFile::behind(&path) {
            Err(source) => Err(CassetteError::Unwritable { path, source }),
            Ok(file) => Ok(Self {
                path,
                file: Mutex::new(file),
                failure: Mutex::default(),
                begun: AtomicU64::new(begun),
                hidden: Mutex::default(),
            }),
        }
    }

    pub(super) fn hide(&self, secrets: impl IntoIterator<Item = String>) {
        self.hidden.lock().extend(secrets);
    }

    /// Says that nothing was recorded, or that an older recording was kept because this one holds no answer.
    pub(super) fn warning(&self) -> Option<String> {
        if self.begun.load(Ordering::Relaxed) == 0 {
            return Some(format!(
                "no request was sent, so nothing is recorded in the cassette `{}`; test and script models send none",
                self.path.display()
            ));
        }
        let file = self.file.lock();
        (file.lines > 1 && file.target.is_some()).then(|| {
            format!(
                "no provider answered, so the cassette `{}` is left as it was; to record failures, delete it first",
                self.path.display()
            )
        })
    }

    /// Sends a request and records what comes of it.
    pub(super) async fn exchange(
        recording: &Arc<Self>,
        inner: &dyn Transport,
        request: Request<Chunks>,
    ) -> Result<Response<ByteStream>, ModelError> {
        if let Some(failure) = recording.failure.lock().clone() {
            return Err(failure);
        }
        let open = OpenExchange::new(Arc::clone(recording), &request);
        match inner.send(request).await {
            Ok(response) => Ok(open.answered(response)),
            Err(error) => {
                open.write(Outcome::Error(open.mask.error(error.clone())))?;
                Err(error)
            }
        }
    }

    fn write(&self, exchange: &Exchange) -> Result<(), ModelError> {
        let line = serde_json::to_string(exchange).map_err(io::Error::from);
        let written = line.and_then(|line| {
            let mut file = self.file.lock();
            file.append(&line)?;
            file.stand_in(exchange.outcome.is_answer())
        });
        written.map_err(|error| {
            let message = format!("the cassette `{}` cannot be written: {error}", self.path.display());
            let failure = ModelError::new(ModelErrorKind::Invalid, message);
            *self.failure.lock() = Some(failure.clone());
            failure
        })
    }
}

/// Returns whether a path names a device or a pipe, which cannot be replaced.
fn is_special(path: &Path) -> bool {
    path.metadata().is_ok_and(|found| !found.is_file() && !found.is_dir())
}

/// An exchange under way.
struct OpenExchange {
    recording: Arc<Recording>,
    number: u64,
    mask: Mask,
    asked: Asked,
}

impl OpenExchange {
    fn new(recording: Arc<Recording>, request: &Request<Chunks>) -> Self {
        let mask = mask_of(request, recording.hidden.lock().clone());
        let asked = Asked::new(request, &mask);
        Self { number: recording.begun.fetch_add(1, Ordering::Relaxed) + 1, recording, mask, asked }
    }

    fn answered(self, response: Response<ByteStream>) -> Response<ByteStream> {
        let (head, inner) = response.into_parts();
        let headers = kept(&head.headers, &self.mask);
        let status = head.status.as_u16();
        let tee = Tee { inner, pieces: Vec::new(), head: Some((self, status, headers)) };
        Response::from_parts(head, Box::pin(tee))
    }

    fn write(&self, outcome: Outcome) -> Result<(), ModelError> {
        let (number, request) = (self.number, self.asked.clone());
        self.recording.write(&Exchange { number, request, outcome })
    }
}

fn kept(headers: &HeaderMap, mask: &Mask) -> BTreeMap<String, String> {
    let kept = headers.iter().filter(|(name, _)| KEPT.contains(&name.as_str()));
    let texts = kept.filter_map(|(name, value)| Some((name.to_string(), value.to_str().ok()?)));
    texts.map(|(name, value)| (name, mask.text(value).into_owned())).collect()
}

/// A body that is handed on at once, and kept until it ends.
struct Tee {
    inner: ByteStream,
    pieces: Vec<Bytes>,
    /// Gone when the exchange is written.
    head: Option<(OpenExchange, u16, BTreeMap<String, String>)>,
}

impl Tee {
    fn end(&mut self, ending: BodyEnding) -> Result<(), ModelError> {
        let Some((open, status, headers)) = self.head.take() else { return Ok(()) };
        // A body with a secret spread over its events is kept as one piece, since they are written anew.
        let pieces = match without_spread_secrets(&open.mask, &self.pieces.concat()) {
            Some(body) => vec![BodyPiece::new(open.mask.pieces(&[body]).concat())],
            None => open.mask.pieces(&self.pieces).into_iter().map(BodyPiece::new).collect(),
        };
        let ending = match ending {
            BodyEnding::Cut(error) => BodyEnding::Cut(open.mask.error(error)),
            other => other,
        };
        open.write(Outcome::Response(Answered { status, headers, pieces, ending }))
    }
}

impl Stream for Tee {
    type Item = Result<Bytes, ModelError>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let next = ready!(self.inner.as_mut().poll_next(context));
        let written = match &next {
            Some(Ok(piece)) => {
                self.pieces.push(piece.clone());
                Ok(())
            }
            Some(Err(error)) => self.end(BodyEnding::Cut(error.clone())),
            None => self.end(BodyEnding::Whole),
        };
        Poll::Ready(match written {
            Ok(()) => next,
            Err(failure) => Some(Err(failure)),
        })
    }
}

impl Drop for Tee {
    fn drop(&mut self) {
        // A failure is kept for the next request.
        let _kept = self.end(BodyEnding::Unread);
    }
}
