//! `read_fd`: a part of a text, counted in pages, lines or characters.

use llm_do_core::{Failure, FailureKind, Output};
use llm_do_runtime::{Descriptors, Fd, Selection, extraction_view, reading_view};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::{Situation, arguments};

/// What the model reads about the tool.
const DESCRIPTION: &str = "Reads a part of a text that was too long to be shown at once. \
    The text is named by its file descriptor, such as `fd:3.1`. Everything is counted from 1: pages, lines and \
    characters. The answer says which part it is; `continued` and `truncated` say whether it begins or ends within a \
    line. With `extract` the part becomes a file descriptor of its own, and only its name is answered.";

/// What it reads besides where references are kept.
pub(super) const REFERENCES: &str = " Text that you mark in your own message as <ref id=\"plan\">..</ref> can be read and \
    passed on as `ref:plan`.";

/// Returns all that the model reads about the tool.
pub(super) fn description() -> String {
    format!("{DESCRIPTION}{REFERENCES}")
}

/// How many characters are read at once: what is larger would fill the model's context.
const MAX_READ: u64 = 200_000;
/// How many characters become a new descriptor at once: they are held in memory meanwhile.
const MAX_EXTRACTED: u64 = 16 * 1024 * 1024;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    /// The file descriptor, such as `fd:3.1`, `fd:input` or `ref:plan`.
    fd: String,
    /// What `start` and `count` count. `all` reads the whole text, without them.
    #[serde(default)]
    mode: ReadMode,
    /// The number of the first page, line or character, counted from 1.
    #[serde(default = "one")]
    start: u64,
    /// How many pages, lines or characters to read. What lies beyond the end is left out.
    #[serde(default = "one")]
    count: u64,
    /// Whether the part becomes a new file descriptor instead of being answered.
    #[serde(default)]
    extract: bool,
}

#[derive(Debug, Clone, Copy, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum ReadMode {
    #[default]
    Page,
    Line,
    Char,
    All,
}

fn one() -> u64 {
    1
}

impl ReadMode {
    fn selection(self) -> Selection {
        match self {
            Self::Page => Selection::Page,
            Self::Line => Selection::Line,
            Self::Char => Selection::Char,
            Self::All => Selection::All,
        }
    }
}

/// Reads the part, or makes it a descriptor.
pub(super) fn run(table: &Descriptors, input: &Value, situation: &Situation) -> Result<Output, Failure> {
    let arguments: Arguments = arguments(input)?;
    let fd = table.get(&arguments.fd)?;
    arguments.check_size(&fd)?;
    let part = fd.read(arguments.mode.selection(), arguments.start, arguments.count)?;
    if !arguments.extract {
        return Ok(Output::text(reading_view(&fd.info, &part)));
    }
    let info = table.extract(&situation.key, &part)?;
    Ok(Output::text(extraction_view(&info, &fd.info.id)))
}

impl Arguments {
    fn check_size(&self, fd: &Fd) -> Result<(), Failure> {
        let size = fd.measure(self.mode.selection(), self.start, self.count)?;
        let most = if self.extract { MAX_EXTRACTED } else { MAX_READ };
        if size <= most {
            return Ok(());
        }
        let message = format!("the part has {size} characters, more than the {most} that are read at once");
        let hint = "read fewer pages or characters, look for what you need with grep_fd, or write all of it to a file \
            with fd_to_file";
        Err(Failure::new(FailureKind::Arguments, message).with_hint(hint))
    }
}
