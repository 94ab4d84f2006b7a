//! The runtime through `TestProject`: one module per subject.
//!
//! One program, because each further one links the whole workspace again.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a broken set-up must stop the test")]
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "tests print what they measured")]

mod answers;
mod approvals;
mod attachments;
mod bookings;
mod budget_trees;
mod budgets;
mod cancelling;
mod cancelling_calls;
mod changes;
mod context_window;
mod descriptors;
mod dispatch;
mod events;
mod flatness;
mod hard_cases;
mod inner_effects;
mod linking;
mod manual_only;
mod overrides;
mod parking;
mod preambles;
mod providers;
mod random_calls;
mod recorded_sessions;
mod resume;
mod resumed_agents;
mod resumed_budgets;
mod resumed_grants;
mod resumed_instances;
mod resumed_models;
mod resumed_outcomes;
mod resumed_time;
mod secrets;
mod sessions;
mod stopped_turns;
mod tool_json;
mod toolsets;
mod verdicts;
