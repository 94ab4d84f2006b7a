//! What tools made by the macros do.
#![allow(clippy::unwrap_used, reason = "helpers of tests are tests too")]

mod callers;
mod definitions;
mod fake;
mod parameters;
mod results;
mod toolsets;
