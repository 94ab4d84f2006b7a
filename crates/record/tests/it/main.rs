//! The record against a simple model, crashes, full disks and other processes.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout, missing_docs)]

mod claims;
mod crashes;
#[cfg(feature = "failpoints")]
mod fail_points;
mod oracle;
mod random;
mod reading;
mod runs;
mod scripted;
mod support;
