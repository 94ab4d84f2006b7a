//! `list_fd` and `close_fd`: which descriptors there are, and fewer of them.

use llm_do_core::{Failure, Output};
use llm_do_runtime::Descriptors;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Situation, arguments};

/// What the model reads about `list_fd`.
pub(super) const LIST: &str = "Lists the open file descriptors in the order in which they were made: where each \
    text came from, and how many pages, lines and characters it has.";

/// What the model reads about `close_fd`.
pub(super) const CLOSE: &str =
    "Closes a file descriptor that is no longer needed. Its text cannot be read after that.";

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Nothing {}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    /// The file descriptor, such as `fd:3.1`.
    fd: String,
}

/// Lists the descriptors.
pub(super) fn list(table: &Descriptors, _input: &Value, _call: &Situation) -> Result<Output, Failure> {
    Ok(Output::json(json!({"descriptors": table.list()})))
}

/// Takes one away.
pub(super) fn close(table: &Descriptors, input: &Value, _call: &Situation) -> Result<Output, Failure> {
    let closed = table.close(&arguments::<Arguments>(input)?.fd)?;
    Ok(Output::json(json!({"closed": closed.id, "open": table.list().len()})))
}
