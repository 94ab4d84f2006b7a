//! Python files: what they define, what their tools do, and what becomes of them when they go wrong.
//!
//! These tests need `python3` (3.10 or newer). Where there is none they say so and pass.

mod ancestors;
mod approvals;
mod calls;
mod context;
mod context_tables;
mod crashes;
mod definitions;
mod llmproc;
mod loading;
mod planted;
mod printing;
mod run_state;
mod stopping;
mod support;
mod toolsets;
