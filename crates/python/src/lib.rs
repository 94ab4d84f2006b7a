//! Runs the Python files of a project, in one process of their own, and makes tools, toolsets and agents of what they
//! define.
//!
//! The process exchanges lines of JSON with this program (`wire`) over a channel that its code does not see. The Python
//! sources of this crate are unpacked for it (`package`) and started with the project's interpreter (`interpreter`).
//! The process lives as long as the project (`host`, `process`). Each call of a tool is one request (`call`), and what
//! the code asks for during a call passes the gate.
//!
//! A crash, an endless loop or unexpected output is an error of the call in which it happens: the next call starts a new
//! process.
//!
//! This crate does not decide which files a project has or when they may run: the loader of the project does. It makes no
//! files or shell toolsets either: those that Python files set up come from `llm-do-tools` (`native_toolsets`).

mod blocking;
mod call;
mod cancel;
mod cancel_watch;
mod define;
mod host;
mod interpreter;
mod load;
mod native_toolsets;
mod open_toolset;
mod outbox;
mod outside;
mod package;
mod process;
mod process_exit;
mod settings;
mod sources;
mod syntax;
mod tool;
mod toolset;
mod wire;

pub use load::{python_code, python_interpreter};
pub use settings::PythonSettings;
pub use syntax::python_syntax_problems;
