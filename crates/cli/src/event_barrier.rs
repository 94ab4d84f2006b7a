//! Delays a question until all events before it are shown.
//!
//! Events are read on a thread of their own, and the approver is asked on another. A person who is asked must have read
//! which calls led to the question, so the question waits until each reader that shows something has reached it. It
//! never waits for long: a reader that is stuck must not keep a person from answering.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use llm_do::event::{Event, EventBody};
use llm_do::value::Key;
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::Notify;
use tokio::time::{sleep, timeout};

/// How long a question waits for readers at most.
const LIMIT: Duration = Duration::from_secs(2);
/// Readers that show nothing for so long have shown everything.
const QUIET: Duration = Duration::from_millis(30);

/// How far the event readers of a run have read.
pub(crate) struct EventBarrier {
    /// How many readers show something.
    readers: usize,
    /// How many of them have reached each question.
    reached: Mutex<HashMap<Key, usize>>,
    /// How many events were read.
    read: AtomicU64,
    news: Notify,
}

impl EventBarrier {
    /// Expects so many readers.
    pub(crate) fn new(readers: usize) -> Self {
        Self { readers, reached: Mutex::default(), read: AtomicU64::new(0), news: Notify::new() }
    }

    /// Notes that a reader has shown an event.
    pub(crate) fn note(&self, event: &Event) {
        self.read.fetch_add(1, Ordering::Relaxed);
        match &event.body {
            EventBody::RunStarted { .. } => self.reached().clear(),
            EventBody::ApprovalRequested(request) => {
                *self.reached().entry(request.id.clone()).or_default() += 1;
                self.news.notify_waiters();
            }
            _ => {}
        }
    }

    /// Waits until all readers have reached a question.
    pub(crate) async fn with_question(&self, id: &Key) {
        let all_have = async {
            loop {
                let news = self.news.notified();
                if self.reached().get(id).is_some_and(|count| *count >= self.readers) {
                    break;
                }
                news.await;
            }
        };
        // A reader that is stuck does not keep the person from answering.
        let _ = timeout(LIMIT, all_have).await;
        // The same call may be asked about again, with other arguments.
        self.reached().remove(id);
    }

    /// Waits until nothing more is read, for questions of which no event tells.
    pub(crate) async fn until_quiet(&self) {
        let is_quiet = async {
            let mut before = None;
            loop {
                let read = self.read.load(Ordering::Relaxed);
                if before.replace(read) == Some(read) {
                    break;
                }
                sleep(QUIET).await;
            }
        };
        let _ = timeout(LIMIT, is_quiet).await;
    }

    fn reached(&self) -> MutexGuard<'_, HashMap<Key, usize>> {
        self.reached.lock()
    }
}
