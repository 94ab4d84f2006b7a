//! The built-in toolsets of llm-do.
//!
//! - [`Filesystem`] reads, writes, lists and searches the files below one directory.
//! - [`Shell`] runs listed programs without a shell.
//! - [`DynamicAgents`] creates, calls and lists agents.
//! - [`python_code`] runs the Python files of a project, in a process of their own.
//! - [`FileDescriptors`] reads, searches and exports texts that are too long to be shown.
//! - `pocket_calculator` calculates.
//! - [`Sandbox`] confines child processes, where the system can.
//!
//! A toolset is a factory: each agent call opens an instance of its own. The names under which projects list
//! them stand in one table ([`built_in_names`]).

mod calculator;
mod catalog;
mod children;
mod dynamic_agents;
mod filesystem;
mod pattern;
mod process;
mod python;
mod sandbox;
mod shell;
mod toolset_powers;

pub use catalog::{ToolsetEnv, built_in, built_in_names, lone_tools, tool_home};
pub use children::end_all_commands;
pub use dynamic_agents::{
    AgentDefaults, CreatedAgent, DynamicAgents, NewAgent, create_agent, create_agent_within,
};
pub use filesystem::{Filesystem, FilesystemSettings, Protected, PythonReport};
pub use process::{ExportSettings, FileDescriptors, Process, ProcessSettings, Stderr};
pub use python::{PythonSettings, python_code, python_interpreter, python_syntax_problems};
pub use sandbox::{PreparedSandbox, Reads, Sandbox, SandboxStatus, Writes, sandbox_status};
pub use shell::{Operands, ReadScope, SandboxMode, Shell, ShellRule, ShellSettings, Unlisted, WriteScope};
pub use toolset_powers::toolset_powers;
