//! The names of the Python programs that llm-do grew out of, and what replaces each of them.
//!
//! One table answers for all hints: unknown keys, tools and command-line flags here, failed imports in the Python
//! host, and the guide `coming-from-python.md`, whose tables a test compares with it.

use std::sync::OnceLock;

use serde::Deserialize;

/// The table as JSON: an array of objects sorted by name, with the fields of [`PythonName`].
pub const PYTHON_NAMES: &str = include_str!("../data/python-names.json");

/// One name of a Python program.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct PythonName {
    /// The name as people wrote it. Keys below a section are dotted: `runtime.max_depth`.
    pub name: String,
    /// What it named.
    pub kind: PythonNameKind,
    /// The program, or the version of it, that had the name.
    pub era: PythonEra,
    /// What it was, in a few words.
    pub was: String,
    /// What replaces it here.
    pub now: String,
    /// A short example of what replaces it.
    pub example: String,
}

/// What a Python name named.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum PythonNameKind {
    /// A function or decorator.
    Function,
    /// A class or type alias.
    Class,
    /// A method.
    Method,
    /// A module that was imported.
    Module,
    /// A key of a manifest, worker, agent or program file.
    Key,
    /// A flag of the command line.
    Flag,
    /// A tool or toolset.
    Tool,
    /// A file or program.
    File,
    /// An attribute, parameter or environment variable.
    Attribute,
}

/// The program, or the version of it, that had a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum PythonEra {
    /// llm-do with a registry of YAML workers.
    Workers,
    /// llm-do with a context that dispatched calls.
    Context,
    /// llm-do with a manifest and agent files.
    Agents,
    /// LLMProc.
    Llmproc,
}

/// Returns all names, sorted.
pub fn python_names() -> &'static [PythonName] {
    static NAMES: OnceLock<Vec<PythonName>> = OnceLock::new();
    // A test reads the file, so it can be read here.
    NAMES.get_or_init(|| serde_json::from_str(PYTHON_NAMES).unwrap_or_default())
}

/// Returns what a name of one of these kinds was. Later programs come first: most projects are theirs.
pub fn find_python_name(name: &str, kinds: &[PythonNameKind]) -> Option<&'static PythonName> {
    let order = [PythonEra::Agents, PythonEra::Context, PythonEra::Workers, PythonEra::Llmproc];
    let found = python_names().iter().filter(|row| row.name == name && kinds.contains(&row.kind));
    found.min_by_key(|row| order.iter().position(|era| *era == row.era))
}

