//! The lock of the queue, which is tested under many schedules: the member `schedules` compiles [`crate::queue`] against
//! another module of this name.

use std::time::Instant;

pub(crate) use parking_lot::{Mutex, MutexGuard};

/// A condition variable whose waits give the guard back.
#[derive(Debug, Default)]
pub(crate) struct Condvar(parking_lot::Condvar);

impl Condvar {
    pub(crate) fn wait<'a, T>(&self, mut guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
        self.0.wait(&mut guard);
        guard
    }

    /// Waits until then; says whether it came to that.
    pub(crate) fn wait_until<'a, T>(
        &self,
        mut guard: MutexGuard<'a, T>,
        deadline: Instant,
    ) -> (MutexGuard<'a, T>, bool) {
        let timed_out = self.0.wait_until(&mut guard, deadline).timed_out();
        (guard, timed_out)
    }

    pub(crate) fn notify_one(&self) {
        self.0.notify_one();
    }
}
