//! Whether llm-do started this process. Such a process may not change what the user decided, nor see the user's keys.

use crate::problem::Problem;

/// A process that llm-do started has this variable.
const STARTED_BY_LLM_DO: &str = "LLM_DO_CHILD";

/// Returns whether llm-do started this process.
pub(crate) fn is_child() -> bool {
    std::env::var_os(STARTED_BY_LLM_DO).is_some()
}

/// Refuses what only the user may do, such as "store keys".
pub(crate) fn refuse(what: &str) -> Result<(), Problem> {
    match is_child() {
        true => Err(Problem::usage(format!("a program that llm-do started cannot {what}"))),
        false => Ok(()),
    }
}
