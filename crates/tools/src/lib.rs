//! The built-in toolsets of llm-do.
//!
//! - [`Filesystem`] reads, writes, lists and searches the files below one directory.
//! - [`Shell`] runs listed programs without a shell.
//! - [`DynamicAgents`] creates, calls and lists agents.
//!
//! A toolset is a factory: each agent call opens an instance of its own. The names under which projects list
//! them stand in one table ([`built_in_names`]).

mod catalogue;
mod dynamic_agents;
mod filesystem;
mod shell;

pub use catalogue::{Surroundings, built_in, built_in_names};
pub use dynamic_agents::{
    AgentDefaults, CreatedAgent, DynamicAgents, NewAgent, create_agent, create_agent_within,
};
pub use filesystem::{Filesystem, FilesystemSettings, Protected};
pub use shell::{Operands, Shell, ShellRule, ShellSettings, Unlisted, end_all_commands};
