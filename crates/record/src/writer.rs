//! The thread that writes: one transaction for all events that wait, of whatever runs.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use llm_do_core::{Answer, Digest, Event, EventBody, Key, ProjectBundle, RunId};
use llm_do_runtime::{Ack, AckSender, Durability, RunWriter, StoreError};
use parking_lot::Mutex;
use rusqlite::Connection;
use rusqlite::ffi::{SQLITE_IOERR_DIR_FSYNC, SQLITE_IOERR_FSYNC};

use crate::bundles;
use crate::claim::{Claim, describe, is_gone};
use crate::damage;
use crate::error::{from_io, from_sqlite};
use crate::lock_holder::lock_holder;
use crate::questions::{self, AnswerError};
use crate::queue::{Load, Queue, Waiting};
use crate::schema::{self, PAGE_BYTES};
use crate::stream::Stream;

/// How long the lock of a process that is gone is waited for.
const MAX_LOCK_OF_GONE: Duration = Duration::from_secs(2);

/// How large a log may be that is left when a process ends.
const FINAL_LOG_BYTES: u64 = 1024 * 1024;

/// How large the log may be before its content is moved into the database: when nothing else is to do, and in any case.
const IDLE_LOG_BYTES: u64 = 4 * 1024 * 1024;
const MAX_LOG_BYTES: u64 = 32 * 1024 * 1024;

/// Work for the thread.
pub(crate) type Job = Box<dyn FnOnce(&mut Writing) + Send>;

/// Hands events and work to the thread. Dropping it ends the thread when everything is written.
pub(crate) struct EventQueue {
    queue: Arc<Queue<QueuedWork>>,
    thread: Option<JoinHandle<()>>,
}

/// What the thread is given.
enum QueuedWork {
    Event {
        run: Arc<ClaimedStream>,
        event: Arc<Event>,
        durability: Durability,
        ack: Option<AckSender>,
        load: Load,
    },
    Job(Job),
}

impl Waiting for QueuedWork {
    fn load(&self) -> Load {
        match self {
            Self::Event { load, .. } => *load,
            Self::Job(_) => Load::default(),
        }
    }

    fn is_awaited(&self) -> bool {
        !matches!(self, Self::Event { ack: None, .. })
    }
}

/// Returns about how much memory an event takes while it waits.
fn load_of(event: &Event) -> Load {
    let mut counter = ByteCounter(0);
    // It is serialized again when it is written, and what cannot be is reported then.
    let _ = serde_json::to_writer(&mut counter, &event.body);
    Load { events: 1, bytes: counter.0 }
}

/// Counts what is written to it.
struct ByteCounter(usize);

impl io::Write for ByteCounter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A run that this process writes.
pub(crate) struct ClaimedStream {
    run: RunId,
    /// Why nothing more of it is written.
    broken: Mutex<Option<StoreError>>,
    /// The files of its project, until they are written with the event that names them.
    bundle: Mutex<Option<(Digest, Arc<ProjectBundle>)>>,
}

impl EventQueue {
    /// Starts the thread over a connection.
    pub(crate) fn start(mut connection: Connection, path: &Path) -> Result<Self, StoreError> {
        let queue = Arc::new(Queue::new());
        // The file of the log does not say how much is in it, as it never shrinks.
        let log_pages = Arc::new(AtomicU64::new(0));
        let noted = log_pages.clone();
        let note = move |_: &mut rusqlite::hooks::Wal, pages: i32| {
            noted.store(u64::from(pages.unsigned_abs()), Ordering::Relaxed);
            Ok(())
        };
        connection.wal_hook(Some(note)).map_err(from_sqlite)?;
        let mut writing = Writing {
            connection,
            log_pages,
            path: path.to_owned(),
            streams: HashMap::new(),
            is_synced: false,
            failed_sync: None,
            has_removed: false,
        };
        let own = queue.clone();
        let thread = std::thread::Builder::new()
            .name("llm-do-record".to_owned())
            .spawn(move || writing.run(&own))
            .map_err(|error| from_io("the thread that writes the record cannot be started", &error))?;
        Ok(Self { queue, thread: Some(thread) })
    }

    /// Has work done after everything that was handed over before it.
    pub(crate) fn submit(&self, job: Job) {
        // Nobody refuses work for which somebody waits.
        let _ = self.queue.push(QueuedWork::Job(job));
    }

