//! What a run reports: events while it goes on, the trace of its calls afterwards.

pub use llm_do_core::{
    ContextUse, Delta, Event, EventBody, ForkedFrom, InheritedTurn, MeasuredLength, ModelResult,
    RecordedDescriptor, Reserved, RunId, SessionStart, SessionState, Status, Trace, TraceCall, TurnEnd,
    TurnStart,
};
pub use llm_do_runtime::{EventReader, LoggedMessage};
