//! Agents and tools under one calling convention.
//!
//! ```
//! use llm_do::prelude::*;
//! use serde_json::json;
//!
//! /// Adds two numbers.
//! #[tool(access = "read", approval = "pre_approved", effect = "pure")]
//! fn add(a: i64, b: i64) -> i64 {
//!     a + b
//! }
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let main = AgentSpec::new("main", "Use `add`.").tool("add").model("test");
//! let project = Project::builder().agent(main).tool(add).build()?;
//! let runtime = llm_do::runtime(project).build()?;
//! let report = runtime.run("main", "what is 2 + 3?").blocking()?;
//! println!("{}\n{}", report.text(), report.trace());
//! # assert_eq!(runtime.run("add", json!({"a": 2, "b": 3})).blocking()?.parse::<i64>()?, 5);
//! # Ok(())
//! # }
//! ```
//!
//! An agent can call a tool, another agent or itself; a tool can call agents ([`CallContext::call`]). Every
//! call passes the same gate, is budgeted, recorded and shown as events.

mod builtins;
mod catalog;
mod dynamic_agents;
mod loader;
mod trusted;
mod user_models;

use std::path::Path;
use std::sync::Arc;

pub use builtins::ProjectBuilderExt;
pub use catalog::StandardCatalog;
pub use loader::{Loader, loader};
pub use trusted::{LoadError, TrustPolicy};
pub use user_models::UserModels;

pub use llm_do_core::macros;
pub use llm_do_core::{
    Accepted, Access, AgentArgs, AgentSpec, Answer, Approval, ApprovalMode, ApprovalRequest, ApprovalRule,
    Approved, Approver, ApproverError, Assessment, Attachment, AttachmentPolicy, AttachmentSource, Bytes,
    CallContext, CallInfo, CallKind, CallOrigin, CallResult, CallableAgent, Cancellation, Clock, Content,
    Context, Conversation, Cost, DecidedBy, Decision, Delta, Digest, Effect, Effort, EffortLevels, Event,
    EventBody, Exhausted, ExtensionRequest, Failure, FailureKind, FromCall, Grant, GrantSubject, Halt, Head,
    Input, InputPart, Inspection, IntoAnswer, Key, Limits, LinkedPrograms, Message, MissingNeed, Model,
    ModelChoice, ModelError, ModelErrorKind, ModelOverride, ModelPart, ModelProfile, ModelRequest,
    ModelResponse, ModelResult, ModelSession, ModelSettings, ModelStream, Models, Money, Name, NativeOutput,
    Need, NeedSpec, NoModels, NoPrices, NoticeSink, Opening, Origin, Outcome, Output, Part, Payload, Permit,
    PriceList, Prices, Problem, ProfileOverride, Program, Progress, Prompt, ProviderBlock, Quantity, Random,
    Remaining, Remark, Role, RunId, Schema, SchemaError, Scope, SecretFile, ServerCall, ServerTool,
    ShownAttachment, StatelessToolset, Status, StopReason, Subject, SystemClock, SystemRandom, Template,
    TemplateError, Thinking, ThinkingStyle, Tool, ToolCall, ToolChoice, ToolDefinition, ToolError, ToolReply,
    ToolResult, Toolset, ToolsetChoice, ToolsetInstance, Trace, TraceCall, Usage, UsageByModel, counted,
    input_attachments, lookalikes, misspelled, nearest, parse_strict, schema_value_of, visible, visible_json,
    visible_line, visible_prose,
};
pub use llm_do_macros::{tool, toolset};
pub use llm_do_models::{
    BuiltinProvider, Cassette, CassetteError, CassetteMode, Condition, DeclaredProvider, Describe,
    DescribedModel, DescribedProvider, Environment, HttpSettings, HttpTransport, KnownModel, PROTOCOLS,
    Reply, Script, ScriptFileError, StandardModels, StandardPrices, TestModel, Transport, Variable,
    account_of, asks, asks_all, asks_raw, contains, cut, fails, full_names, instructed, known_models,
    profile_of, provider_names, providers, replies, result_of, says, thinks,
};
pub use llm_do_project::{
    AgentDraft, AttachmentSection, Catalog, ClassPurpose, Code, CodeClass, CodeModel, CodePlace, CodeProblem,
    CodeProvider, Defined, Diagnostic, Diagnostics, HeaderProblem, LimitsSection, LoadedProject, Machine,
    McpServer, NoToolsets, PYTHON_NAMES, ProjectFiles, Provider, PythonEra, PythonName, PythonNameKind,
    Reach, ReachModel, ReachedAgent, ReachedCall, ReachedKind, ReachedProvider, Severity, WantedClass,
    WantedCode, WantedFunction, WantedToolset, Workshop, check_static, discovery, find_python_name,
    header_problem, header_schema, load_agreed, load_restricted, load_static, manifest_schema, python_names,
};
pub use llm_do_runtime::{
    AgentCallOverride, AgentCallPolicy, ApprovalBuilder, ApprovalController, ApprovalControllerBuilder,
    Canceller, ContentReader, ContentStore, DEFAULT_DEPTH, DEFAULT_TURNS, DescriptorSettings, Descriptors,
    Durability, EntrySpec, EventReader, Excerpt, Fd, FdId, FdInfo, FdSource, GrantId, LinkError, LinkErrors,
    LoggedMessage, MAX_DEPTH, MemoryStore, Outline, OutlinedCallable, Position, Project, ProjectBuilder,
    PromptInput, Reference, RetryPolicy, Run, RunBuilder, RunError, RunReport, Runtime, RuntimeBuilder,
    Selection, Session, SessionTurn, Store, StoreError, StoredContent, ToolsetSource, ToolsetSubset, Verdict,
    VerdictKind, extraction_view, find_references, first_view, page_starts, reading_view,
};

