//! The shell toolset: what it allows, what it runs, and what it never leaves behind.

mod approvals;
mod corpus;
mod policy;
mod processes;
mod repositories;
mod support;
mod words;
