//! Projects of files: how they are read, what is wrong with them, what they may do.

pub use crate::catalog::StandardCatalog;
pub use crate::extensions::{LoadedProjectExt, ProjectBuilderExt};
pub use crate::loader::Loader;
pub use crate::trusted::{LoadError, TrustPolicy};
pub use llm_do_project::{
    AgentDraft, AgentDraftError, AttachmentSection, Catalog, Code, CodeClass, CodeLocation, CodeModel,
    CodeProblem, CodeProvider, CodeRunner, Diagnostic, Diagnostics, EmbeddingProgram, Host, LimitsSection,
    LoadedProject, Machine, McpServer, ModelCatalog, NoToolsets, ProjectFiles, Provider, Reach, ReachModel,
    ReachedAgent, ReachedCall, ReachedKind, ReachedProvider, RecordedFiles, SecretFilesError, Severity,
    ToolsetCatalog, Workshop,
};
pub use llm_do_runtime::{LinkError, LinkErrors, NameKind, Outline, OutlinedCallable};
pub use llm_do_trust::{DeclaredPower, Power, PowerClass, Powers};
