//! Creates agents while a project runs: writes their files, and reads them as if they had been there when it was loaded.

mod agent_draft;
mod workshop;

pub use agent_draft::{AgentDraft, AgentDraftError};
pub use workshop::Workshop;
