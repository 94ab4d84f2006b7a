//! The record of runs in an SQLite file.
//!
//! [`Record`] is a [`Store`]: give it to a runtime, and its runs are written while they run. What a run waits for is safe
//! before it goes on, also against the loss of power where an effect must not happen twice. After a crash,
//! [`Runtime::resume`](llm_do_runtime::Runtime::resume) continues a run where it was.
//!
//! One thread writes, one transaction for whatever waits. Several processes may write runs into the same file, and read
//! it ([`Reader`]) while others write. A run is written by one runtime at a time.
//!
//! Events are the truth; the other tables are derived from them in the same transaction.

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used))]

#[macro_use]
mod fail_point;

mod bundles;
mod call_rows;
mod claim;
mod damage;
mod error;
mod file_systems;
mod files;
mod forget;
mod lock_holder;
mod migration;
mod prune;
mod questions;
mod queue;
mod read;
mod recorded;
mod repair;
mod retention;
mod schema;
mod sessions;
mod stream;
mod sync;
mod values;
mod writer;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::future::BoxFuture;
use llm_do_core::{Answer, Digest, Event, Key, ProjectBundle, RunId};
use llm_do_runtime::{ClaimedRun, GivenAnswer, RunWriter, Store, StoreError};
use tokio::sync::oneshot;

pub use crate::damage::{damaged_files, is_database};
#[cfg(feature = "failpoints")]
pub use crate::fail_point::FAIL_POINTS;
pub use crate::file_systems::unsafe_file_system;
pub use crate::files::record_files;
pub use crate::prune::PruneFilter;
pub use crate::questions::{AnswerError, RecordedQuestion, question_id};
pub use crate::read::{
    FindError, MIN_ID_CHARS, Reader, RecordedState, RunFilter, RunSummary, UsageBy, UsageRow, short_id,
};
pub use crate::recorded::{RecordedEvent, UnknownEvent};
pub use crate::repair::{RepairOutcome, RepairReport, RepairedRun};
use crate::retention::Sweep;
pub use crate::retention::{Retention, RetentionReport};
pub use crate::sessions::{RecordedTurn, SessionFilter, SessionStatus, SessionSummary};
use crate::writer::EventQueue;

/// A record that can be written to.
///
/// Clones share it. When the last one is dropped, everything that waits is written first.
#[derive(Clone)]
pub struct Record {
    writer: Arc<EventQueue>,
    path: PathBuf,
}

