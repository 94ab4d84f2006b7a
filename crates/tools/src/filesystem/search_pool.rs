//! Searches many files at once, with results as if one after the other.
//!
//! The walk hands out jobs, each some files of one directory, in the order of their names. Threads take them, and
//! what they find is put together by the number of the job. As soon as the first jobs have found more than is
//! wanted, later ones are not begun: they could not add anything.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::Scope;

use cap_std::fs::Dir;
use parking_lot::Mutex;

use super::file_search::{End, FileSearch, MatchedLine, Room};
use super::resolved_path::open_file;

/// How many files a job has at most.
pub(crate) const MAX_FILES: usize = 64;
/// How many jobs wait: each holds a directory open.
const MAX_WAITING: usize = 32;
/// How many threads search at most.
const MAX_THREADS: usize = 8;

/// Some files of one directory, by their names.
pub(crate) struct Job {
    pub(crate) directory: Arc<Dir>,
    /// The path of the directory from the root.
    pub(crate) path: PathBuf,
    pub(crate) names: Vec<OsString>,
}

/// The lines of one file.
pub(crate) struct FileMatches {
    pub(crate) path: String,
    pub(crate) lines: Vec<MatchedLine>,
}

/// What all jobs found.
#[derive(Default)]
pub(crate) struct Results {
    /// By the number of the job.
    pub(crate) found: BTreeMap<usize, Vec<FileMatches>>,
    /// Files that could not be read to their end.
    pub(crate) unread: u64,
    /// Files that were left out because they are secret.
    pub(crate) secret: u64,
    /// Whether the time was over.
    pub(crate) is_late: bool,
}

/// What one job found.
#[derive(Default)]
struct JobResults {
    found: Vec<FileMatches>,
    unread: u64,
    secret: u64,
    is_late: bool,
}

impl JobResults {
    fn count(&mut self, end: End) {
        self.unread += u64::from(end == End::Unread);
        self.secret += u64::from(end == End::Secret);
        self.is_late |= end == End::Late;
    }

    fn is_empty(&self) -> bool {
        self.found.is_empty() && self.unread == 0 && self.secret == 0 && !self.is_late
    }
}

/// What the threads share.
pub(crate) struct SearchPool<'a> {
    search: &'a (dyn Fn() -> FileSearch<'a> + Sync),
    room: Room,
    results: Mutex<Results>,
    /// The first job that could add nothing.
    horizon: AtomicUsize,
}

impl<'a> SearchPool<'a> {
    /// Gathers a crew; each thread makes a search of its own.
    pub(crate) fn new(room: Room, search: &'a (dyn Fn() -> FileSearch<'a> + Sync)) -> Self {
        let (results, horizon) = (Mutex::new(Results::default()), AtomicUsize::new(usize::MAX));
        Self { search, room, results, horizon }
    }

    /// Lets the crew work while jobs are handed out, and returns what it found.
    pub(crate) fn work(self, hand_out: impl FnOnce(&mut Foreman<'_, '_, 'a>)) -> Results {
        std::thread::scope(|scope| {
            let mut foreman = Foreman { pool: &self, scope, next: 0, first: None, sender: None };
            hand_out(&mut foreman);
            // A single job is not worth a thread.
            if let Some(job) = foreman.first.take() {
                self.job(&mut (self.search)(), 0, &job);
            }
        });
        self.results.into_inner()
    }

    fn run(&self, jobs: &Mutex<Receiver<(usize, Job)>>) {
        let mut search = (self.search)();
        let next = || jobs.lock().recv();
        while let Ok((number, job)) = next() {
            if !self.is_beyond(number) {
                self.job(&mut search, number, &job);
            }
        }
    }

    fn job(&self, search: &mut FileSearch<'a>, number: usize, job: &Job) {
        let mut results = JobResults::default();
        let mut room = self.room;
        for name in &job.names {
            let path = job.path.join(name);
            let (lines, end) = match open_file(&job.directory, name, "") {
                Ok((file, metadata)) => search.file(&path, file, metadata.len(), room),
                Err(_) => (Vec::new(), End::Unread),
            };
            results.count(end);
            let has_room = lines.iter().all(|line| room.take(line));
            if lines.iter().any(|line| line.is_match) {
                results.found.push(FileMatches { path: path.to_string_lossy().into_owned(), lines });
            }
            if results.is_late || !has_room {
                break;
            }
        }
        self.report(number, results);
    }

    fn report(&self, number: usize, job: JobResults) {
        if job.is_empty() {
            return;
        }
        let mut results = self.results.lock();
        results.unread += job.unread;
        results.secret += job.secret;
        results.is_late |= job.is_late;
        if !job.found.is_empty() {
            results.found.insert(number, job.found);
            self.move_horizon(&mut results);
        }
    }

    /// Finds the job that fills the room, and forgets what lies beyond it.
    fn move_horizon(&self, results: &mut Results) {
        let mut room = self.room;
        let full = results.found.iter().find(|(_, found)| {
            let mut lines = found.iter().flat_map(|file| &file.lines);
            !lines.all(|line| room.take(line))
        });
        if let Some(beyond) = full.map(|(number, _)| number + 1) {
            results.found.split_off(&beyond);
            self.horizon.store(beyond, Ordering::Relaxed);
        }
    }

    fn is_beyond(&self, number: usize) -> bool {
        number >= self.horizon.load(Ordering::Relaxed)
    }
}

/// Hands out jobs, and starts threads when there is more than one.
pub(crate) struct Foreman<'scope, 'env, 'a> {
    pool: &'scope SearchPool<'a>,
    scope: &'scope Scope<'scope, 'env>,
    next: usize,
    first: Option<Job>,
    sender: Option<SyncSender<(usize, Job)>>,
}

impl Foreman<'_, '_, '_> {
    /// Hands out a job. Says whether another one could still add something.
    pub(crate) fn hand_out(&mut self, job: Job) -> bool {
        let number = self.next;
        self.next += 1;
        if number == 0 {
            self.first = Some(job);
            return true;
        }
        if let Some(first) = self.first.take() {
            let sender = self.start();
            let _ = sender.send((0, first));
            self.sender = Some(sender);
        }
        // The threads end only after the sender does.
        let is_sent = self.sender.as_ref().is_some_and(|sender| sender.send((number, job)).is_ok());
        is_sent && !self.pool.is_beyond(self.next)
    }

    fn start(&self) -> SyncSender<(usize, Job)> {
        let (sender, receiver) = sync_channel(MAX_WAITING);
        let receiver = Arc::new(Mutex::new(receiver));
        let threads = std::thread::available_parallelism().map_or(1, usize::from).min(MAX_THREADS);
        for _ in 0..threads {
            let (pool, receiver) = (self.pool, receiver.clone());
            self.scope.spawn(move || pool.run(&receiver));
        }
        sender
    }
}
