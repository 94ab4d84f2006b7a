//! Tools and toolsets: the traits to implement, and the built-in toolsets.

pub use crate::dynamic_agents::{
    AgentDefaults, CreatedAgent, DynamicAgents, NewAgent, create_agent, create_agent_within,
};
pub use llm_do_core::{
    Access, Effect, Opening, StatelessToolset, Survival, Tool, ToolDefinition, ToolReply, Toolset,
    ToolsetChoice, ToolsetInstance,
};
pub use llm_do_python::PythonSettings;
pub use llm_do_runtime::{ToolsetSource, ToolsetSubset};
pub use llm_do_sandbox::{PreparedSandbox, Reads, Sandbox, SandboxStatus, Writes, sandbox_status};
pub use llm_do_tools::{
    ExportSettings, FileDescriptors, Filesystem, FilesystemSettings, Operands, Process, ProcessSettings,
    Protected, ReadScope, SandboxMode, Shell, ShellRule, ShellSettings, Stderr, ToolsetError, Unlisted,
    WriteScope,
};
