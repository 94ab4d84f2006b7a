//! The binary against a real model: llama.cpp's server, which nobody here wrote, as the example `local-model` starts it.
//!
//! The first run downloads the model into the user's cache. Where it cannot be had, these tests say so and pass;
//! `LLM_DO_LOCAL_MODEL=off` leaves them out, `LLM_DO_LOCAL_MODEL=on` makes a missing model a failure.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a broken set-up must stop the test")]
#![allow(missing_docs, unreachable_pub, reason = "nobody else uses these tests")]

mod conversations;
mod example;
mod failures;
mod protocols;
mod server;
mod settings;
#[path = "../commands/support.rs"]
#[allow(dead_code, reason = "shared with the tests of the commands, which use more of it")]
mod support;
