//! Calls that this process judged and did not run yet.
//!
//! A change that depends on the old content must not take the equal change of another writer for its own: two agents
//! that both count from 5 to 6 have made one step, not two. Only a call that is run again after its result was lost
//! may find its work done. Such a call was judged by another process, or ran once already in this one.

use std::collections::BTreeSet;

use llm_do_core::{CallContext, RunId};
use parking_lot::{Mutex, MutexGuard};

/// How many calls are remembered: those that were denied are never run. What is forgotten counts as run before.
const MAX_CALLS: usize = 10_000;

type CallId = (RunId, String);

static JUDGED: Mutex<BTreeSet<CallId>> = Mutex::new(BTreeSet::new());

/// Remembers that a call was judged.
pub(crate) fn remember(call: &CallContext) {
    let mut judged = judged();
    judged.insert(id(call));
    if judged.len() > MAX_CALLS {
        judged.pop_first();
    }
}

/// Returns whether a call that is about to run may have run before, and forgets it.
pub(crate) fn may_have_run(call: &CallContext) -> bool {
    !judged().remove(&id(call))
}

fn id(call: &CallContext) -> CallId {
    (call.run_id(), call.key().to_string())
}

fn judged() -> MutexGuard<'static, BTreeSet<CallId>> {
    JUDGED.lock()
}
