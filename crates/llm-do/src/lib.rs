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
//! let runtime = Runtime::standard(project).build()?;
//! let report = runtime.run("main", "what is 2 + 3?").blocking()?;
//! println!("{}\n{}", report.text(), report.trace());
//! # assert_eq!(runtime.run("add", json!({"a": 2, "b": 3})).blocking()?.parse::<i64>()?, 5);
//! # Ok(())
//! # }
//! ```
//!
//! An agent can call a tool, another agent or itself; a tool can call agents ([`CallContext::call`]). Every
//! call passes the same gate, is budgeted, recorded and shown as events.
//!
//! The root holds what every program needs, [`prelude`] the same and the traits to import. The modules hold the rest:
//!
//! | Module | Holds |
//! | --- | --- |
//! | [`approval`] | approvers, modes, rules, grants, verdicts |
//! | [`call`] | what the code of a tool sees of its call |
//! | [`event`] | events of a run, traces of its calls |
//! | [`value`] | names, schemas, inputs, prompts, attachments |
//! | [`model`] | the model trait, messages, settings, providers |
//! | [`usage`] | tokens, money, prices |
//! | [`tools`] | traits of tools and toolsets, the built-in toolsets |
//! | [`project`] | projects of files, their diagnostics and powers |
//! | [`record`], [`descriptors`] | stored runs, long texts in pages |
//! | [`testing`] | scripted models |

pub mod approval;
pub mod call;
mod catalog;
pub mod descriptors;
mod dynamic_agents;
pub mod event;
mod extensions;
mod loader;
pub mod model;
pub mod project;
pub mod record;
pub mod testing;
pub mod tools;
mod trusted;
pub mod usage;
mod user_models;
pub mod value;

use std::path::{Path, PathBuf};

pub use extensions::RuntimeExt;
#[doc(hidden)] // the code that `#[tool]` writes names it
pub use llm_do_core::macros;
pub use llm_do_core::{AgentSpec, CallContext, Failure, Limits, Output, Payload, ToolError};
pub use llm_do_macros::{tool, toolset};
pub use llm_do_runtime::{
    EntrySpec, Project, ProjectBuilder, Run, RunError, RunReport, Runtime, RuntimeBuilder, Session,
};

use catalog::StandardCatalog;
use loader::Loader;
use project::{LoadError, LoadedProject, TrustPolicy};

/// Reads a project from files: a manifest, a directory or a single agent file.
///
/// ```
/// use llm_do::prelude::*;
///
/// let project = llm_do::load(concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/newsroom"))?;
/// let runtime = project.runtime().build()?;
/// let report = runtime.run(project.entry.clone(), "Write two lines about the harbor.").blocking()?;
/// assert!(report.text().starts_with("Ships"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// A project with powers is refused: [`loader`] takes a [`TrustPolicy`].
pub fn load(path: impl AsRef<Path>) -> Result<LoadedProject, LoadError> {
    trusted::load(path.as_ref(), &[], &TrustPolicy::Refuse, &StandardCatalog::new("."))
}

/// Begins to read a project of files: a manifest, a directory or a single agent file.
///
/// Agents in files list tools and toolsets of the program by their names, as they list all others:
///
/// ```
/// use llm_do::prelude::*;
///
/// /// Counts the words of a text.
/// #[tool(access = "read", approval = "pre_approved", effect = "pure")]
/// fn count_words(text: String) -> usize {
///     text.split_whitespace().count()
/// }
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = std::env::temp_dir().join(format!("llm-do-loader-{}", std::process::id()));
/// # std::fs::create_dir_all(&folder)?;
/// # let path = folder.join("counter.agent");
/// // counter.agent lists `tools: [count_words]`
/// # std::fs::write(&path, "---\nname: counter\nmodel: test\ntools: [count_words]\n---\nCount.")?;
/// let project = llm_do::loader(&path).tool(count_words).load()?;
/// let runtime = project.runtime().build()?;
/// let report = runtime.run(&project.entry, "How long is this?").blocking()?;
/// println!("{}\n{}", report.text(), report.trace());
/// # assert!(report.trace().iter().any(|call| call.name == "count_words"));
/// # std::fs::remove_dir_all(&folder)?;
/// # Ok(())
/// # }
/// ```
pub fn loader(path: impl Into<PathBuf>) -> Loader {
    Loader::new(path.into())
}

/// What most programs need.
pub mod prelude {
    pub use crate::approval::{Answer, Approval, ApprovalController, ApprovalMode, ApprovalRequest, Scope};
    pub use crate::call::{Cancellation, Need, Progress};
    pub use crate::project::{LoadedProjectExt, ProjectBuilderExt};
    pub use crate::value::{AgentArgs, Attachment, InputPart, PromptInput};
    pub use crate::{
        AgentSpec, CallContext, EntrySpec, Failure, Limits, Output, Project, Runtime, RuntimeExt, ToolError,
        tool, toolset,
    };
}
