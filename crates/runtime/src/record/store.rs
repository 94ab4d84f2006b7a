//! Where the record of a run is kept.
//!
//! A store appends the events of runs and reads them back. It also decides who may write: a run has one writer at a time,
//! which [`Store::begin`] and [`Store::claim`] hand out. [`MemoryStore`] keeps everything as long as the process lives;
//! the crate `llm-do-record` has a store on disk.

use std::collections::{HashMap, HashSet};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures::future::BoxFuture;
use jiff::Timestamp;
use llm_do_core::{Answer, ApprovalRequest, Digest, Event, Key, ProjectBundle, RunId};
use thiserror::Error;

use crate::sync::{Mutex, oneshot};

/// How safe an event must be before the run continues.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Durability {
    /// Written soon; nobody waits for it.
    Buffered,
    /// Survives the death of the process.
    Process,
    /// Survives the loss of power.
    Power,
}

/// Keeps the records of runs.
pub trait Store: Send + Sync {
    /// Creates the record of a new run, and claims it.
    fn begin(&self, run: RunId) -> BoxFuture<'_, Result<Arc<dyn RunWriter>, StoreError>>;

    /// Claims a recorded run. Until the writer is dropped, no other process and no other runtime can claim it.
    fn claim(&self, run: RunId) -> BoxFuture<'_, Result<ClaimedRun, StoreError>>;

    /// Reads the events of a run that come after `after`, oldest first; all of them without it.
    fn read(&self, run: RunId, after: Option<u64>) -> BoxFuture<'_, Result<Vec<Arc<Event>>, StoreError>>;

    /// Returns the answers to questions of a run that were given outside of it, oldest first.
    fn answers(&self, run: RunId) -> BoxFuture<'_, Result<Vec<GivenAnswer>, StoreError>>;

    /// Reads the files of a project that a writer kept. Whoever keeps none has none.
    fn bundle(&self, _digest: Digest) -> BoxFuture<'_, Result<Option<Arc<ProjectBundle>>, StoreError>> {
        Box::pin(std::future::ready(Ok(None)))
    }

    /// Returns whether anything is kept, so that a run can be resumed.
    fn is_recording(&self) -> bool {
        true
    }
}

/// An answer to a question of a run that was given outside of it: by another process, or while the run was parked.
///
/// It is not an event: the run itself reads it and records what it decides because of it.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct GivenAnswer {
    /// The question: the id of its request.
    pub question: Key,
    /// What the answer is about, as the request names it. It holds for nothing else.
    pub digest: Digest,
    /// The answer.
    pub answer: Answer,
    /// Who gave it.
    pub by: String,
    /// When it was given.
    pub given: Timestamp,
}

impl GivenAnswer {
    /// An answer to a request; `None` if the request is of an earlier version, which did not say what it is about.
    pub fn new(
        request: &ApprovalRequest,
        answer: Answer,
        by: impl Into<String>,
        given: Timestamp,
    ) -> Option<Self> {
        Some(Self { question: request.id.clone(), digest: request.digest?, answer, by: by.into(), given })
    }
}

/// A recorded run that may be continued.
pub struct ClaimedRun {
    /// Writes what happens from now on.
    pub writer: Arc<dyn RunWriter>,
    /// What has happened.
    pub events: Vec<Arc<Event>>,
}

/// Writes the events of one run. Dropping it releases the claim.
pub trait RunWriter: Send + Sync {
    /// Takes an event. Events are written in the order of these calls, whenever their [`Ack`]s are polled.
    ///
    /// After an error, every later event is refused.
    fn enqueue(&self, event: &Arc<Event>, durability: Durability) -> Result<Ack, StoreError>;

    /// Takes the files of the project, which the next event names by this digest. They are kept once, however many runs
    /// name them. By default they are not kept: a run without them can be resumed too.
    fn keep_bundle(&self, _digest: Digest, _bundle: &Arc<ProjectBundle>) {}
}

/// Resolves when an event, and all before it, are as safe as was asked for.
#[must_use]
#[derive(Debug)]
pub struct Ack(AckState);

