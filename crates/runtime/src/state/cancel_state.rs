//! Whether a person cancelled one call.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::sync::Mutex;

/// Whether a call runs, was cancelled or has ended. A person cancels it before it has ended, or not at all.
#[derive(Debug, Default)]
pub(crate) struct CancelState {
    stage: Mutex<Stage>,
    /// Whether it was let pass: before that it has done nothing.
    has_started: AtomicBool,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Stage {
    #[default]
    Running,
    Cancelled,
    Ended,
}

impl CancelState {
    /// Marks a call as let pass.
    pub(crate) fn mark_started(&self) {
        self.has_started.store(true, Ordering::Relaxed);
    }

    /// Returns whether the call was let pass.
    pub(crate) fn has_started(&self) -> bool {
        self.has_started.load(Ordering::Relaxed)
    }

    /// Marks a call as cancelled, unless it has ended and returns whether it is.
    pub(crate) fn cancel(&self) -> bool {
        let mut stage = self.stage.lock();
        if *stage == Stage::Running {
            *stage = Stage::Cancelled;
        }
        *stage == Stage::Cancelled
    }

    /// Marks a call as ended, unless it was cancelled and returns whether it was.
    pub(crate) fn end(&self) -> bool {
        let mut stage = self.stage.lock();
        if *stage == Stage::Running {
            *stage = Stage::Ended;
        }
        *stage == Stage::Cancelled
    }

    pub(crate) fn is_cancelled(&self) -> bool {
        *self.stage.lock() == Stage::Cancelled
    }
}