    /// Returns what writes the events of a run.
    pub(crate) fn run_writer(self: &Arc<Self>, run: RunId) -> Arc<dyn RunWriter> {
        let stream = Arc::new(ClaimedStream { run, broken: Mutex::default(), bundle: Mutex::default() });
        Arc::new(StreamWriter { writer: self.clone(), stream })
    }
}

impl Drop for EventQueue {
    fn drop(&mut self) {
        self.queue.close();
        if let Some(thread) = self.thread.take()
            && thread.thread().id() != std::thread::current().id()
        {
            // A panic of the thread was reported by the acknowledgements that it dropped.
            let _ = thread.join();
        }
    }
}

struct StreamWriter {
    writer: Arc<EventQueue>,
    stream: Arc<ClaimedStream>,
}

impl RunWriter for StreamWriter {
    fn enqueue(&self, event: &Arc<Event>, durability: Durability) -> Result<Ack, StoreError> {
        if let Some(error) = &*self.stream.broken.lock() {
            return Err(error.clone());
        }
        let (sender, ack) = match durability {
            Durability::Buffered => (None, Ack::done()),
            Durability::Process | Durability::Power => {
                let (sender, ack) = Ack::pending();
                (Some(sender), ack)
            }
        };
        let load = load_of(event);
        let (run, event) = (self.stream.clone(), event.clone());
        let work = QueuedWork::Event { run, event, durability, ack: sender, load };
        self.writer.queue.push(work).map_err(|_| {
            let error = StoreError::Io("the record cannot be written as fast as events come".to_owned());
            self.stream.broken.lock().insert(error).clone()
        })?;
        Ok(ack)
    }

    fn keep_bundle(&self, digest: Digest, bundle: &Arc<ProjectBundle>) {
        *self.stream.bundle.lock() = Some((digest, bundle.clone()));
    }
}

impl Drop for StreamWriter {
    fn drop(&mut self) {
        let run = self.stream.run;
        self.writer.submit(Box::new(move |writing| writing.release(run)));
    }
}

/// What the thread has.
pub(crate) struct Writing {
    pub(crate) connection: Connection,
    pub(crate) path: PathBuf,
    /// The pages in the log after the last commit.
    log_pages: Arc<AtomicU64>,
    streams: HashMap<RunId, (Stream, Claim)>,
    /// Whether commits wait for the disk.
    is_synced: bool,
    /// A sync that failed. The kernel then takes for written what it could not write, so that a later sync says nothing
    /// about what came before it, and nothing more is recorded by this process.
    failed_sync: Option<StoreError>,
    /// Whether runs were removed: the file gets smaller when the log is moved into it.
    pub(crate) has_removed: bool,
}

/// An event that waits in a transaction.
struct Pending {
    run: Arc<ClaimedStream>,
    event: Arc<Event>,
    ack: Option<AckSender>,
}

impl Writing {
    fn run(&mut self, queue: &Queue<QueuedWork>) {
        while let Some(waiting) = queue.next() {
            self.work(waiting);
            self.move_log(if queue.is_idle() { IDLE_LOG_BYTES } else { MAX_LOG_BYTES });
        }
        self.streams.clear();
        self.empty_log();
    }

    /// Events that follow each other are written together; work comes between those before and after it.
    fn work(&mut self, waiting: VecDeque<QueuedWork>) {
        let mut pending = Vec::new();
        let mut safety = Durability::Buffered;
        for one in waiting {
            match one {
                QueuedWork::Event { run, event, durability, ack, .. } => {
                    safety = safety.max(durability);
                    pending.push(Pending { run, event, ack });
                }
                QueuedWork::Job(job) => {
                    self.write(std::mem::take(&mut pending), safety);
                    safety = Durability::Buffered;
                    job(self);
                }
            }
        }
        self.write(pending, safety);
    }

    /// Writes events in one transaction and tells whoever waits.
    fn write(&mut self, pending: Vec<Pending>, safety: Durability) {
        if pending.is_empty() {
            return;
        }
        let written = self.transaction(&pending, safety);
        self.note_damage(written.as_ref().err());
        if let Err(error) = &written {
            // What was in memory may be ahead of the record now, so none of these runs goes on.
            for Pending { run, .. } in &pending {
                run.broken.lock().get_or_insert_with(|| error.clone());
            }
        }
        for Pending { run, ack, .. } in pending {
            let result = run.broken.lock().clone().map_or(Ok(()), Err);
            if let Some(ack) = ack {
                fail_point!("record::before_ack");
                ack.send(result);
                fail_point!("record::after_ack");
            }
        }
    }