#[derive(Debug)]
enum AckState {
    Done,
    Waiting(oneshot::Receiver<Result<(), StoreError>>),
}

/// Resolves an [`Ack`]. Dropped without a result, it reports an error.
#[derive(Debug)]
pub struct AckSender(oneshot::Sender<Result<(), StoreError>>);

impl Ack {
    /// An event that is safe already, or that nobody waits for.
    pub fn done() -> Self {
        Self(AckState::Done)
    }

    /// An event that is written elsewhere.
    pub fn pending() -> (AckSender, Self) {
        let (sender, receiver) = oneshot::channel();
        (AckSender(sender), Self(AckState::Waiting(receiver)))
    }
}

impl Future for Ack {
    type Output = Result<(), StoreError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        match &mut self.0 {
            AckState::Done => Poll::Ready(Ok(())),
            AckState::Waiting(receiver) => Pin::new(receiver)
                .poll(context)
                .map(|result| result.unwrap_or_else(|_| Err(StoreError::Io(WRITER_ENDED.to_owned())))),
        }
    }
}

const WRITER_ENDED: &str = "the writer of the record ended before it had written the event";

impl AckSender {
    /// Reports how writing ended. Returns whether anybody still waited for it.
    pub fn send(self, result: Result<(), StoreError>) -> bool {
        self.0.send(result).is_ok()
    }
}

/// Why a store could not do its work.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The store has no such run.
    #[error("there is no run {run} in this record")]
    NotFound {
        /// The run.
        run: RunId,
    },
    /// Somebody else is writing the run.
    #[error("run {run} is being continued by {holder}")]
    Held {
        /// The run.
        run: RunId,
        /// Who writes it, such as "process 4711 on this machine since 14:02".
        holder: String,
    },
    /// Nothing is kept, as no store is set.
    #[error("runs are not recorded here")]
    NotRecorded,
    /// There is no space left.
    #[error("there is no space left for the record: {0}")]
    Full(String),
    /// The record could not be written or read.
    #[error("{0}")]
    Io(String),
    /// The record is damaged.
    #[error("the record is damaged: {0}")]
    Corrupt(String),
    /// The record was written by a newer version of this program.
    #[error("the record has format {found}, and this version knows formats up to {known}")]
    Newer {
        /// The format of the record.
        found: u32,
        /// The newest format that this version knows.
        known: u32,
    },
    /// A run has an event that this version does not know, so it cannot be continued here.
    #[error(
        "run {run} has an event that this version does not know, `{kind}`, written by version {build}: continue it with that version or a newer one"
    )]
    UnknownEvent {
        /// The run.
        run: RunId,
        /// The type of the event.
        kind: String,
        /// The version that wrote it.
        build: String,
    },
    /// Anything else.
    #[error("{0}")]
    Other(String),
}

/// A store that keeps nothing beyond the run's own log.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct NoStore;

impl Store for NoStore {
    fn begin(&self, _run: RunId) -> BoxFuture<'_, Result<Arc<dyn RunWriter>, StoreError>> {
        Box::pin(std::future::ready(Ok(Arc::new(Self) as Arc<dyn RunWriter>)))
    }

    fn claim(&self, _run: RunId) -> BoxFuture<'_, Result<ClaimedRun, StoreError>> {
        Box::pin(std::future::ready(Err(StoreError::NotRecorded)))
    }

    fn read(&self, _run: RunId, _after: Option<u64>) -> BoxFuture<'_, Result<Vec<Arc<Event>>, StoreError>> {
        Box::pin(std::future::ready(Err(StoreError::NotRecorded)))
    }

    fn answers(&self, _run: RunId) -> BoxFuture<'_, Result<Vec<GivenAnswer>, StoreError>> {
        Box::pin(std::future::ready(Ok(Vec::new())))
    }

    fn is_recording(&self) -> bool {
        false
    }
}

impl RunWriter for NoStore {
    fn enqueue(&self, _event: &Arc<Event>, _durability: Durability) -> Result<Ack, StoreError> {
        Ok(Ack::done())
    }
}

