//! The binary against a real model: llama.cpp's server, which nobody here wrote, as the example `local-model` starts it.
//!
//! The first run downloads the model into the user's cache. Where it cannot be had, these tests say so and pass;
//! `LLM_DO_LOCAL_MODEL=off` leaves them out, `LLM_DO_LOCAL_MODEL=on` makes a missing model a failure.

mod conversations;
mod example;
mod failures;
mod protocols;
mod server;
mod settings;
