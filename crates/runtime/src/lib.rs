//! Runs agents and tools.
//!
//! A [`Project`] links agents, tools, toolsets and entries by name. A [`Runtime`] runs them: every call of
//! every kind goes through one dispatcher and one gate, is budgeted, recorded and shown as events.
//!
//! The crate prints nothing and reads no terminal, home directory or environment: it is told, and it emits
//! events. See `ARCHITECTURE.md` for the way of one call from prompt to answer.

mod agent;
mod approval_controller;
mod budget;
mod call;
mod descriptors;
mod engine;
mod extension;
mod gate;
mod input;
mod model;
mod project;
mod record;
mod retry;
mod run;
mod runtime;
mod state;
mod sync;
mod timing;

pub use agent::DEFAULT_TURNS;
pub use approval_controller::{ApprovalController, ApprovalControllerBuilder};
pub use descriptors::{
    ContentReader, ContentStore, DescriptorSettings, Descriptors, Excerpt, Fd, FdId, FdInfo, FdSource,
    Position, Reference, Selection, StoredContent, extraction_view, find_references, first_view, page_starts,
    reading_view,
};
pub use gate::verdict::{Verdict, VerdictKind};
pub use project::agent_call_policy::{AgentCallOverride, AgentCallPolicy};
pub use project::entry::{EntrySpec, PromptInput};
pub use project::link_error::{LinkError, LinkErrors, NameKind};
pub use project::outline::{Outline, OutlinedCallable};
pub use project::rules::{approval_by_rules, pattern_means_tool};
pub use project::toolset_source::ToolsetSource;
pub use project::toolset_subset::ToolsetSubset;
pub use project::{Project, ProjectBuilder};
pub use record::changes::{changed_parts, recorded_state};
pub use record::log::EventReader;
pub use record::message_log::LoggedMessage;
pub use record::store::{
    Ack, AckSender, ClaimedRun, Durability, GivenAnswer, MemoryStore, RunWriter, Store, StoreError,
};
pub use record::unknown::{UnknownCall, unknown_calls};
pub use retry::RetryPolicy;
pub use run::approval::ApprovalBuilder;
pub use run::report::{RunError, RunReport};
pub use run::resume::{OnChanges, ResumeError, ResumeOptions};
pub use run::session::{Session, SessionTurn};
pub use run::{Canceller, Run, RunBuilder};
pub use runtime::{Runtime, RuntimeBuilder};
pub use state::broker::GrantId;
pub use state::created::DEFAULT_CREATED_AGENTS;
pub use state::in_flight::{DEFAULT_PARALLEL, DEFAULT_RESULT_BYTES};
pub use state::run_state::{DEFAULT_REQUESTS, DEFAULT_TOOL_CALLS};
pub use state::shared::{DEFAULT_DEPTH, MAX_DEPTH};
