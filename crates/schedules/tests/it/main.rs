//! Budgets and approvals under many schedules.
//!
//! One program, because each further one links the whole workspace again.

mod approvals;
mod budgets;
