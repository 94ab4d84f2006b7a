//! Projects of files: how they are read, what is wrong with them, what they may do.

pub use crate::catalog::StandardCatalog;
pub use crate::extensions::{LoadedProjectExt, ProjectBuilderExt};
pub use crate::loader::Loader;
pub use crate::trusted::{LoadError, TrustPolicy};
pub use llm_do_project::{
    AgentDraft, AttachmentSection, Catalog, Code, CodeClass, CodeLocation, CodeModel, CodeProblem,
    CodeProvider, Diagnostic, Diagnostics, LimitsSection, LoadedProject, Machine, McpServer, NoToolsets,
    ProjectFiles, Provider, Reach, ReachModel, ReachedAgent, ReachedCall, ReachedKind, ReachedProvider,
    Severity, Workshop,
};
pub use llm_do_runtime::{LinkError, LinkErrors, NameKind, Outline, OutlinedCallable};
pub use llm_do_trust::{DeclaredPower, Power, PowerClass, Powers};
