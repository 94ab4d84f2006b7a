//! The log of a run under many schedules.

use llm_do_schedules::{explore, recording};

#[test]
fn events_are_written_in_their_order_and_shown_when_they_are_safe() {
    explore(recording::events_are_written_in_order);
}

#[test]
fn after_a_write_that_fails_nothing_is_safe_and_everybody_is_told() {
    explore(recording::failed_writes_stop_the_run);
}
