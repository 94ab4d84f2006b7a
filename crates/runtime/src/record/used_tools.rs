//! Which tools an agent call had used before this process.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use llm_do_core::{CallKind, Event, EventBody, Key, Name};

/// Returns the names of the tools that ran for an agent call: those that its model called, and those that their code called in turn. The
/// agents that it called have tools of their own.
pub(crate) fn used_tools(events: &[Arc<Event>], agent: &Key) -> BTreeSet<Name> {
    let mut callers = HashSet::from([agent]);
    let mut names = HashMap::new();
    let mut used = BTreeSet::new();
    for event in events {
        let call = &event.call;
        match &event.body {
            EventBody::CallStarted { kind: CallKind::Tool, name, .. }
                if call.parent.as_ref().is_some_and(|parent| callers.contains(parent)) =>
            {
                callers.insert(&call.id);
                names.insert(&call.id, name);
            }
            EventBody::CallExecuting { .. } => used.extend(names.get(&call.id).copied().cloned()),
            _ => {}
        }
    }
    used
}
