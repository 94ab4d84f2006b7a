//! Tools that the macros make, and code that must not compile.
//!
//! One program, because each further one links the whole workspace again.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a broken set-up must stop the test")]

mod callers;
mod compile;
mod definitions;
mod fake;
mod parameters;
mod results;
mod toolsets;