/// A store in memory.
///
/// Clones share what they keep.
#[derive(Debug, Clone, Default)]
pub struct MemoryStore {
    records: Arc<Mutex<MemoryRecords>>,
}

#[derive(Debug, Default)]
struct MemoryRecords {
    runs: HashMap<RunId, Vec<Arc<Event>>>,
    claimed: HashSet<RunId>,
    answers: HashMap<RunId, Vec<GivenAnswer>>,
    bundles: HashMap<Digest, Arc<ProjectBundle>>,
}

impl MemoryStore {
    /// A store with the events of earlier runs.
    pub fn from_events(events: impl IntoIterator<Item = Arc<Event>>) -> Self {
        let mut records = MemoryRecords::default();
        for event in events {
            records.runs.entry(event.call.run).or_default().push(event);
        }
        Self { records: Arc::new(Mutex::new(records)) }
    }

    /// Answers a question of a run.
    pub fn answer(&self, run: RunId, answer: GivenAnswer) {
        self.records.lock().answers.entry(run).or_default().push(answer);
    }

    /// Takes the claim of a run, or says that somebody has it.
    fn writer(&self, records: &mut MemoryRecords, run: RunId) -> Result<Arc<dyn RunWriter>, StoreError> {
        if !records.claimed.insert(run) {
            return Err(StoreError::Held { run, holder: "another runtime of this process".to_owned() });
        }
        Ok(Arc::new(MemoryWriter { records: self.records.clone(), run }))
    }

    fn claimed(&self, run: RunId) -> Result<ClaimedRun, StoreError> {
        let mut records = self.records.lock();
        let events = records.runs.get(&run).cloned().ok_or(StoreError::NotFound { run })?;
        Ok(ClaimedRun { writer: self.writer(&mut records, run)?, events })
    }

    fn events(&self, run: RunId, after: Option<u64>) -> Result<Vec<Arc<Event>>, StoreError> {
        let records = self.records.lock();
        let events = records.runs.get(&run).ok_or(StoreError::NotFound { run })?;
        Ok(events.iter().filter(|event| after.is_none_or(|after| event.seq > Some(after))).cloned().collect())
    }
}

impl Store for MemoryStore {
    fn begin(&self, run: RunId) -> BoxFuture<'_, Result<Arc<dyn RunWriter>, StoreError>> {
        let mut records = self.records.lock();
        Box::pin(std::future::ready(self.writer(&mut records, run)))
    }

    fn claim(&self, run: RunId) -> BoxFuture<'_, Result<ClaimedRun, StoreError>> {
        Box::pin(std::future::ready(self.claimed(run)))
    }

    fn read(&self, run: RunId, after: Option<u64>) -> BoxFuture<'_, Result<Vec<Arc<Event>>, StoreError>> {
        Box::pin(std::future::ready(self.events(run, after)))
    }

    fn answers(&self, run: RunId) -> BoxFuture<'_, Result<Vec<GivenAnswer>, StoreError>> {
        let answers = self.records.lock().answers.get(&run).cloned().unwrap_or_default();
        Box::pin(std::future::ready(Ok(answers)))
    }

    fn bundle(&self, digest: Digest) -> BoxFuture<'_, Result<Option<Arc<ProjectBundle>>, StoreError>> {
        let bundle = self.records.lock().bundles.get(&digest).cloned();
        Box::pin(std::future::ready(Ok(bundle)))
    }
}

struct MemoryWriter {
    records: Arc<Mutex<MemoryRecords>>,
    run: RunId,
}

impl RunWriter for MemoryWriter {
    fn enqueue(&self, event: &Arc<Event>, _durability: Durability) -> Result<Ack, StoreError> {
        self.records.lock().runs.entry(self.run).or_default().push(event.clone());
        Ok(Ack::done())
    }

    fn keep_bundle(&self, digest: Digest, bundle: &Arc<ProjectBundle>) {
        self.records.lock().bundles.insert(digest, bundle.clone());
    }
}

impl Drop for MemoryWriter {
    fn drop(&mut self) {
        self.records.lock().claimed.remove(&self.run);
    }
}
