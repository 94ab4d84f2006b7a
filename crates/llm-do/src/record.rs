//! Where the events of a run are stored, so that it can be resumed.

pub use llm_do_runtime::{Durability, MemoryStore, Store, StoreError};
