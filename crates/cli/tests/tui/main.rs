//! The binary at a real terminal: one module per matter.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a broken set-up must stop the test")]
#![allow(missing_docs, unreachable_pub, reason = "nobody else uses these tests")]

mod approvals;
mod chat;
mod commands;
mod headless;
mod interrupts;
mod leaving;
mod pictures;
mod provider;
mod resizing;
#[path = "../commands/support.rs"]
#[allow(dead_code, reason = "these tests read a screen and not what a pipe holds")]
mod sandbox;
mod streams;
mod support;
mod surfaces;
mod tree;
mod trust;
