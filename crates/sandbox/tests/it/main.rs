//! Child processes, confined and ended.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a broken set-up must stop the test")]
#![allow(clippy::panic, reason = "a broken set-up must stop the test")]
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "tests print what they measured")]

mod sandbox;

/// Fails if `LLM_DO_REQUIRE` names something that is missing.
#[test]
fn required_capabilities_are_found() {
    llm_do_capabilities::check_required();
}