impl Record {
    /// Opens the record in a file, and creates it, with its directory, if it is missing.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, StoreError> {
        let path = path.as_ref();
        files::create_parent(path)?;
        damage::refuse_other_file(path)?;
        // Opened in the middle of being set aside, its files would not belong together.
        let _lock = files::lock_shared(path)?;
        Self::open_locked(path)
    }

    fn open_locked(path: &Path) -> Result<Self, StoreError> {
        files::create(path)?;
        let connection = schema::open_to_write(path)?;
        let writer = EventQueue::start(connection, path)?;
        Ok(Self { writer: Arc::new(writer), path: path.to_owned() })
    }

    /// As [`open`](Self::open), and if the record is damaged, sets it aside and begins a new one. Returns the path that the
    /// damaged one has then.
    pub fn open_or_set_aside(path: impl AsRef<Path>) -> Result<(Self, Option<PathBuf>), StoreError> {
        let path = path.as_ref();
        match Self::open(path) {
            Err(StoreError::Corrupt(_)) => {}
            opened => return Ok((opened?, None)),
        }
        let _lock = files::lock_exclusively(path)?;
        // Another process may have done it meanwhile.
        match Self::open_locked(path) {
            Err(StoreError::Corrupt(_)) => {}
            opened => return Ok((opened?, None)),
        }
        let damaged = damage::set_aside(path)?;
        Ok((Self::open_locked(path)?, Some(damaged)))
    }

    /// Returns the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Opens the same record for reading.
    pub fn reader(&self) -> Result<Reader, StoreError> {
        let reader = Reader::open(&self.path)?;
        reader.ok_or_else(|| StoreError::Io(format!("the record {} was removed", self.path.display())))
    }

    /// Removes runs that were listed, and everything to which only they refer. Returns how many were removed: those that are
    /// being written, or went on since they were listed, stay.
    pub async fn remove(&self, runs: Vec<RunSummary>) -> Result<usize, StoreError> {
        self.ask(move |writing| prune::remove(writing, &runs)).await
    }

    /// Removes a session with all runs that were its turns, so that nothing of it is left in the file. Returns whether it was
    /// there. One that somebody has open stays ([`StoreError::Held`]).
    pub async fn forget_session(&self, session: RunId) -> Result<bool, StoreError> {
        self.ask(move |writing| forget::forget(writing, session)).await
    }

    /// Answers a question of a run, which may be running, parked or interrupted. The first answer counts. `by` says who gives
    /// it.
    pub async fn answer(
        &self,
        run: RunId,
        question: Key,
        answer: Answer,
        by: String,
    ) -> Result<(), AnswerError> {
        self.ask(move |writing| Ok(writing.answer(run, &question, &answer, &by))).await?
    }

    /// Removes runs that are older, or take more space, than the record should keep. Runs that can be resumed stay.
    ///
    /// It takes about as long as `time`, and the next call goes on from there. Returns what was removed once all is done;
    /// `None` before that, and within a day after it.
    pub async fn apply_retention(
        &self,
        retention: Retention,
        time: Duration,
    ) -> Result<Option<RetentionReport>, StoreError> {
        let deadline = Instant::now() + time;
        let begun = self.ask(move |writing| Sweep::begin(writing, retention)).await?;
        let Some(mut sweep) = begun else { return Ok(None) };
        while !sweep.is_done() {
            if Instant::now() >= deadline {
                return Ok(None);
            }
            // One at a time, so that events of a run come in between.
            let step = move |writing: &mut writer::Writing| sweep.step(writing).map(|()| sweep);
            sweep = self.ask(step).await?;
        }
        Ok(Some(sweep.into_report()))
    }

    /// Copies the runs of a damaged record that this one does not have. The damaged file stays as it is.
    pub async fn repair_from(&self, damaged: impl AsRef<Path>) -> Result<RepairReport, StoreError> {
        let damaged = damaged.as_ref().to_owned();
        self.ask(move |writing| repair::repair(writing, &damaged)).await
    }

    /// Has the thread that writes do something, and waits for it.
    async fn ask<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut writer::Writing) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let (sender, receiver) = oneshot::channel();
        self.writer.submit(Box::new(move |writing| {
            let result = work(writing);
            writing.note_damage(result.as_ref().err());
            drop(sender.send(result));
        }));
        receiver.await.unwrap_or_else(|_| Err(StoreError::Io("the writer of the record ended".to_owned())))
    }
}

impl Store for Record {
    fn begin(&self, run: RunId) -> BoxFuture<'_, Result<Arc<dyn RunWriter>, StoreError>> {
        // Its row and its claim are made with its first event, in one transaction.
        Box::pin(std::future::ready(Ok(self.writer.run_writer(run))))
    }

    fn claim(&self, run: RunId) -> BoxFuture<'_, Result<ClaimedRun, StoreError>> {
        Box::pin(async move {
            let work = move |writing: &mut writer::Writing| {
                writing.take_over(run)?;
                recorded::events(&writing.connection, run, None).inspect_err(|_| writing.release(run))
            };
            let events = self.ask(work).await?;
            Ok(ClaimedRun { writer: self.writer.run_writer(run), events })
        })
    }

    fn read(&self, run: RunId, after: Option<u64>) -> BoxFuture<'_, Result<Vec<Arc<Event>>, StoreError>> {
        Box::pin(self.ask(move |writing| recorded::events(&writing.connection, run, after)))
    }

    fn answers(&self, run: RunId) -> BoxFuture<'_, Result<Vec<GivenAnswer>, StoreError>> {
        Box::pin(self.ask(move |writing| questions::answers(&writing.connection, run)))
    }

    fn bundle(&self, digest: Digest) -> BoxFuture<'_, Result<Option<Arc<ProjectBundle>>, StoreError>> {
        let read = move |writing: &mut writer::Writing| bundles::read(&writing.connection, digest);
        Box::pin(async move { Ok(self.ask(read).await?.map(Arc::new)) })
    }
}

impl std::fmt::Debug for Record {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Record").field("path", &self.path).finish_non_exhaustive()
    }
}