    /// Has a record that may be damaged checked by whoever opens it next.
    pub(crate) fn note_damage(&self, error: Option<&StoreError>) {
        if matches!(error, Some(StoreError::Corrupt(_))) {
            damage::suspect(&self.path);
        }
    }

    fn transaction(&mut self, pending: &[Pending], safety: Durability) -> Result<(), StoreError> {
        self.check_sync()?;
        self.sync(safety == Durability::Power)?;
        fail_point!("record::before_begin");
        self.connection.execute_batch("BEGIN IMMEDIATE").map_err(|error| self.name_holder(error))?;
        fail_point!("record::after_begin");
        let written = self.write_all(pending).and_then(|()| self.commit());
        if written.is_err() && !self.connection.is_autocommit() {
            // It fails only if the transaction is gone already.
            let _ = self.connection.execute_batch("ROLLBACK");
        }
        written
    }

    fn commit(&mut self) -> Result<(), StoreError> {
        fail_point!("record::before_commit");
        self.connection.execute_batch("COMMIT").map_err(|error| self.note_sync(error))?;
        fail_point!("record::after_commit");
        Ok(())
    }

    /// Returns the kind of an error, and remembers it if a sync failed.
    fn note_sync(&mut self, error: rusqlite::Error) -> StoreError {
        match error.sqlite_error().map(|error| error.extended_code) {
            Some(SQLITE_IOERR_FSYNC | SQLITE_IOERR_DIR_FSYNC) => {
                let text = format!("the disk failed, and what was recorded before may be lost: {error}");
                self.failed_sync.insert(StoreError::Io(text)).clone()
            }
            _ => from_sqlite(error),
        }
    }

    fn check_sync(&self) -> Result<(), StoreError> {
        self.failed_sync.clone().map_or(Ok(()), Err)
    }

    fn write_all(&mut self, pending: &[Pending]) -> Result<(), StoreError> {
        schema::check_version(&self.connection)?;
        let mut touched: Vec<RunId> = Vec::new();
        for Pending { run, event, .. } in pending {
            if run.broken.lock().is_some() {
                continue;
            }
            if !touched.contains(&run.run) {
                if let Err(error) = self.prepare(run.run) {
                    // SQLite ends a transaction by itself when the disk is full. Otherwise this concerns one run.
                    if self.connection.is_autocommit() {
                        return Err(error);
                    }
                    *run.broken.lock() = Some(error);
                    continue;
                }
                touched.push(run.run);
            }
            if matches!(event.body, EventBody::RunStarted(_) | EventBody::RunResumed { .. })
                && let Some((digest, bundle)) = run.bundle.lock().take()
            {
                bundles::keep(&self.connection, digest, &bundle)?;
            }
            if let Some((stream, _)) = self.streams.get_mut(&run.run) {
                stream.write(&self.connection, event)?;
            }
        }
        let streams = touched.iter().filter_map(|run| self.streams.get(run));
        streams.map(|(stream, _)| stream).try_for_each(|stream| stream.finish_transaction(&self.connection))
    }

    /// Makes the row of a new run, and sees to it that a known one is still this process's.
    fn prepare(&mut self, run: RunId) -> Result<(), StoreError> {
        if let Some((stream, _)) = self.streams.get(&run) {
            return stream.check_epoch(&self.connection, run);
        }
        let claim = self.claim(run)?;
        let stream = Stream::create(&self.connection, run)?;
        self.streams.insert(run, (stream, claim));
        Ok(())
    }

    /// Claims a recorded run.
    pub(crate) fn take_over(&mut self, run: RunId) -> Result<(), StoreError> {
        self.check_sync()?;
        let claim = self.claim(run)?;
        let stream = Stream::take_over(&self.connection, run)?;
        self.streams.insert(run, (stream, claim));
        Ok(())
    }

    /// Gives a run back.
    pub(crate) fn release(&mut self, run: RunId) {
        self.streams.remove(&run);
    }

    /// Answers a question. What a person said survives the loss of power.
    pub(crate) fn answer(
        &mut self,
        run: RunId,
        question: &Key,
        answer: &Answer,
        by: &str,
    ) -> Result<(), AnswerError> {
        self.check_sync()?;
        self.sync(true)?;
        questions::answer(&mut self.connection, run, question, answer, by)
    }

