//! Project files, from bytes to a linked project or diagnostics: one module per subject.
//!
//! One program, because each further one links the whole workspace again.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a broken set-up must stop the test")]
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "tests print what they measured")]

mod code;
mod corpus;
mod documents;
mod hostile;
mod model_settings;
mod mutations;
mod offered;
mod parts;
mod paths;
mod processes;
mod program_files;
mod python_guide;
mod python_projects;
