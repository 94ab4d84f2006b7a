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

/// What readers have reached.
#[derive(Default)]
struct Reached {
    /// How many readers have reached each question.
    questions: HashMap<Key, usize>,
    /// How many readers have reached the end of the run.
    ends: usize,
}

/// How far the event readers of a run have read.
pub(crate) struct EventBarrier {
    /// How many readers show something.
    readers: usize,
    reached: Mutex<Reached>,
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
            EventBody::ApprovalRequested(request) => {
                *self.reached().questions.entry(request.id.clone()).or_default() += 1;
                self.news.notify_waiters();
            }
            EventBody::RunFinished { .. } => self.note_end(),
            _ => {}
        }
    }

    /// Forgets the questions of a run when the last reader is at its end: one reader may be far ahead of another.
    fn note_end(&self) {
        let mut reached = self.reached();
        reached.ends += 1;
        if reached.ends >= self.readers {
            *reached = Reached::default();
        }
    }

    /// Waits until all readers have reached a question.
    pub(crate) async fn with_question(&self, id: &Key) {
        let all_have = async {
            loop {
                let news = self.news.notified();
                if self.reached().questions.get(id).is_some_and(|count| *count >= self.readers) {
                    break;
                }
                news.await;
            }
        };
        // A reader that is stuck does not keep the person from answering.
        let _ = timeout(LIMIT, all_have).await;
        // The same call may be asked about again, with other arguments.
        self.reached().questions.remove(id);
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

    fn reached(&self) -> MutexGuard<'_, Reached> {
        self.reached.lock()
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;
    use serde_json::{Value, json};

    use super::*;

    fn event(body: Value) -> Event {
        let mut event = json!({
            "key": "1/0", "time": "2026-11-19T05:34:28Z", "run": "a6cc9164-46e6-4fc4-90dc-e973e9ffa561", "call": "1",
            "parent": null, "depth": 0, "path": "main", "agent": "main",
        });
        event.as_object_mut().unwrap().extend(body.as_object().unwrap().clone());
        serde_json::from_value(event).unwrap()
    }

    fn start() -> Event {
        event(
            json!({"type": "run_started", "entry": "main", "input": {}, "ordinal": 1, "pin": "0".repeat(64), "mode": "prompt", "limits": {}}),
        )
    }

    fn question() -> Event {
        event(json!({
            "type": "approval_requested", "id": "1/0", "chain": "main > scale", "caller": "main", "tool": "scale",
            "arguments": {}, "access": "read", "description": "", "reason": "", "scopes": [],
        }))
    }

    #[tokio::test]
    async fn a_question_does_not_wait_because_one_reader_was_ahead_of_the_start() {
        let barrier = EventBarrier::new(2);
        // The first reader is at the question before the second one is at the start of the run.
        for event in [start(), question(), start(), question()] {
            barrier.note(&event);
        }
        assert!(barrier.with_question(&"1/0".into()).now_or_never().is_some());
    }

    #[test]
    fn questions_of_a_run_are_forgotten_at_its_end() {
        let barrier = EventBarrier::new(2);
        let end = event(json!({"type": "run_finished", "status": "done", "usage": {}, "duration_ms": 0}));
        for event in [question(), question(), end.clone(), end] {
            barrier.note(&event);
        }
        assert!(barrier.reached().questions.is_empty());
    }
}
