//! Models: the trait to implement, messages and settings, and the built-in providers.

pub use crate::user_models::UserModels;
pub use llm_do_core::{
    Conversation, Effort, EffortLevels, Head, Message, Model, ModelChoice, ModelError, ModelErrorKind,
    ModelOverride, ModelPart, ModelProfile, ModelRequest, ModelResponse, ModelSession, ModelSettings,
    ModelStream, Models, NativeOutput, NoModels, Origin, Part, ProfileOverride, ProviderBlock, Role,
    ServerCall, ServerTool, StopReason, Thinking, ThinkingStyle, ToolCall, ToolChoice, ToolResult,
};
pub use llm_do_models::{
    BuiltinProvider, Cassette, CassetteError, CassetteMode, DeclaredProvider, Describe, DescribedModel,
    DescribedProvider, Environment, HttpSettings, HttpTransport, KeyStoreError, KnownModel, PROTOCOLS,
    ScriptFileError, StandardModels, Transport, Variable, account_of, full_names, known_models, profile_of,
    provider_names, providers,
};
pub use llm_do_runtime::RetryPolicy;
