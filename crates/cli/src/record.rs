//! The record of runs: where it is, whether runs are written to it, and how a run is named.

use std::path::{Path, PathBuf};

use jiff::Timestamp;
use llm_do::record::StoreError;
use llm_do::usage::Money;
use llm_do_record::{FindError, MIN_ID_CHARS, Reader, Record, RunSummary, is_database, record_files};

use crate::arguments::RecordArguments;
use crate::command_error::CommandError;
use crate::config::shown;
use crate::output;
use crate::record_directory;
use crate::text::visible_line;

/// The variable that names another file, `none` or `require`.
const VARIABLE: &str = "LLM_DO_RECORD";

/// Where runs are recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum RecordTarget {
    /// In a file that the user named.
    Named(PathBuf),
    /// In the user's own record; nowhere if there is no directory for it.
    Own {
        /// The file.
        path: Option<PathBuf>,
        /// Whether a run must not begin without it.
        is_required: bool,
    },
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
        let own = |is_required| Self::Own { path: record_directory::own_record(), is_required };
        match named {
            Some(path) if path == Path::new("none") => Self::Nowhere,
            Some(path) if path == Path::new("require") => own(true),
            Some(path) => Self::Named(path),
            None => own(false),
        }
    }

    /// Opens the record for writing. A run does not depend on the user's own record, unless the user says so: if it cannot be
    /// written, that is said once and nothing is recorded.
    pub(crate) fn open(&self) -> Result<Option<Record>, CommandError> {
        match self {
            Self::Nowhere => Ok(None),
            Self::Named(path) => open_named(path).map(Some),
            Self::Own { path, is_required } => match (open_own(path.as_deref()), is_required) {
                (Ok(record), _) => Ok(Some(record)),
                (Err(reason), true) => Err(CommandError::failed_with_hint(
                    format!("this run cannot be recorded: {reason}"),
                    "`--record FILE` names another file; without `--record require`, the run goes on unrecorded",
                )),
                (Err(reason), false) => {
                    output::early_notice(&format!(
                        "this run is not recorded: {reason} (`--record FILE` names another file)"
                    ));
                    Ok(None)
                }
            },
        }
    }

    /// Returns the files that no tool of a run may reach.
    pub(crate) fn files(&self) -> Vec<PathBuf> {
        let absolute = |path: PathBuf| std::path::absolute(&path).unwrap_or(path);
        self.path().map(record_files).unwrap_or_default().into_iter().map(absolute).collect()
    }

    /// Returns whether it is the user's own record, for which the configuration says how much it keeps.
    pub(crate) fn is_own(&self) -> bool {
        matches!(self, Self::Own { .. })
    }

    /// Returns the file.
    pub(crate) fn path(&self) -> Option<&Path> {
        match self {
            Self::Named(path) => Some(path),
            Self::Own { path, .. } => path.as_deref(),
            Self::Nowhere => None,
        }
    }
}

fn open_named(path: &Path) -> Result<Record, CommandError> {
    // What never was a database is something else, which the user named by mistake.
    let opened = if is_database(path) { open_or_set_aside(path) } else { Record::open(path) };
    opened.map_err(|error| {
        CommandError::with_hint(
            format!("{} cannot be used as a record: {error}", visible_line(&path.display().to_string())),
            "name another file, or use `--no-record`",
        )
    })
}

fn open_own(path: Option<&Path>) -> Result<Record, String> {
    let path = path.ok_or("no directory for it was found; set HOME")?;
    let is_new = !path.exists();
    let record = open_or_set_aside(path).map_err(|error| format!("{error} ({})", shown(path)))?;
    if let Some(notice) = record_directory::notice(path).filter(|_| is_new) {
        output::early_notice(&notice);
    }
    Ok(record)
}

