//! The record of runs: where it is, whether runs are written to it, and how a run is named.

use std::path::{Path, PathBuf};

use jiff::Timestamp;
use llm_do::usage::Money;
use llm_do_record::{FindError, MIN_ID_CHARS, Reader, Record, RunSummary};

use crate::arguments::RecordArguments;
use crate::command_error::CommandError;
use crate::environment::state_directory;
use crate::output;
use crate::text::visible_line;

/// The variable that names another file, or `none`.
const VARIABLE: &str = "LLM_DO_RECORD";

/// Where runs are recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum RecordTarget {
    /// In a file that the user named.
    Named(PathBuf),
    /// In the user's own record.
    Own(PathBuf),
    /// Nowhere.
    Nowhere,
}

impl RecordTarget {
    /// Returns the one that a flag, the environment or the defaults give.
    pub(crate) fn new(arguments: &RecordArguments) -> Self {
        let named = arguments.record.clone().or_else(|| {
            let value = std::env::var_os(VARIABLE).filter(|value| !value.is_empty());
            value.map(PathBuf::from)
        });
        match named {
            Some(path) if path == Path::new("none") => Self::Nowhere,
            Some(path) => Self::Named(path),
            None => match state_directory() {
                Some(directory) => Self::Own(directory.join("record.db")),
                None => Self::Nowhere,
            },
        }
    }

    /// Opens the record for writing. A run does not depend on the user's own record: if it cannot be written, that is
    /// said once and nothing is recorded.
    pub(crate) fn open(&self) -> Result<Option<Record>, CommandError> {
        match self {
            Self::Nowhere => Ok(None),
            Self::Named(path) => match Record::open(path) {
                Ok(record) => Ok(Some(record)),
                Err(error) => Err(CommandError::with_hint(
                    format!(
                        "{} cannot be used as a record: {error}",
                        visible_line(&path.display().to_string())
                    ),
                    "name another file, or use `--no-record`",
                )),
            },
            Self::Own(path) => match Record::open(path) {
                Ok(record) => Ok(Some(record)),
                Err(error) => {
                    let path = visible_line(&path.display().to_string());
                    output::early_notice(&format!(
                        "this run is not recorded: {error} ({path}; `--record FILE` names another file)"
                    ));
                    Ok(None)
                }
            },
        }
    }

    fn path(&self) -> Option<&Path> {
        match self {
            Self::Named(path) | Self::Own(path) => Some(path),
            Self::Nowhere => None,
        }
    }
}

/// Opens the record for reading; none if nothing was recorded yet.
pub(crate) fn reader(arguments: &RecordArguments) -> Result<Option<Reader>, CommandError> {
    let target = RecordTarget::new(arguments);
    let Some(path) = target.path() else {
        return Err(CommandError::with_hint(
            "runs are not recorded here",
            format!("name a file with `--record`, or unset {VARIABLE}"),
        ));
    };
    Reader::open(path).map_err(|error| {
        CommandError::failed(format!(
            "the record {} cannot be read: {error}",
            visible_line(&path.display().to_string())
        ))
    })
}

/// Finds a run by the beginning of its id.
pub(crate) fn find(arguments: &RecordArguments, id: &str) -> Result<(Reader, RunSummary), CommandError> {
    let nothing = || {
        CommandError::with_hint(
            "nothing is recorded yet",
            "runs are recorded as they are made, unless `--no-record` is given",
        )
    };
    let reader = reader(arguments)?.ok_or_else(nothing)?;
    let shown = visible_line(id);
    match reader.find(id) {
        Ok(run) => Ok((reader, run)),
        Err(FindError::NoId) => Err(CommandError::with_hint(
            format!("`{shown}` is not the id of a run"),
            format!("give the first {MIN_ID_CHARS} or more digits of an id of `llm-do runs`, or `last`"),
        )),
        Err(FindError::NotFound) => Err(CommandError::with_hint(
            format!("no recorded run begins with `{shown}`"),
            "`llm-do runs` lists them",
        )),
        Err(FindError::Several(runs)) => {
            let lines: Vec<String> =
                runs.iter().map(|run| format!("  {}  {}", run.id, one_line(run))).collect();
            Err(CommandError::with_hint(
                format!("several runs begin with `{shown}`:\n{}", lines.join("\n")),
                "give more digits",
            ))
        }
        Err(FindError::Store(error)) => Err(CommandError::failed(error.to_string())),
        Err(other) => Err(CommandError::failed(format!("`{shown}` cannot be looked up: {other:?}"))),
    }
}

/// What was run, on one line.
pub(crate) fn one_line(run: &RunSummary) -> String {
    let entry = visible_line(&run.entry);
    if run.title.is_empty() { entry } else { format!("{entry}: {}", visible_line(&run.title)) }
}

/// A cost for people; `?` if a price is unknown.
pub(crate) fn cost(known: Money, unpriced: u64) -> String {
    match (known.0, unpriced) {
        (0, 0) => "-".to_owned(),
        (0, _) => "?".to_owned(),
        (_, 0) => known.to_string(),
        (_, _) => format!("{known}+?"),
    }
}

/// How long ago something happened, such as `5m` or `3d`.
pub(crate) fn age(then: Timestamp) -> String {
    let seconds = Timestamp::now().as_second().saturating_sub(then.as_second()).max(0);
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3_600 => format!("{}m", seconds / 60),
        3_600..86_400 => format!("{}h", seconds / 3_600),
        _ => format!("{}d", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cost_says_what_is_not_known() {
        let shown = |known, unpriced| cost(Money::from_dollars(known), unpriced);
        assert_eq!([shown(0.0, 0), shown(0.0, 2)], ["-", "?"]);
        assert!(shown(1.5, 1).ends_with("+?"));
        assert!(!shown(1.5, 0).contains('?'));
    }
}
