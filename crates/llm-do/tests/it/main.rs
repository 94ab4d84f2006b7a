//! The facade as an embedding program uses it: one module per subject.
//!
//! One program, because each further one links the whole workspace again.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a broken set-up must stop the test")]
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "tests print what they measured")]

mod assess_limits;
mod dynamic_agents;
mod embedding;
mod files;
mod guide;
mod inherited_rules;
mod powers;
mod protected_files;
mod provider_faults;
mod real_effects;
mod restarted;
mod strict_providers;
mod tools;

/// Fails if `LLM_DO_REQUIRE` names something that is missing.
#[test]
fn required_capabilities_are_found() {
    llm_do_testing::check_required();
}
