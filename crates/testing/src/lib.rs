//! Test helpers for llm-do.
//!
//! - [`TestProject`] puts a project, a scripted model and scripted approvals together and runs it.
//! - [`TestCall`] gives a single tool a context with provided values and stubbed calls and approvals, so
//!   that tools are tested without a runtime.
//! - [`TestDir`] is a fresh directory with files.
//! - [`FunctionTool`] is a tool made from a closure.
//! - [`Chance`] gives random cases that a seed repeats.
//! - [`needs`] reports a test as ignored where the machine lacks a [`Capability`], such as Python.
//! - [`own_process!`] runs the rest of a test in a process of its own.
//! - [`MockProvider`] and [`FakeTransport`] are providers that answer as a script says, also badly.
//! - [`StrictProvider`] refuses the requests that real providers refuse, with the rules of `llm-do-provider-rules`.
//! - [`HookedStore`] shows a test what is recorded, and lets it delay or refuse a write.
//! - [`EffectRecorder`] stands outside the runtime and sees what really happened.
//!
//! With the feature `terminal`:
//!
//! - `terminal::TerminalSession` is a program at a real terminal: keys in, a screen out.
//! - `screenshot` draws such a screen as an SVG.

#![expect(clippy::expect_used, clippy::panic, reason = "a broken test set-up must stop the test")]

mod approvals;
mod chance;
mod function_tool;
mod hooked_store;
mod mock_provider;
mod own_process;
mod recorder;
#[cfg(feature = "terminal")]
pub mod screenshot;
#[cfg(feature = "terminal")]
pub mod terminal;
mod test_call;
mod test_dir;
mod test_project;

pub use approvals::{Approvals, deny, edit, for_session, once, stop};
pub use chance::Chance;
pub use function_tool::FunctionTool;
pub use hooked_store::HookedStore;
pub use llm_do_capabilities::{
    Capability, PYTHON_ENVIRONMENTS, PythonEnvironment, check_required, test_cache,
};
pub use llm_do_provider_rules::{OptionalRules, Protocol, ProviderRefusal};
pub use llm_do_testing_macros::needs;
pub use mock_provider::{
    Drip, FakeTransport, Fault, Generated, MockAnswer, MockApi, MockProvider, MockRequest, MockResponse,
    ProviderFault, StrictProvider, StrictRequest,
};
pub use own_process::run_in_own_process;
pub use recorder::{EffectRecorder, SeenEffect};
pub use test_call::{TestCall, TestReply};
pub use test_dir::TestDir;
pub use test_project::{TestProject, TestRun};
