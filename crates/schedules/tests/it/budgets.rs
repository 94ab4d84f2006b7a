//! Budgets under many schedules.

use llm_do_schedules::{budgets, explore};

#[test]
fn usage_stays_within_every_ceiling_and_all_else_is_refunded_in_the_order_of_coming() {
    explore(budgets::usage_stays_within_every_ceiling);
}

#[test]
fn usage_above_a_reservation_is_booked_and_limits_are_exceeded_by_no_more() {
    explore(budgets::overruns_are_booked);
}

#[test]
fn a_waiter_that_gives_up_holds_up_nobody_behind_it() {
    explore(budgets::giving_up_lets_others_go);
}

#[test]
fn a_refund_or_extension_serves_everybody_whom_it_suffices_for() {
    explore(budgets::new_room_serves_all_who_fit);
}
