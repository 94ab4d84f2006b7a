//! Recordings of the traffic with providers, and their replay without a network.
//!
//! A cassette is a file of JSON Lines: a header, then one line per exchange, written when the exchange ends, so
//! that a crash loses no more than what was under way. A file that is there already is replaced when there is
//! something to put in its place, and only if it is a cassette. It holds no key: headers that carry one are left out, and
//! keys are removed from addresses, bodies and errors.
//!
//! A replay answers by what is asked, not by when: calls in parallel may come in any order, and each exchange
//! is used once. Bodies come in the pieces in which they were received.

mod asked;
mod difference;
mod error;
mod events;
mod format;
mod new_file;
mod recording;
mod replay;
#[cfg(test)]
mod tests;

use std::path::PathBuf;
use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;
use http::{Request, Response};
use llm_do_core::ModelError;
use parking_lot::{Mutex, MutexGuard};

use crate::transport::{ByteStream, Chunks, Transport};
pub use error::CassetteError;
use recording::Recording;
use replay::CassetteReplay;

/// A file of recorded exchanges. Clones share it.
///
/// ```
/// # use std::sync::Arc;
/// # use llm_do_models::{Cassette, CassetteMode, HttpSettings, HttpTransport, Transport};
/// # fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let cassette = Cassette::open("tests/greeting.cassette", CassetteMode::Auto)?;
/// let transport = cassette.transport(Arc::new(HttpTransport::new(HttpSettings::default())?));
/// // ... a run that uses the transport ...
/// assert_eq!(cassette.unused(), Vec::<String>::new());
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Cassette {
    tape: Tape,
    warnings: Warnings,
}

/// What to do with a cassette.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum CassetteMode {
    /// Replays strictly where the file holds an exchange, else records.
    Auto,
    /// Records, in place of what the file holds. That is kept until a provider has answered.
    Record,
    /// Records behind what the file holds: for a run that goes on.
    Append,
    /// Replays.
    Replay {
        /// Whether a request that was not recorded is an error. Otherwise the nearest unused exchange with the
        /// same path answers, with a warning.
        strict: bool,
    },
}

#[derive(Clone)]
enum Tape {
    Recording(Arc<Recording>),
    Replay(Arc<CassetteReplay>),
}

impl Cassette {
    /// Opens a cassette.
    pub fn open(path: impl Into<PathBuf>, mode: CassetteMode) -> Result<Self, CassetteError> {
        let (path, warnings) = (path.into(), Warnings::default());
        let tape = match mode {
            CassetteMode::Record => Tape::record(path)?,
            CassetteMode::Replay { strict } => {
                let exchanges = format::read(&path, &warnings)?;
                Tape::Replay(Arc::new(CassetteReplay::new(path, exchanges, strict, warnings.clone())))
            }
            CassetteMode::Append if !path.exists() => Tape::record(path)?,
            CassetteMode::Append => match format::read(&path, &warnings)? {
                exchanges if exchanges.is_empty() => Tape::record(path)?,
                exchanges => Tape::Recording(Arc::new(Recording::behind(path, &exchanges)?)),
            },
            CassetteMode::Auto if !path.exists() => Tape::record(path)?,
            CassetteMode::Auto => match format::read(&path, &warnings)? {
                exchanges if exchanges.is_empty() && !warnings.all().is_empty() => {
                    return Err(CassetteError::Torn { path });
                }
                exchanges if exchanges.is_empty() => Tape::record(path)?,
                exchanges => {
                    Tape::Replay(Arc::new(CassetteReplay::new(path, exchanges, true, warnings.clone())))
                }
            },
        };
        Ok(Self { tape, warnings })
    }

    /// Returns a transport that plays the cassette, or that sends with another one and records it.
    pub fn transport(&self, inner: Arc<dyn Transport>) -> Arc<dyn Transport> {
        match &self.tape {
            Tape::Replay(replay) => Arc::<CassetteReplay>::clone(replay),
            Tape::Recording(recording) => Arc::new(Recorded { inner, recording: Arc::clone(recording) }),
        }
    }

    /// Removes more secrets from what is recorded, besides those that the requests themselves carry.
    pub fn hide(&self, secrets: impl IntoIterator<Item = String>) {
        match &self.tape {
            Tape::Recording(recording) => recording.hide(secrets),
            Tape::Replay(replay) => replay.hide(secrets),
        }
    }

    /// Leaves out the first exchanges, which an earlier process has used: for a run that goes on.
    pub fn pass_over(&self, exchanges: usize) {
        if let Tape::Replay(replay) = &self.tape {
            replay.pass_over(exchanges);
        }
    }

    /// Returns whether the cassette is played, so that neither a network nor a key is needed.
    pub fn is_replaying(&self) -> bool {
        matches!(self.tape, Tape::Replay(_))
    }

    /// Returns what a person should know: a line of the file that was cut, answers to other requests.
    pub fn warnings(&self) -> Vec<String> {
        let mut warnings = self.warnings.all().clone();
        if let Tape::Recording(recording) = &self.tape {
            warnings.extend(recording.warning());
        }
        warnings
    }

    /// Returns the recorded exchanges that nobody has asked for, each as its line, method and path.
    pub fn unused(&self) -> Vec<String> {
        match &self.tape {
            Tape::Recording(_) => Vec::new(),
            Tape::Replay(replay) => replay.unused(),
        }
    }
}

impl Tape {
    fn record(path: PathBuf) -> Result<Self, CassetteError> {
        Ok(Self::Recording(Arc::new(Recording::create(path)?)))
    }
}

/// Sends with another transport and records what came.
struct Recorded {
    inner: Arc<dyn Transport>,
    recording: Arc<Recording>,
}

impl Transport for Recorded {
    fn send(&self, request: Request<Chunks>) -> BoxFuture<'_, Result<Response<ByteStream>, ModelError>> {
        Recording::exchange(&self.recording, self.inner.as_ref(), request).boxed()
    }
}

impl Transport for CassetteReplay {
    fn send(&self, request: Request<Chunks>) -> BoxFuture<'_, Result<Response<ByteStream>, ModelError>> {
        std::future::ready(self.answer(&request)).boxed()
    }

    fn needs_keys(&self) -> bool {
        false
    }
}

/// What a person should know, in the order in which it happened.
#[derive(Clone, Default)]
struct Warnings(Arc<Mutex<Vec<String>>>);

impl Warnings {
    fn all(&self) -> MutexGuard<'_, Vec<String>> {
        self.0.lock()
    }
}
