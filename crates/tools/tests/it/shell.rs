//! The shell toolset: what it allows, what it runs, and what it never leaves behind.

mod approvals;
mod corpus;
mod floods;
mod hangs;
mod hostile_repositories;
mod hunt;
mod observed;
mod policy;
mod processes;
mod repositories;
#[cfg(target_os = "linux")]
mod sandbox;
mod secret_files;
mod secrets;
mod support;
