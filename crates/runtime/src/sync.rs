//! The locks of the parts that are tested under every schedule.
//!
//! The member `schedules` compiles [`crate::budget`] and [`crate::broker`] against another module of this
//! name, in which the lock is shuttle's. So these two modules take their lock from here and nowhere else.

use std::sync::{MutexGuard, PoisonError};

/// A lock that a panic elsewhere does not make unusable: what it guards is consistent at every unlock.
#[derive(Debug, Default)]
pub(crate) struct Mutex<T>(std::sync::Mutex<T>);

impl<T> Mutex<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(std::sync::Mutex::new(value))
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
