//! What waits for the thread that writes, and how much that may be.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use crate::sync::{Condvar, Mutex};

/// How long the first of several buffered events waits for more.
const MAX_GATHERING: Duration = Duration::from_millis(2);

/// How much may wait before nobody gathers more. Whoever needs an event to be safe waits for all before it; events for which
/// nobody waits are refused when there is twice as much.
pub(crate) const MAX_WAITING: Load = Load { events: 50_000, bytes: 32 * 1024 * 1024 };

/// So many events, and about so many bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Load {
    pub(crate) events: usize,
    pub(crate) bytes: usize,
}

impl Load {
    fn is_over(self, times: usize) -> bool {
        self.events > MAX_WAITING.events * times || self.bytes > MAX_WAITING.bytes * times
    }

    fn plus(self, other: Self) -> Self {
        Self { events: self.events + other.events, bytes: self.bytes + other.bytes }
    }
}

/// Something that can wait in a [`Queue`].
pub(crate) trait Waiting {
    /// Returns how much it adds to what waits.
    fn load(&self) -> Load;

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
    /// How much waits.
    load: Load,
    /// How much the reader took last, which takes memory until it asks for more.
    taken: Load,
    is_closed: bool,
}

impl<T: Waiting> Queue<T> {
    pub(crate) fn new() -> Self {
        let (load, taken) = (Load::default(), Load::default());
        let state = QueueState { waiting: VecDeque::new(), load, taken, is_closed: false };
        Self { state: Mutex::new(state), changed: Condvar::default() }
    }

    /// Adds something, and gives it back if nobody waits for it and too much is waiting.
    pub(crate) fn push(&self, waiting: T) -> Result<(), T> {
        let mut state = self.state.lock();
        let load = state.load.plus(waiting.load());
        if !waiting.is_awaited() && load.plus(state.taken).is_over(2) {
            return Err(waiting);
        }
        state.load = load;
        state.waiting.push_back(waiting);
        drop(state);
        self.changed.notify_one();
        Ok(())
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
        state.taken = Load::default();
        while state.waiting.is_empty() {
            if state.is_closed {
                return None;
            }
            state = self.changed.wait(state);
        }
        let deadline = Instant::now() + MAX_GATHERING;
        while !state.is_closed && !state.load.is_over(1) && !state.waiting.iter().any(Waiting::is_awaited) {
            let (guard, timed_out) = self.changed.wait_until(state, deadline);
            state = guard;
            if timed_out {
                break;
            }
        }
        state.taken = std::mem::take(&mut state.load);
        Some(std::mem::take(&mut state.waiting))
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.state.lock().waiting.is_empty()
    }
}
