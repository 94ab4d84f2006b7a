//! Agents that create agents.
//!
//! `agent_create` writes an agent file, after a person has seen all of it, and adds the agent to the running
//! project ([`creation`]). It may do no more than its creator, which the runtime checks. `agent_call` calls any agent that
//! its caller may call, and `agent_list` lists those.
//!
//! The toolset is here and not in `llm-do-tools` because it needs the project: new agent files are read as the project's
//! own (`Workshop`).

mod create;
mod creation;
mod inheritance;
mod reach;

use std::sync::Arc;

use futures::future::BoxFuture;
use llm_do_core::{
    Name, Opening, Schema, SchemaError, StatelessToolset, Survival, Tool, ToolDefinition, ToolError, Toolset,
    ToolsetInstance,
};

use llm_do_project::WantedToolset;
use serde::Deserialize;
use serde_json::Value;

use self::create::AgentCreate;
use self::reach::{AgentCall, AgentList};

pub use creation::{AgentDefaults, CreatedAgent, NewAgent, create_agent, create_agent_within};

/// The name under which projects list the toolset.
pub(crate) const NAME: &str = "dynamic_agents";

/// The tools of the toolset, which agents may also list alone.
pub(crate) const TOOLS: [&str; 3] = ["agent_call", "agent_create", "agent_list"];

/// Makes the toolset as a project lists it. The settings are what created agents get if nothing else is requested.
pub(crate) fn from_settings(wanted: &WantedToolset<'_>) -> Result<Arc<dyn Toolset>, String> {
    if wanted.section.is_some() {
        return Err(format!(
            "the settings of `{}` belong in the manifest, and apply to every agent",
            wanted.name
        ));
    }
    let defaults = match wanted.settings {
        Value::Null => AgentDefaults::default(),
        settings => AgentDefaults::deserialize(settings).map_err(|error| error.to_string())?,
    };
    Ok(Arc::new(DynamicAgents::new(wanted.name.clone(), defaults).map_err(|error| error.to_string())?))
}

/// The toolset `dynamic_agents`: creates, calls and lists agents.
pub struct DynamicAgents(StatelessToolset);

impl DynamicAgents {
    /// Makes the toolset. The defaults hold for what a call of `agent_create` does not say.
    pub fn new(name: impl Into<Name>, defaults: AgentDefaults) -> Result<Self, SchemaError> {
        let name = name.into();
        let tools: [Arc<dyn Tool>; 3] = [
            Arc::new(AgentCreate::new(&name, defaults)?),
            Arc::new(AgentCall::new(&name)?),
            Arc::new(AgentList::new(&name)?),
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

    fn survives(&self) -> Survival {
        Survival::Stateless
    }

    /// The tools keep nothing between calls: what they make is the project's.
    fn open<'a>(
        &'a self,
        opening: Opening<'a>,
    ) -> BoxFuture<'a, Result<Arc<dyn ToolsetInstance>, ToolError>> {
        self.0.open(opening)
    }
}
