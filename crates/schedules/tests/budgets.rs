//! Budgets under many schedules.

use llm_do_schedules::{budgets, explore};

#[test]
fn usage_stays_within_every_ceiling_and_all_else_is_refunded_in_the_order_of_coming() {
    explore(budgets::usage_stays_within_every_ceiling);
}

#[test]
fn nothing_starts_below_an_overrun_until_the_limit_is_raised() {
    explore(budgets::nothing_starts_below_an_overrun);
}

#[test]
fn a_waiter_that_gives_up_holds_up_nobody_behind_it() {
    explore(budgets::giving_up_lets_others_go);
}

#[test]
fn a_refund_or_extension_serves_everybody_whom_it_suffices_for() {
    explore(budgets::new_room_serves_all_who_fit);
}