    fn claim(&self, run: RunId) -> Result<Claim, StoreError> {
        if self.streams.contains_key(&run) {
            return Err(StoreError::Held { run, holder: "another runtime of this process".to_owned() });
        }
        let deadline = Instant::now() + MAX_LOCK_OF_GONE;
        loop {
            if let Some(claim) = Claim::take(&self.path, run)? {
                return Ok(claim);
            }
            let holder = crate::read::holder(&self.connection, run).ok().flatten();
            if holder.as_deref().is_some_and(is_gone) && Instant::now() < deadline {
                std::thread::sleep(Duration::from_millis(1));
                continue;
            }
            let holder = holder.map_or_else(|| "another process".to_owned(), |holder| describe(&holder));
            return Err(StoreError::Held { run, holder });
        }
    }

    /// Sets whether commits wait for the disk: then this one, and all before it, survive the loss of power.
    fn sync(&mut self, is_synced: bool) -> Result<(), StoreError> {
        if is_synced != self.is_synced {
            let mode = if is_synced { "FULL" } else { "NORMAL" };
            self.connection.pragma_update(None, "synchronous", mode).map_err(from_sqlite)?;
            self.is_synced = is_synced;
        }
        Ok(())
    }

    /// Says who writes, if that kept this process from writing for too long.
    fn name_holder(&self, error: rusqlite::Error) -> StoreError {
        let is_busy = error.sqlite_error_code() == Some(rusqlite::ErrorCode::DatabaseBusy);
        match lock_holder(&self.path).filter(|_| is_busy) {
            Some(process) => StoreError::Io(format!(
                "process {process} on this machine kept the record locked for more than 10 seconds"
            )),
            None => from_sqlite(error),
        }
    }

    /// Moves the content of a log that is not short into the database at the end, and makes its file empty, unless others are
    /// using it. A short one is left to the next process, which goes on with it without waiting for the disk.
    fn empty_log(&self) {
        let is_long = self.log_pages.load(Ordering::Relaxed) * u64::from(PAGE_BYTES) > FINAL_LOG_BYTES;
        // Nobody waits for other processes here: one of them does it when it ends.
        if (is_long || self.has_removed) && self.connection.busy_timeout(Duration::ZERO).is_ok() {
            let _ = self.connection.pragma(None, "wal_checkpoint", "TRUNCATE", |_| Ok(()));
        }
    }

    /// Moves the content of a long log into the database. Readers may be in the way; then the next time does it.
    fn move_log(&mut self, limit: u64) {
        if self.log_pages.load(Ordering::Relaxed) * u64::from(PAGE_BYTES) <= limit {
            return;
        }
        fail_point!("record::before_checkpoint");
        match self.connection.pragma_query(None, "wal_checkpoint", |_| Ok(())) {
            Ok(()) => self.log_pages.store(0, Ordering::Relaxed),
            // The next commit tells.
            Err(error) => drop(self.note_sync(error)),
        }
        fail_point!("record::after_checkpoint");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::MAX_WAITING;

    struct Something {
        is_awaited: bool,
        load: Load,
    }

    impl Waiting for Something {
        fn load(&self) -> Load {
            self.load
        }

        fn is_awaited(&self) -> bool {
            self.is_awaited
        }
    }

    #[test]
    fn what_nobody_waits_for_is_refused_when_too_much_waits() {
        for load in [
            Load { events: 1, bytes: MAX_WAITING.bytes / 4 },
            Load { events: MAX_WAITING.events / 4, bytes: 1 },
        ] {
            let queue = Queue::new();
            let push = |is_awaited| queue.push(Something { is_awaited, load }).is_ok();
            assert!((0..8).all(|_| push(false)));
            assert!(!push(false));
            // Whoever waits for it holds the run back.
            assert!(push(true));
            assert_eq!(queue.next().unwrap().len(), 9);
            // What is being written still takes memory.
            assert!(!push(false));
            assert!(push(true));
            assert_eq!(queue.next().unwrap().len(), 1);
            assert!(push(false));
        }
    }

    #[test]
    fn an_event_counts_about_as_much_as_it_takes() {
        let call = llm_do_core::CallInfo {
            run: RunId(uuid::Uuid::nil()),
            id: Key::root(),
            parent: None,
            depth: 0,
            path: "".into(),
            agent: "".into(),
        };
        let call = Arc::new(call);
        let load = |length: usize| {
            let body = llm_do_core::EventBody::Notice { text: "x".repeat(length) };
            let time = jiff::Timestamp::UNIX_EPOCH;
            load_of(&Event { seq: None, key: Key::root(), time, call: call.clone(), body })
        };
        assert!(load(1).bytes < 100);
        assert_eq!(load(1_000_001), Load { events: 1, bytes: load(1).bytes + 1_000_000 });
    }
}
