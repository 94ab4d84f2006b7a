//! Detects that llm-do started this process, which then may not change decisions of the user or see the user's keys.

use crate::command_error::CommandError;

/// A process that llm-do started has this variable.
const STARTED_BY_LLM_DO: &str = "LLM_DO_CHILD";

/// Returns whether llm-do started this process.
pub(crate) fn is_child() -> bool {
    std::env::var_os(STARTED_BY_LLM_DO).is_some()
}

/// Refuses what only the user may do, such as "store keys".
pub(crate) fn refuse(what: &str) -> Result<(), CommandError> {
    match is_child() {
        true => Err(CommandError::usage(format!("a program that llm-do started cannot {what}"))),
        false => Ok(()),
    }
}
