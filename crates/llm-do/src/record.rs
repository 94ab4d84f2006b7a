//! Where the events of runs are stored, so that they can be resumed, listed and read.

pub use llm_do_core::{
    BundledFile, ChangeKind, MAX_BUNDLED_BYTES, PinnedParts, ProjectBundle, ProjectChanges, ProjectSource,
    ProjectState, Settlement,
};
pub use llm_do_record::{
    FindError, PruneFilter, Reader, Record, RecordedState, RecordedTurn, RunFilter, RunSummary,
    SessionFilter, SessionSummary, UsageBy, UsageRow,
};
pub use llm_do_runtime::{
    Ack, AckSender, ClaimedRun, Durability, GivenAnswer, MemoryStore, OnChanges, ResumeError, ResumeOptions,
    RunWriter, Store, StoreError, UnknownCall, changed_parts, recorded_state, unknown_calls,
};
