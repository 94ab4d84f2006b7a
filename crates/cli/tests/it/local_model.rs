//! The binary against a real model: llama.cpp's server, which nobody here wrote, as the example `local-model` starts it.
//!
//! `cargo xtask setup --model` installs the model into the user's cache. Without it, these tests are ignored.

mod conversations;
mod example;
mod failures;
mod protocols;
mod server;
mod settings;
