//! The binary at a real terminal: one module per matter.

mod approvals;
mod chat;
mod commands;
mod headless;
mod interrupts;
mod leaving;
mod pictures;
mod provider;
mod resizing;
mod streams;
pub mod support;
mod surfaces;
mod tree;
mod trust;
