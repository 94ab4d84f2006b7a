//! What a run reports: events while it goes on, the trace of its calls afterwards.

pub use llm_do_core::{Delta, Event, EventBody, ModelResult, Reserved, RunId, Status, Trace, TraceCall};
pub use llm_do_runtime::{EventReader, LoggedMessage};
