//! Python files: what they define, what their tools do, and what becomes of them when they go wrong.
//!
//! These tests need `python3` (3.10 or newer). Without it they are ignored.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a broken set-up must stop the test")]
#![allow(clippy::panic, reason = "a broken set-up must stop the test")]
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "tests print what they measured")]

mod ancestors;
mod approvals;
mod calls;
mod context;
mod context_tables;
mod crashes;
mod definitions;
mod end_all;
mod llmproc;
mod loading;
mod planted;
mod printing;
mod run_state;
mod stopping;
mod support;
mod toolsets;

/// Fails if `LLM_DO_REQUIRE` names something that is missing.
#[test]
fn required_capabilities_are_found() {
    llm_do_testing::check_required();
}