pub use llm_do_trust as trust;

pub use dynamic_agents::{
    AgentDefaults, CreatedAgent, DynamicAgents, NewAgent, create_agent, create_agent_within,
};
pub use llm_do_python::PythonSettings;
#[doc(hidden)]
pub use llm_do_sandbox::end_all_commands;
pub use llm_do_sandbox::{PreparedSandbox, Reads, Sandbox, SandboxStatus, Writes, sandbox_status};
pub use llm_do_tools::{
    ExportSettings, FileDescriptors, Filesystem, FilesystemSettings, Operands, Process, ProcessSettings,
    Protected, ReadScope, SandboxMode, Shell, ShellRule, ShellSettings, Stderr, Unlisted, WriteScope,
};

/// Reads a project from files: a manifest, a directory or a lone agent file.
///
/// ```
/// let project = llm_do::load(concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/newsroom"))?;
/// let runtime = llm_do::runtime_of(&project).build()?;
/// let report = runtime.run(project.entry.clone(), "Write two lines about the harbour.").blocking()?;
/// assert!(report.text().starts_with("Ships"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// A project with powers is refused: [`loader`] takes a [`TrustPolicy`].
pub fn load(path: impl AsRef<Path>) -> Result<LoadedProject, LoadError> {
    trusted::load(path.as_ref(), &[], &TrustPolicy::Refuse, &StandardCatalog::new("."))
}

/// Reads a project with changes over its files (`runtime.max_depth=3`, `agents.NAME.model=test`), against a
/// catalog of one's own. Whatever powers it has are allowed.
pub fn load_changed(
    path: impl AsRef<Path>,
    changes: &[String],
    catalog: &dyn Catalog,
) -> Result<LoadedProject, Diagnostics> {
    llm_do_project::load_changed(path, changes, catalog)
}

/// Begins a runtime for a project from files, as its manifest says. Script files are found below its directory.
/// Keys of providers come from the environment of this process.
pub fn runtime_of(loaded: &LoadedProject) -> RuntimeBuilder {
    let builder = Runtime::builder(loaded.project.clone())
        .models(models_of(loaded, Environment::of_process()))
        .prices(StandardPrices::new().with_overrides(loaded.model_overrides.clone()));
    loaded.configure(builder).provide(loaded.workshop())
}

/// The models that a project from files may name: the built-in providers, its own, and scripts below its directory.
pub fn models_of(loaded: &LoadedProject, environment: Environment) -> StandardModels {
    models_for_user(loaded, environment, &UserModels::default())
}

/// The models that a project from files may name, and those of the user, which it cannot redeclare.
pub fn models_for_user(
    loaded: &LoadedProject,
    environment: Environment,
    user: &UserModels,
) -> StandardModels {
    let models = user.add_to(StandardModels::new(&loaded.root).environment(environment));
    let models = models.overrides(loaded.model_overrides.clone());
    let declared = |(name, provider): (&String, &Provider)| DeclaredProvider {
        name: name.clone(),
        protocol: provider.api.clone(),
        base_url: provider.base_url.clone(),
        key_env: provider.api_key_env.clone(),
        headers: provider.headers.clone(),
        is_users: false,
    };
    let models = loaded.providers.iter().map(declared).fold(models, StandardModels::provider);
    loaded.code_providers().iter().map(described).fold(models, StandardModels::described)
}

/// A provider that the project's code brings.
fn described(provider: &CodeProvider) -> DescribedProvider {
    let reach = provider.reach.clone();
    let describe = move |model: &str| {
        let model =
            reach(model).map_err(|failure| ModelError::new(ModelErrorKind::NoModel, failure.message))?;
        let CodeModel { api, base_url, key, headers, model } = model;
        Ok(DescribedModel { protocol: api, base_url, key, headers: headers.into_iter().collect(), model })
    };
    DescribedProvider { name: provider.name.to_string(), describe: Arc::new(describe) }
}

/// Begins a runtime that knows the built-in models by name. Script files are found below the working directory, keys
/// of providers in the environment of this process.
pub fn runtime(project: Project) -> RuntimeBuilder {
    let models = StandardModels::new(".").environment(Environment::of_process());
    Runtime::builder(project).models(models).prices(StandardPrices::new())
}

/// Scripted models and models for tests, which need no provider. `llm-do-testing` has more.
pub mod testing {
    pub use llm_do_models::{
        Condition, Reply, Script, TestModel, asks, asks_all, asks_raw, contains, cut, fails, instructed,
        replies, result_of, says, thinks,
    };
}

/// What most programs need.
pub mod prelude {
    pub use crate::{
        AgentArgs, AgentSpec, Answer, Approval, ApprovalController, ApprovalMode, ApprovalRequest,
        Attachment, CallContext, Cancellation, EntrySpec, Failure, InputPart, Limits, Need, Output, Progress,
        Project, ProjectBuilderExt, PromptInput, Runtime, Scope, ToolError, tool, toolset,
    };
}
