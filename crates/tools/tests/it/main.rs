//! The built-in toolsets: one module per subject.
//!
//! One program, because each further one links the whole workspace again.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a broken set-up must stop the test")]
#![allow(clippy::panic, reason = "a broken set-up must stop the test")]
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "tests print what they measured")]

mod descriptors;
mod filesystem;
mod process;
mod process_isolation;
mod process_programs;
mod process_wire;
mod session_wire;
mod shell;

/// Fails if `LLM_DO_REQUIRE` names something that is missing.
#[test]
fn required_capabilities_are_found() {
    llm_do_testing::check_required();
}
