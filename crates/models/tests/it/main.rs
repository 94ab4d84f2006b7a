//! The offline models: one module per part.
//!
//! One program, because each further one links the whole workspace again.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a broken set-up must stop the test")]

mod registry;
mod script;
mod script_file;
mod support;
mod test_model;

/// Fails if `LLM_DO_REQUIRE` names something that is missing.
#[test]
fn required_capabilities_are_found() {
    llm_do_capabilities::check_required();
}
