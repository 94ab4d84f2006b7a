//! The locks and channels of the parts that are tested under many schedules.
//!
//! The member `schedules` compiles [`crate::budget`] and [`crate::state::broker`] against another module of this
//! name, in which the lock is shuttle's and every use of a channel may switch tasks. So these two modules
//! take their locks and channels from here and nowhere else.

use std::sync::{MutexGuard, PoisonError};

pub(crate) use tokio::sync::oneshot;

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
