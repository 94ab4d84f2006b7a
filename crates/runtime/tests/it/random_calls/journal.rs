//! What happened in a case, seen from outside the runtime and brought into one order.
//!
//! Tools, models, approvers, toolsets and the store all write here under one lock, so of any two things it
//! is known which came first. The store stands for the record: its entries say what was written when.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use llm_do_core::{
    Answer, ApprovalRequest, Event, EventBody, Failure, FailureKind, Grant, Key, Name, Payload, RunId,
};
use llm_do_runtime::{Ack, Durability, MemoryStore, StoreError};
use parking_lot::{Mutex, MutexGuard};
use serde_json::Value;

use llm_do_testing::{Chance, HookedStore};

/// One thing that happened, and in which run.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    pub(crate) run: Whose,
    pub(crate) what: What,
}

/// The run of an entry. Some see its id, others were told its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Whose {
    Id(RunId),
    Number(usize),
    Nobody,
}

/// What happened.
#[derive(Debug, Clone)]
pub(crate) enum What {
    /// The store was given an event.
    Recorded(Arc<Event>),
    /// The store has made an event safe, and all before it.
    Safe(u64),
    /// The runtime no longer waited for an event that it had wanted to be safe.
    Abandoned(u64),
    /// A tool acted. The recorder has the effect at this place.
    Acted { place: usize, acted: Acted },
    /// A tool judged a call.
    Assessed { key: Key, arguments: Payload, precondition: Option<Value> },
    /// The approver was shown a request.
    Shown(Box<ApprovalRequest>),
    /// The approver answered; nothing stands for an error or a panic.
    Answered { id: Key, answer: Option<Answer> },
    /// The approver let a budget grow.
    Extended { owner: String, by: u64 },
    /// A model asked for calls.
    ModelAsked { agent: String, calls: Vec<(Name, Arc<str>)> },
    /// A model failed, which ends the run where the provider is down.
    ModelFailed { outage: bool },
    /// Code asked for a call. A stray is code that goes on after its own call has ended.
    CodeAsked { parent: Key, name: Name, input: Payload, stray: bool },
    /// Code got its answer.
    CodeAnswered { parent: Key, name: Name, input: Payload, failure: Option<FailureKind> },
    /// Code put an inner effect to the gate.
    InnerAsked { parent: Key, name: Name, payload: Payload, stray: bool },
    /// Code got the decision about it.
    InnerAnswered { parent: Key, name: Name, payload: Payload, permitted: Result<Payload, Failure> },
    /// A toolset was opened for a call.
    Opened { instance: usize, toolset: String, opener: Key },
    /// An instance was closed.
    Closed { instance: usize },
    /// Somebody outside cancelled the run, or dropped its handle.
    Cancelled,
    /// A grant was taken back.
    Revoked(Box<Grant>),
    /// The runtime has shut down.
    ShutDown,
}

/// How a tool acted.
#[derive(Debug, Clone)]
pub(crate) struct Acted {
    /// Exactly what it received.
    pub(crate) received: Payload,
    pub(crate) precondition: Option<Value>,
    /// The instance that it belongs to, where its toolset has state.
    pub(crate) instance: Option<usize>,
    /// Whether it ran on a thread that nobody can stop.
    pub(crate) blocking: bool,
    /// Whether it is an inner effect, which the gate was asked about.
    pub(crate) inner: bool,
}

/// The ordered list of what happened.
#[derive(Debug, Default)]
pub(crate) struct Journal {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    entries: Vec<Entry>,
    shown: HashMap<(usize, Key), usize>,
    judged: HashMap<(RunId, Key), usize>,
    readings: HashMap<String, Option<Value>>,
    finished: HashSet<RunId>,
}

impl Journal {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    /// Writes an entry.
    pub(crate) fn note(&self, run: Whose, what: What) {
        self.state().entries.push(Entry { run, what });
    }

    /// Writes an entry that must be made in the same moment.
    pub(crate) fn note_with(&self, run: Whose, what: impl FnOnce() -> What) {
        let mut state = self.state();
        let what = what();
        state.entries.push(Entry { run, what });
    }

    /// Notes a request that is shown, and returns how often this call was shown before.
    pub(crate) fn shown(&self, run: usize, request: &ApprovalRequest) -> usize {
        let mut state = self.state();
        let what = What::Shown(Box::new(request.clone()));
        state.entries.push(Entry { run: Whose::Number(run), what });
        let count = state.shown.entry((run, request.id.clone())).or_insert(0);
        *count += 1;
        *count - 1
    }

    /// Returns how often a tool has judged a call before.
    pub(crate) fn judged_before(&self, run: RunId, key: &Key) -> usize {
        let mut state = self.state();
        let count = state.judged.entry((run, key.clone())).or_insert(0);
        *count += 1;
        *count - 1
    }

    /// Remembers what an argument text must be read as.
    pub(crate) fn reads_as(&self, text: &str, value: Option<Value>) {
        self.state().readings.insert(text.to_owned(), value);
    }

    pub(crate) fn has_finished(&self, run: RunId) -> bool {
        self.state().finished.contains(&run)
    }

    /// Hands over everything that was written.
    pub(crate) fn take(&self) -> (Vec<Entry>, HashMap<String, Option<Value>>) {
        let mut state = self.state();
        (std::mem::take(&mut state.entries), std::mem::take(&mut state.readings))
    }
}

/// A store that writes into the journal. It may begin to refuse, and it makes events safe with some delay.
pub(crate) fn witness_store(journal: Arc<Journal>, seed: u64, breaks_at: Option<usize>) -> HookedStore {
    let count = AtomicUsize::new(0);
    HookedStore::new(MemoryStore::default(), move |event, durability| {
        let count = count.fetch_add(1, Ordering::Relaxed);
        if breaks_at.is_some_and(|end| count >= end) {
            return Err(StoreError::Full("the disk is full".to_owned()));
        }
        journal.note(Whose::Id(event.call.run), What::Recorded(event.clone()));
        Ok(match durability {
            Durability::Buffered => Ack::done(),
            Durability::Process | Durability::Power => safe_later(&journal, event, seed),
        })
    })
}

fn safe_later(journal: &Arc<Journal>, event: &Arc<Event>, seed: u64) -> Ack {
    let mut chance = Chance::at(seed, &["store", &event.key]);
    let (sender, ack) = Ack::pending();
    let (journal, event) = (journal.clone(), event.clone());
    tokio::spawn(async move {
        for _ in 0..chance.below(3) {
            tokio::task::yield_now().await;
        }
        journal.note(Whose::Id(event.call.run), What::Safe(event.seq.unwrap_or_default()));
        if matches!(event.body, EventBody::RunFinished { .. }) {
            journal.state().finished.insert(event.call.run);
        }
        if !sender.send(Ok(())) {
            journal.note(Whose::Id(event.call.run), What::Abandoned(event.seq.unwrap_or_default()));
        }
    });
    ack
}
