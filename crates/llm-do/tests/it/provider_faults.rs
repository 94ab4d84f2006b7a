//! What happens when providers and networks fail: a corpus of faults, and random ones, through the whole runtime.
//!
//! Time is virtual and the network a script, so that every wait can be measured. The oracle stands outside: what the
//! transport was asked and when, and what tools really did.

mod corpus;
mod random;
mod stage;
