//! Approvals under many schedules.

use llm_do_schedules::{approvals, explore};

#[test]
fn a_new_grant_releases_exactly_the_open_requests_that_it_covers() {
    explore(approvals::grants_release_what_they_cover);
}

#[test]
fn a_revoked_grant_answers_nobody_who_is_open_or_asks_later() {
    explore(approvals::revoked_grants_answer_nobody);
}

#[test]
fn a_stopped_or_dropped_asker_leaves_neither_an_open_request_nor_half_a_grant() {
    explore(approvals::stopped_askers_leave_nothing_behind);
}
