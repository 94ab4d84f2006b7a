//! Agents that create agents.
//!
//! `agent_create` writes an agent file, after a person has seen all of it, and adds the agent to the running
//! project ([`creation`]). It holds no more than its creator: the runtime sees to that. `agent_call` calls every
//! agent that its caller may call, and `agent_list` says which those are.

mod create;
mod creation;
mod inheritance;
mod reach;

use std::sync::Arc;

use futures::future::BoxFuture;
use llm_do_core::{
    Name, Opening, Schema, SchemaError, StatelessToolset, Tool, ToolDefinition, ToolError, Toolset,
    ToolsetInstance,
};

use self::create::AgentCreate;
use self::reach::{AgentCall, AgentList};

pub use creation::{AgentDefaults, CreatedAgent, NewAgent, create_agent, create_agent_within};

/// The toolset `dynamic_agents`: creates, calls and lists agents.
pub struct DynamicAgents(StatelessToolset);

impl DynamicAgents {
    /// Makes the toolset. The defaults hold for what a call of `agent_create` does not say.
    pub fn new(name: impl Into<Name>, defaults: AgentDefaults) -> Result<Self, String> {
        let name = name.into();
        let message = |error: SchemaError| error.to_string();
        let tools: [Arc<dyn Tool>; 3] = [
            Arc::new(AgentCreate::new(&name, defaults).map_err(message)?),
            Arc::new(AgentCall::new(&name).map_err(message)?),
            Arc::new(AgentList::new(&name).map_err(message)?),
        ];
        Ok(Self(StatelessToolset::new(name, tools)))
    }
}

/// Begins the definition of a tool of the toolset.
fn define(toolset: &Name, name: &str, description: &str, input: Schema) -> ToolDefinition {
    let mut definition = ToolDefinition::new(name, description, input);
    definition.toolset = Some(toolset.clone());
    definition
}

impl Toolset for DynamicAgents {
    fn name(&self) -> &Name {
        self.0.name()
    }

    fn definitions(&self) -> Vec<Arc<ToolDefinition>> {
        self.0.definitions()
    }

    /// The tools keep nothing between calls: what they make is the project's.
    fn open<'a>(
        &'a self,
        opening: Opening<'a>,
    ) -> BoxFuture<'a, Result<Arc<dyn ToolsetInstance>, ToolError>> {
        self.0.open(opening)
    }
}
