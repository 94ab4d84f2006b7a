//! The words of llm-do.
//!
//! Agents, tools and entries are *callables*: a name, an input schema, a description, one call with JSON
//! in and JSON or text out. This crate defines what they are made of: definitions, messages, the model
//! trait, approvals, context, events, usage, and the steps that an engine performs.
//!
//! It does no I/O and runs nothing: `llm-do-runtime` does.

mod agent;
mod approval;
mod arguments;
mod attachment_policy;
mod call;
mod clock;
mod context;
mod descriptor_settings;
mod digest;
mod engine;
mod event;
mod failure;
mod grant;
mod input;
pub mod macros;
mod media_tokens;
mod message;
mod model;
mod model_override;
mod name;
mod notices;
mod numbers;
mod output;
mod payload;
mod process;
mod project_state;
mod prompt;
mod schema;
mod schema_fields;
mod server_tool;
mod session;
mod settings;
mod template;
mod text;
mod tool;
mod trace;
mod usage;

pub use agent::{AgentSpec, ApprovalRule, ToolsetChoice};
pub use approval::{
    Answer, AnsweredBy, AnsweredVia, Approval, ApprovalMode, ApprovalRequest, Approver, ApproverError,
    Assessment, Exhausted, ExtensionRequest, IntoAnswer, Quantity, Scope, SecretFile, ShownAttachment,
    Subject,
};
pub use arguments::{Arguments, ArgumentsError, JsonError, parse_arguments, parse_exact, parse_strict};
pub use attachment_policy::AttachmentPolicy;
pub use call::{
    BlockingWork, CallContext, CallContextParts, CallInfo, CallableAgent, Caller, Cancellation, InnerEffect,
    Inspection, Progress, Remark, Sample, unknown_agent,
};
pub use clock::{Clock, Random, SystemClock, SystemRandom};
pub use context::{Context, FromCall, MissingNeed, Need, NeedSpec};
pub use descriptor_settings::{DESCRIPTORS, DescriptorSettings, DescriptorSettingsError};
pub use digest::Digest;
pub use engine::{
    CallOrigin, DecidedBy, Decision, Engine, Halt, Outcome, Permit, Step, StepKind, StepResult,
};
pub use event::{
    CallKind, CallResult, ContextUse, Delta, Event, EventBody, ModelResult, Reserved, RunId, RunStart,
    Settlement, Status,
};
pub use failure::{Failure, FailureKind, HintAudience, ToolError};
pub use grant::{Grant, GrantSubject};
pub use input::{Input, InputPart, input_attachments, read_attachment};
pub use media_tokens::MediaTokens;
pub use message::{Conversation, Head, Message, Origin, Part, ProviderBlock, Role, ToolCall, ToolResult};
pub use model::{
    AttemptCost, FINAL_ANSWER, Model, ModelChoice, ModelError, ModelErrorKind, ModelPart, ModelProfile,
    ModelRequest, ModelResponse, ModelSession, ModelStream, Models, NativeOutput, NoModels, ServerCall,
    StopReason, ThinkingStyle,
};
pub use model_override::{ModelOverride, PriceList, ProfileOverride};
pub use name::{Key, Name, misspelled, nearest};
pub use notices::{NoticeSink, UndeliveredNotice};
pub use numbers::{InexactNumber, find_inexact_number};
pub use output::{Attachment, AttachmentSource, Bytes, Content, Output};
pub use payload::{Payload, canonical_text};
pub use process::{Control, Jump, LinkedPrograms, Preamble, Program, ToolOverride, Tune, Tuning};
pub use project_state::{
    BundledFile, ChangeKind, MAX_BUNDLED_BYTES, PinnedParts, ProjectBundle, ProjectChanges, ProjectSource,
    ProjectState,
};
pub use prompt::{AgentArgs, Prompt, input_fields};
pub use schema::{Accepted, Schema, SchemaError, SchemaProblem, join_problems, schema_value_of};
pub use server_tool::ServerTool;
pub use session::{
    ForkedFrom, InheritedTurn, MeasuredLength, RecordedDescriptor, SessionStart, SessionState, TurnEnd,
    TurnStart,
};
pub use settings::{Effort, EffortLevels, ModelSettings, Thinking, ToolChoice};
pub use template::{DEFAULT_TEMPLATE_BYTES, Template, TemplateError};
pub use text::{counted, lookalikes, secret_word, visible, visible_json, visible_line, visible_prose};
pub use tool::{
    Access, Approved, Effect, Opening, StatelessToolset, Survival, Tool, ToolDefinition, ToolReply, Toolset,
    ToolsetInstance, describe_call,
};
pub use trace::{Trace, TraceCall, TraceIntoIter, TraceIter};
pub use usage::{Cost, Limits, Money, NoPrices, Prices, Remaining, Usage, UsageByModel};
