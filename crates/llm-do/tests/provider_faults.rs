//! What happens when providers and networks fail: a corpus of faults, and random ones, through the whole runtime.
//!
//! Time is virtual and the network a script, so that every wait can be measured. The oracle stands outside: what the
//! transport was asked and when, and what tools really did.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "what a test does not expect stops it")]

#[path = "provider_faults/corpus.rs"]
mod corpus;
#[path = "provider_faults/random.rs"]
mod random;
#[path = "provider_faults/stage.rs"]
mod stage;
