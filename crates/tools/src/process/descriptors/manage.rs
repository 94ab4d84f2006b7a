//! `list_fd` and `close_fd`: which descriptors there are, and fewer of them.

use llm_do_core::{Failure, Output};
use llm_do_runtime::{Descriptors, FdInfo};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Situation, arguments};

/// What the model reads about `list_fd`.
pub(super) const LIST: &str = "Lists the open file descriptors in the order in which they were made: where each \
    text came from, and how many pages, lines and characters it has. A long list says where it goes on.";

/// What the model reads about `close_fd`.
pub(super) const CLOSE: &str =
    "Closes a file descriptor that is no longer needed. Its text cannot be read after that.";

/// What the list holds besides its entries.
const AROUND_ENTRIES: u64 = 150;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ListArguments {
    /// The place in the list of the first descriptor to show, counted from 1.
    #[serde(default = "first")]
    start: usize,
}

fn first() -> usize {
    1
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    /// The file descriptor, such as `fd:3.1`.
    fd: String,
}

/// Lists the descriptors, as many as a result holds that is shown whole.
pub(super) fn list(table: &Descriptors, input: &Value, _call: &Situation) -> Result<Output, Failure> {
    let from: ListArguments = arguments(input)?;
    let all = table.list();
    let start = from.start.max(1);
    let room = table.settings().limit.saturating_sub(AROUND_ENTRIES) as usize;
    let shown = entries(all.iter().skip(start - 1), room);
    let note = match all.len().saturating_sub(start - 1 + shown.len()) {
        0 if start > all.len().max(1) => Some(format!("only {} open", counted_are(all.len(), ""))),
        0 => None,
        more => {
            Some(format!("{} open: go on with `start` {}", counted_are(more, " more"), start + shown.len()))
        }
    };
    let mut answer = json!({"descriptors": shown});
    if let Some(note) = note {
        answer["note"] = note.into();
    }
    Ok(Output::json(answer))
}

/// The entries that fit; one always does.
fn entries<'a>(all: impl Iterator<Item = &'a FdInfo>, room: usize) -> Vec<Value> {
    let mut size = 0;
    let fits = |entry: &Value| {
        let is_first = size == 0;
        size += entry.to_string().chars().count() + 1;
        is_first || size <= room
    };
    all.map(|info| json!(info)).take_while(fits).collect()
}

fn counted_are(count: usize, more: &str) -> String {
    let verb = if count == 1 { "is" } else { "are" };
    format!("{count}{more} {verb}")
}

/// Takes one away.
pub(super) fn close(table: &Descriptors, input: &Value, _call: &Situation) -> Result<Output, Failure> {
    let closed = table.close(&arguments::<Arguments>(input)?.fd)?;
    Ok(Output::json(json!({"closed": closed.id, "open": table.list().len()})))
}
