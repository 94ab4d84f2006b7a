//! The binary as a person or another program uses it: one module per command or subject.
//!
//! One program, because each further one links the whole workspace again.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a broken set-up must stop the test")]
#![allow(clippy::panic, reason = "a broken set-up must stop the test")]
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "tests print what they measured")]
#![allow(missing_docs, unreachable_pub, reason = "nobody else uses these tests")]

mod approvals;
mod auth;
mod call;
mod chat;
mod check;
mod config;
mod contract;
mod corpus;
mod descriptors;
mod doctor;
mod documents;
mod dotenv;
mod examples;
mod exit_codes;
mod from_python;
mod hints;
mod init;
mod input;
mod interrupts;
#[cfg(target_os = "linux")]
mod killed;
mod large_numbers;
mod limits;
mod list;
mod local_model;
mod looking;
mod models;
mod output;
mod own_directories;
mod parking;
mod paths;
mod programs;
mod projects;
mod providers;
mod python_environments;
mod python_eras;
mod python_output;
mod python_starts;
mod record_care;
#[cfg(target_os = "linux")]
mod record_kills;
#[allow(dead_code, reason = "the tests of the crate `record` use more of it")]
#[path = "../../../record/tests/it/oracle.rs"]
mod record_oracle;
mod record_races;
mod recorded_chats;
mod records;
mod reference;
mod resuming;
mod schema;
mod secret_files;
mod showing;
mod streaming;
mod support;
mod terminal;
mod trust;
mod tui;
mod upgrades;

/// Fails if `LLM_DO_REQUIRE` names something that is missing.
#[test]
fn required_capabilities_are_found() {
    llm_do_testing::check_required();
}
