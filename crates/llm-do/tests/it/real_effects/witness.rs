//! A store that looks at the folder whenever a permission is recorded.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use llm_do::approval::{DecidedBy, Decision};
use llm_do::event::{Event, EventBody};
use llm_do::record::{Ack, MemoryStore};
use llm_do_testing::HookedStore;

use crate::real_effects::folder::{Folder, marks_in};

/// Keeps the record, and what was done before it was permitted.
pub(crate) struct Witness {
    marks: Look,
    seen: Mutex<Seen>,
}

#[derive(Default)]
struct Seen {
    allowed: Vec<String>,
    too_early: Vec<String>,
    by_grants: usize,
}

/// Finds the marks that are in the folder now.
type Look = Box<dyn Fn() -> BTreeSet<String> + Send + Sync>;

impl Witness {
    pub(crate) fn new(folder: &Folder) -> Self {
        Self { marks: folder.look(), seen: Mutex::default() }
    }

    /// Returns a store that shows this witness every event before it keeps it.
    pub(crate) fn store(self: &Arc<Self>) -> HookedStore {
        let witness = self.clone();
        HookedStore::new(MemoryStore::default(), move |event, _| {
            witness.look(event);
            Ok(Ack::done())
        })
    }

    pub(crate) fn too_early(&self) -> Vec<String> {
        self.seen.lock().unwrap().too_early.clone()
    }

    pub(crate) fn was_allowed(&self, mark: &str) -> bool {
        self.seen.lock().unwrap().allowed.iter().any(|allowed| allowed == mark)
    }

    pub(crate) fn by_grants(&self) -> usize {
        self.seen.lock().unwrap().by_grants
    }

    fn look(&self, event: &Event) {
        let EventBody::ApprovalDecided { decision, .. } = &event.body else { return };
        let Decision::Allow(permit) = &**decision else { return };
        let marks = marks_in(permit.arguments.text());
        if marks.is_empty() {
            return;
        }
        let there = (self.marks)();
        let mut seen = self.seen.lock().unwrap();
        // A call that is made again finds what it did the first time.
        let new = |mark: &&String| !seen.allowed.contains(mark);
        let early: Vec<String> =
            marks.iter().filter(new).filter(|mark| there.contains(*mark)).cloned().collect();
        seen.too_early.extend(early);
        seen.by_grants += usize::from(matches!(permit.by, DecidedBy::Grant(_)));
        seen.allowed.extend(marks);
    }
}
