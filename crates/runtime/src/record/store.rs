//! Where the record of a run is kept.
//!
//! A store appends events and reads them back; it knows nothing of their meaning. [`MemoryStore`] keeps
//! them as long as the process lives, which is what tests of resuming need.

use std::collections::HashMap;
use std::sync::Arc;

use futures::future::BoxFuture;
use llm_do_core::{Event, RunId};
use thiserror::Error;

use crate::sync::Mutex;

/// How safe an append must be before the run goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Durability {
    /// Bookkeeping: may ride with a later append.
    Rides,
    /// Survives the death of the process.
    Process,
    /// Survives the loss of power.
    Power,
}

/// Keeps the events of runs.
pub trait Store: Send + Sync {
    /// Appends an event. Once this returns, the event is as safe as was asked for, and so are all before it.
    fn append(&self, event: Arc<Event>, durability: Durability) -> BoxFuture<'_, Result<(), StoreError>>;

    /// Accepts an event of bookkeeping without waiting.
    fn ride(&self, event: &Arc<Event>) -> Result<(), StoreError>;

    /// Reads the events of a run, oldest first.
    fn read(&self, run: RunId) -> BoxFuture<'_, Result<Vec<Arc<Event>>, StoreError>>;
}

/// Why a store could not do its work.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct StoreError(pub String);

/// A store that keeps nothing beyond the run's own log.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct NoStore;

impl Store for NoStore {
    fn append(&self, _event: Arc<Event>, _durability: Durability) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(std::future::ready(Ok(())))
    }

    fn ride(&self, _event: &Arc<Event>) -> Result<(), StoreError> {
        Ok(())
    }

    fn read(&self, run: RunId) -> BoxFuture<'_, Result<Vec<Arc<Event>>, StoreError>> {
        Box::pin(std::future::ready(Err(StoreError(format!("no store is set, so run {run} was not kept")))))
    }
}

/// A store in memory.
#[derive(Debug, Default)]
pub struct MemoryStore {
    runs: Mutex<HashMap<RunId, Vec<Arc<Event>>>>,
}

impl Store for MemoryStore {
    fn append(&self, event: Arc<Event>, _durability: Durability) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(std::future::ready(self.ride(&event)))
    }

    fn ride(&self, event: &Arc<Event>) -> Result<(), StoreError> {
        self.runs.lock().entry(event.call.run).or_default().push(event.clone());
        Ok(())
    }

    fn read(&self, run: RunId) -> BoxFuture<'_, Result<Vec<Arc<Event>>, StoreError>> {
        let events = self.runs.lock().get(&run).cloned();
        let events = events.ok_or_else(|| StoreError(format!("there is no run {run} in this store")));
        Box::pin(std::future::ready(events))
    }
}
