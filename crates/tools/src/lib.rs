//! The built-in toolsets of llm-do.

mod shell;

pub use shell::{Operands, Shell, ShellRule, ShellSettings, Unlisted};
