//! What waits for the thread that writes.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use crate::sync::{Condvar, Mutex};

/// How long the first of several buffered events waits for more.
const MAX_GATHERING: Duration = Duration::from_millis(2);

/// Something that can wait in a [`Queue`].
pub(crate) trait Waiting {
    /// Returns whether it is an event.
    fn is_event(&self) -> bool;

    /// Returns whether somebody waits until it is done.
    fn is_awaited(&self) -> bool;
}

/// A queue with one reader, which takes everything at once.
#[derive(Debug)]
pub(crate) struct Queue<T> {
    state: Mutex<QueueState<T>>,
    changed: Condvar,
}

#[derive(Debug)]
struct QueueState<T> {
    waiting: VecDeque<T>,
    events: usize,
    is_closed: bool,
}

impl<T: Waiting> Queue<T> {
    pub(crate) fn new() -> Self {
        let state = QueueState { waiting: VecDeque::new(), events: 0, is_closed: false };
        Self { state: Mutex::new(state), changed: Condvar::default() }
    }

    pub(crate) fn push(&self, waiting: T) {
        let mut state = self.state.lock();
        state.events += usize::from(waiting.is_event());
        state.waiting.push_back(waiting);
        drop(state);
        self.changed.notify_one();
    }

    /// Lets the reader end when it has taken everything.
    pub(crate) fn close(&self) {
        self.state.lock().is_closed = true;
        self.changed.notify_one();
    }

    /// Takes everything that waits, as soon as somebody waits for it or a moment has passed. `None` when the queue is closed
    /// and empty.
    pub(crate) fn next(&self) -> Option<VecDeque<T>> {
        let mut state = self.state.lock();
        while state.waiting.is_empty() {
            if state.is_closed {
                return None;
            }
            state = self.changed.wait(state);
        }
        let deadline = Instant::now() + MAX_GATHERING;
        while !state.is_closed && !state.waiting.iter().any(Waiting::is_awaited) {
            let (guard, timed_out) = self.changed.wait_until(state, deadline);
            state = guard;
            if timed_out {
                break;
            }
        }
        state.events = 0;
        Some(std::mem::take(&mut state.waiting))
    }

    /// Returns how many events wait.
    pub(crate) fn events(&self) -> usize {
        self.state.lock().events
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.state.lock().waiting.is_empty()
    }
}
