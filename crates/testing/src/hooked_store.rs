//! A store whose writes a test watches, delays or refuses.

use std::sync::Arc;

use futures::future::BoxFuture;
use llm_do_core::{Event, RunId};
use llm_do_runtime::{Ack, ClaimedRun, Durability, GivenAnswer, MemoryStore, RunWriter, Store, StoreError};

type Hook = dyn Fn(&Arc<Event>, Durability) -> Result<Ack, StoreError> + Send + Sync;

/// Shows each event to a function before it keeps it in memory. What the function refuses is not kept, and a barrier
/// waits for the [`Ack`] that it returns.
#[derive(Clone)]
pub struct HookedStore {
    kept: MemoryStore,
    hook: Arc<Hook>,
}

impl HookedStore {
    /// A store that keeps what the function lets through.
    pub fn new(
        kept: MemoryStore,
        hook: impl Fn(&Arc<Event>, Durability) -> Result<Ack, StoreError> + Send + Sync + 'static,
    ) -> Self {
        Self { kept, hook: Arc::new(hook) }
    }

    fn hooked(&self, writer: Arc<dyn RunWriter>) -> Arc<dyn RunWriter> {
        Arc::new(HookedWriter { writer, hook: self.hook.clone() })
    }
}

impl Store for HookedStore {
    fn begin(&self, run: RunId) -> BoxFuture<'_, Result<Arc<dyn RunWriter>, StoreError>> {
        Box::pin(async move { self.kept.begin(run).await.map(|writer| self.hooked(writer)) })
    }

    fn claim(&self, run: RunId) -> BoxFuture<'_, Result<ClaimedRun, StoreError>> {
        Box::pin(async move {
            let claimed = self.kept.claim(run).await?;
            Ok(ClaimedRun { writer: self.hooked(claimed.writer), events: claimed.events })
        })
    }

    fn read(&self, run: RunId, after: Option<u64>) -> BoxFuture<'_, Result<Vec<Arc<Event>>, StoreError>> {
        self.kept.read(run, after)
    }

    fn answers(&self, run: RunId) -> BoxFuture<'_, Result<Vec<GivenAnswer>, StoreError>> {
        self.kept.answers(run)
    }
}

struct HookedWriter {
    writer: Arc<dyn RunWriter>,
    hook: Arc<Hook>,
}

impl RunWriter for HookedWriter {
    fn enqueue(&self, event: &Arc<Event>, durability: Durability) -> Result<Ack, StoreError> {
        let ack = (self.hook)(event, durability)?;
        drop(self.writer.enqueue(event, durability)?);
        Ok(ack)
    }
}
