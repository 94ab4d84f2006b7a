//! Budgets, approvals and the record under many schedules.
//!
//! One program, because each further one links the whole workspace again.

mod approvals;
mod budgets;
mod recording;
