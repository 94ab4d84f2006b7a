//! The record against a simple model, crashes, full disks and other processes.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout, missing_docs)]

mod bundles;
mod claims;
mod crashes;
mod damage;
#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
mod disks;
#[cfg(feature = "failpoints")]
mod fail_points;
#[allow(dead_code, reason = "with fail points, and through the binary, all of it is used")]
mod oracle;
mod questions;
mod random;
mod reading;
mod retention;
mod runs;
mod scripted;
mod sessions;
mod size;
mod support;
