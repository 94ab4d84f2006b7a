//! When calls of agents must ask.

use llm_do_core::Name;

/// When calls of agents must ask. By default they are free.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AgentCallPolicy {
    /// Every call asks.
    pub calls: bool,
    /// Calls with attachments ask.
    pub attachments: bool,
    /// Exceptions for single agents.
    pub overrides: Vec<AgentCallOverride>,
}

/// When calls of one agent must ask.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentCallOverride {
    /// The agent that is called.
    pub agent: Name,
    /// Whether every call asks, where it differs.
    pub calls: Option<bool>,
    /// Whether calls with attachments ask, where it differs.
    pub attachments: Option<bool>,
}

impl AgentCallPolicy {
    /// Returns whether a call of an agent must ask.
    pub fn must_ask(&self, agent: &Name, has_attachments: bool) -> bool {
        let special = self.overrides.iter().find(|special| special.agent == *agent);
        let calls = special.and_then(|special| special.calls).unwrap_or(self.calls);
        let attachments = special.and_then(|special| special.attachments).unwrap_or(self.attachments);
        calls || (attachments && has_attachments)
    }
}
