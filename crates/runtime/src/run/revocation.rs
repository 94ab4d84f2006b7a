//! Writes into the record of a run that a grant of it was taken back, so that no later process brings it back.

use std::sync::{Arc, Weak};

use llm_do_core::{Event, EventBody, Grant, Key, RunId};
use tokio::runtime::Handle;

use super::block_on;
use super::ending::has_result;
use crate::record::store::{Durability, StoreError};
use crate::state::shared::Shared;

/// Records that a grant was taken back. The run may be in progress, or be continued later.
pub(crate) fn record(shared: &Arc<Shared>, run: RunId, grant: Grant) {
    let body = EventBody::GrantRevoked { grant };
    let running = shared.running.lock().get(&run).and_then(Weak::upgrade);
    let is_noted = running.is_some_and(|running| {
        running.live(&Key::root()).is_ok_and(|root| running.log.note_unless_ended(&root.info, body.clone()))
    });
    if is_noted || !shared.store.is_recording() {
        return;
    }
    let shared = shared.clone();
    let tasks = shared.tasks.clone();
    // In this process the broker knows it anyway, so nobody waits for the record.
    let appending = async move { drop(append(&shared, run, body).await) };
    match Handle::try_current() {
        Ok(_) => drop(tasks.spawn(appending)),
        Err(_) => drop(block_on(appending)),
    }
}

/// Adds an event to the record of a run that may be continued. Whoever continues it here waits for that.
async fn append(shared: &Shared, run: RunId, body: EventBody) -> Result<(), StoreError> {
    let _alone = shared.appending.lock().await;
    let claimed = shared.store.claim(run).await?;
    let Some(first) = claimed.events.first().filter(|_| !has_result(&claimed.events)) else { return Ok(()) };
    let event = Event {
        seq: Some(claimed.events.len() as u64),
        key: Key::root(),
        time: shared.clock.now(),
        call: first.call.clone(),
        body,
    };
    claimed.writer.enqueue(&Arc::new(event), Durability::Process)?.await
}