impl PythonName {
    /// Returns the hint for a person who still uses the name.
    pub fn hint(&self) -> String {
        let program = match self.era {
            PythonEra::Llmproc => "LLMProc",
            PythonEra::Workers | PythonEra::Context | PythonEra::Agents => "the Python program",
        };
        format!("`{}` of {program} is now: {}; for example `{}`", self.name, self.now, self.example)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn the_table_can_be_read_and_is_sorted() {
        let names: Vec<PythonName> = serde_json::from_str(PYTHON_NAMES).unwrap();
        assert!(names.is_sorted_by(|a, b| a.name <= b.name));
        let mut seen = HashSet::new();
        for row in &names {
            assert!(seen.insert((&row.name, row.kind, row.era)), "`{}` is listed twice", row.name);
            assert!(!row.was.is_empty() && !row.now.is_empty() && !row.example.is_empty(), "{row:?}");
            assert!(!row.example.contains('`'), "the example of `{}` is a code span already", row.name);
        }
    }

    #[test]
    fn every_name_of_the_python_documents_is_a_row() {
        let known: HashSet<&str> = python_names().iter().map(|row| row.name.as_str()).collect();
        let missing: Vec<&str> = DOCUMENTED.split_whitespace().filter(|name| !known.contains(name)).collect();
        assert!(missing.is_empty(), "no row for {missing:?}");
    }

    /// The identifiers that the documents of the Python programs use.
    const DOCUMENTED: &str = "
        message_history _should_use_message_history wrap_entry_for_approval run_entry
        load_toolsets_and_workers_from_files _approval_config ToolsetBuildContext available_toolsets
        llm_do.ctx_runtime llm_do.ctx_runtime.builtins llm_do.ctx_runtime.approval_wrappers llm_do.toolset_loader
        BUILTIN_TOOLSET_ALIASES Worker
        AgentSpec name model schema_in_ref toolsets WorkerArgs prompt_messages Attachment Runtime RuntimeConfig CallScope
        CallFrame CallConfig CallContext ToolsProxy toolset_specs active_toolsets llm_do.runtime.shared
        llm_do.runtime.call llm_do.runtime.deps llm_do.runtime.toolsets EntrySpec Runtime.run_entry NullModel
        runtime.call_agent project.json {name}.worker entry schema_in ToolsetSpec cleanup ApprovalToolset --approve-all
        --reject-all filesystem_cwd filesystem_cwd_ro filesystem_project filesystem_project_ro shell_readonly
        shell_file_ops read_file write_file list_files
        run_worker run_worker_async registry worker input_data attachments cli_model approval_callback message_callback
        WorkerRegistry AttachmentInput ModelLike ApprovalCallback MessageCallback WorkerRunResult WorkerRunResult.output
        WorkerRunResult.messages call_worker call_worker_async worker_call caller_context allow_workers create_worker
        WorkerSpec WorkerCreationDefaults spec default_model force workers/generated/{name}.yaml RuntimeDelegator
        WorkerDelegator call_async RuntimeCreator WorkerCreator WorkerContext WorkerDefinition sandbox_manager
        SandboxManager sandbox_toolset SandboxToolset creation_defaults effective_model approval_controller
        ApprovalController AttachmentPayload custom_tools_path RunContext tool_rules maybe_run sandbox.write
        ApprovalDecision approve_all_callback strict_mode_callback approved approve_for_session llm_do.execution
        default_agent_runner llm_do.approval llm_do.tools llm_do.protocols
        Context ctx.call ctx.tools ctx.trace ctx.usage ctx.registry ctx.model ctx.deps ToolEntry WorkerEntry CallableEntry
        kind requires_approval output_data schema_out Context.from_worker Tool ctx entries CallTrace
        register_tool requires_context required_context_keys runtime_context process linked_programs RuntimeContext
        fd_manager linked_program_descriptions stderr llmproc.program_exec setup_runtime_context write_stderr
        get_stderr_log process.call_tool call_tool ToolResult set_runtime_context ToolManager LLMProcess
        FileDescriptorManager llmproc.tools.function_tools LLMProgram
        worker_create worker_files sandboxes sandbox instructions locked shell_rules shell_default shell_cwd
        output_schema_ref attachment_policy worker_bootstrapper --registry --input --model --creation-defaults
        --attachments --json --strict --debug --dir --tool --set --no-rich --entry -m --input-json --init-python -v
        --headless --tui --chat --provider --open-browser -p --prompt -f --prompt-file -a --append -l --log-level -q
        --quiet --cost-limit entry.agent entry.function entry.args entry.input input_model_ref compatible_models
        server_side_tools tools description FunctionEntry AgentEntry Entry TOOLS TOOLSETS register_model_factory
        resolve_model OpenAICompatibleProvider AgentArgs PromptInput PromptContent PromptMessages get_display_text
        run_ui RunConfig RunUiResult RunApprovalPolicy AgentApprovalPolicy resolve_approval_callback ModelInput
        InvalidCompatibleModelsError ModelCompatibilityError NoModelError ApprovalRequest ApprovalResult ApprovalDenied
        ApprovalBlocked ApprovalError FileSystemToolset ReadOnlyFileSystemToolset ShellToolset FunctionToolset
        set_toolset_approval_config dynamic_agents agent_call agent_create tool_context ToolContext WorkerRuntime
        model.name model.provider model.max_iterations prompt.system_prompt prompt.user parameters preload.files
        mcp.config_path mcp.servers tools.builtin tools.mcp env_info file_descriptor demo.prompts add_linked_program
        add_preload_file configure_env_info configure_file_descriptor configure_thinking enable_token_efficient_tools
        register_tools set_enabled_tools set_tool_aliases set_user_prompt set_max_iterations configure_mcp
        get_registered_tools compile start start_sync run from_file from_toml from_yaml from_dict reset_state
        get_last_message count_tokens add_callback aclose ProcessSnapshot RunResult MCPServerTools ToolConfig
        AccessLevel calculator list_dir spawn fork goto read_fd fd_to_file
    ";
}
