//! Runs agents and tools.
//!
//! A [`Project`] links agents, tools, toolsets and entries by name. A [`Runtime`] runs them: every call of
//! every kind goes through one dispatcher and one gate, is budgeted, recorded and shown as events.
//!
//! The crate prints nothing and reads no terminal, home directory or environment: it is told, and it emits
//! events. See `ARCHITECTURE.md` for the way of one call from prompt to answer.

mod agent;
mod approval_controller;
mod ask;
mod assess;
mod attachments;
mod broker;
mod budget;
mod caller;
mod cancelled;
mod control;
mod created;
mod descriptors;
mod dispatch;
mod effect;
mod engine;
mod entry;
mod extension;
mod fork;
mod gate;
mod in_flight;
mod instances;
mod link_error;
mod live;
mod log;
mod long_input;
mod media_type;
mod message_log;
mod outline;
mod plan;
mod project;
mod prompt;
mod received;
mod redaction;
mod repeats;
mod replay;
mod retry;
mod rules;
mod run;
mod runtime;
mod secret_files;
mod server_tools;
mod session;
mod state;
mod stopwatch;
mod store;
mod subscribers;
mod sync;
mod timing;
mod toolset_source;
mod toolset_subset;
mod unresolved;
mod verdict;

pub use agent::DEFAULT_TURNS;
pub use approval_controller::{ApprovalBuilder, ApprovalController, ApprovalControllerBuilder};
pub use assess::{AgentCallOverride, AgentCallPolicy};
pub use broker::GrantId;
pub use created::DEFAULT_CREATED_AGENTS;
pub use descriptors::{
    ContentReader, ContentStore, DescriptorSettings, Descriptors, Excerpt, Fd, FdId, FdInfo, FdSource,
    Position, Reference, Selection, StoredContent, extraction_view, find_references, first_view, page_starts,
    reading_view,
};
pub use entry::{EntrySpec, PromptInput};
pub use in_flight::{DEFAULT_PARALLEL, DEFAULT_RESULT_BYTES};
pub use link_error::{LinkError, LinkErrors};
pub use log::EventReader;
pub use message_log::LoggedMessage;
pub use outline::{Outline, OutlinedCallable};
pub use project::{Project, ProjectBuilder};
pub use retry::RetryPolicy;
pub use rules::{approval_by_rules, pattern_means_tool};
pub use run::{Canceller, Run, RunBuilder, RunError, RunReport};
pub use runtime::{DEFAULT_DEPTH, MAX_DEPTH, Runtime, RuntimeBuilder};
pub use session::{Session, SessionTurn};
pub use state::{DEFAULT_REQUESTS, DEFAULT_TOOL_CALLS};
pub use store::{Durability, MemoryStore, Store, StoreError};
pub use toolset_source::ToolsetSource;
pub use toolset_subset::ToolsetSubset;
pub use verdict::{Verdict, VerdictKind};
