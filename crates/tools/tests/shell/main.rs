//! The shell toolset: what it allows, what it runs, and what it never leaves behind.

mod corpus;
mod support;
