//! What the offline models promise, one module per part.

#![expect(clippy::unwrap_used, reason = "what a helper cannot do fails its test")]

mod catalogue;
mod script;
mod script_file;
mod support;
mod test_model;
