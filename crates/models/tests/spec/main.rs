//! What the offline models promise, one module per part.

#![expect(clippy::unwrap_used, reason = "what a helper cannot do fails its test")]

mod registry;
mod script;
mod script_file;
mod support;
mod test_model;
