//! Calls that are being cancelled, and when the next step is due for each of them. [`crate::cancel`] takes the steps.

use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex, MutexGuard};

/// How long code may take to see that it is cancelled before it is interrupted, again and again.
pub(crate) const TIME_TO_SEE: Duration = Duration::from_millis(250);
/// How long code may take in all before its process is killed.
pub(crate) const TIME_TO_STOP: Duration = Duration::from_secs(2);

/// The calls that are being cancelled.
#[derive(Default)]
pub(crate) struct CancelWatch {
    state: Mutex<CancelState>,
    changed: Condvar,
}

#[derive(Default)]
pub(crate) struct CancelState {
    pub(crate) calls: Vec<CancelledCall>,
    pub(crate) has_thread: bool,
}

pub(crate) struct CancelledCall {
    pub(crate) id: u64,
    /// When it is cancelled, or was cancelled.
    pub(crate) cancel_at: Instant,
    pub(crate) is_cancelled: bool,
    pub(crate) interrupt_at: Instant,
}

impl CancelWatch {
    /// Wakes the thread that watches, because a call was added or has ended.
    pub(crate) fn wake(&self) {
        self.changed.notify_all();
    }

    /// Waits for a change, at most this long.
    pub(crate) fn wait(&self, state: &mut MutexGuard<'_, CancelState>, limit: Duration) {
        self.changed.wait_for(state, limit);
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, CancelState> {
        self.state.lock()
    }
}

impl CancelledCall {
    /// Returns when the next step is due.
    pub(crate) fn next_step(&self) -> Instant {
        match self.is_cancelled {
            false => self.cancel_at,
            true => {
                self.interrupt_at.min((self.cancel_at + TIME_TO_STOP).max(self.interrupt_at - TIME_TO_SEE))
            }
        }
    }
}