fn open_or_set_aside(path: &Path) -> Result<Record, StoreError> {
    let (record, damaged) = Record::open_or_set_aside(path)?;
    if let Some(damaged) = damaged {
        output::early_notice(&format!(
            "the record was damaged, so a new one begins; the damaged one is {}, and `llm-do runs repair` copies what can be \
             read of it",
            shown(&damaged)
        ));
    }
    Ok(record)
}

/// Opens the record for reading; none if nothing was recorded yet.
pub(crate) fn reader(arguments: &RecordArguments) -> Result<Option<Reader>, CommandError> {
    let target = RecordTarget::new(arguments);
    let Some(path) = target.path() else {
        return Err(not_here());
    };
    let failed = |error: StoreError| {
        let path = visible_line(&path.display().to_string());
        unread(&error, &format!("the record {path} cannot be read: "))
    };
    let Some(reader) = Reader::open(path).map_err(failed)? else { return Ok(None) };
    if let Some(version) = reader.newer_version().map_err(failed)? {
        output::early_notice(&format!(
            "a newer version of llm-do writes this record (its format is {version}): it is shown as far as this version knows it"
        ));
    }
    Ok(Some(reader))
}

/// Says what went wrong with the record, and what to do if it is damaged.
pub(crate) fn failed(error: &StoreError) -> CommandError {
    unread(error, "")
}

fn unread(error: &StoreError, before: &str) -> CommandError {
    let message = format!("{before}{error}");
    match error {
        StoreError::Corrupt(_) => CommandError::failed_with_hint(
            message,
            "`llm-do runs repair` sets it aside and copies what can be read; `llm-do doctor` reads all of it",
        ),
        _ => CommandError::failed(message),
    }
}

/// Says that there is no record.
pub(crate) fn not_here() -> CommandError {
    CommandError::with_hint(
        "runs are not recorded here",
        format!("name a file with `--record`, or unset {VARIABLE}"),
    )
}

/// Finds a run by the beginning of its id.
pub(crate) fn find(arguments: &RecordArguments, id: &str) -> Result<(Reader, RunSummary), CommandError> {
    let reader = reader(arguments)?.ok_or_else(|| nothing_recorded("runs"))?;
    match reader.find(id) {
        Ok(run) => Ok((reader, run)),
        Err(error) => Err(not_found(error, id, "run", |run| format!("  {}  {}", run.id, one_line(run)))),
    }
}

/// Says that there is no record yet.
pub(crate) fn nothing_recorded(what: &str) -> CommandError {
    CommandError::with_hint(
        "nothing is recorded yet",
        format!("{what} are recorded as they are made, unless `--no-record` is given"),
    )
}

/// Says why the beginning of an id names no run or chat.
pub(crate) fn not_found<T: std::fmt::Debug>(
    error: FindError<T>,
    id: &str,
    what: &str,
    line: impl Fn(&T) -> String,
) -> CommandError {
    let shown = visible_line(id);
    match error {
        FindError::NoId => CommandError::with_hint(
            format!("`{shown}` is not the id of a {what}"),
            format!("give the first {MIN_ID_CHARS} or more digits of an id of `llm-do {what}s`, or `last`"),
        ),
        FindError::NotFound => CommandError::with_hint(
            format!("no recorded {what} begins with `{shown}`"),
            format!("`llm-do {what}s` lists them"),
        ),
        FindError::Several(found) => {
            let lines: Vec<String> = found.iter().map(line).collect();
            CommandError::with_hint(
                format!("several {what}s begin with `{shown}`:\n{}", lines.join("\n")),
                "give more digits",
            )
        }
        FindError::Store(error) => failed(&error),
        other => CommandError::failed(format!("`{shown}` cannot be looked up: {other:?}")),
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

/// A project is recorded by its directory, as an absolute path without links.
pub(crate) fn project_of(path: &Path) -> PathBuf {
    let directory = match path.parent() {
        Some(parent) if path.is_file() && !parent.as_os_str().is_empty() => parent.to_owned(),
        Some(_) if path.is_file() => ".".into(),
        _ => path.to_owned(),
    };
    directory.canonicalize().unwrap_or(directory)
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
