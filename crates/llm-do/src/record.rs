//! Where the events of a run are stored, so that it can be resumed.

pub use llm_do_runtime::{
    Ack, AckSender, ClaimedRun, Durability, MemoryStore, ResumeError, RunWriter, Store, StoreError,
};
