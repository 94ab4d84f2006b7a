//! Reading a record, also while runs are written to it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use jiff::Timestamp;
use llm_do_core::{Digest, Event, Money, ProjectBundle, RunId, Status};
use llm_do_runtime::StoreError;
use rusqlite::types::Value as SqlValue;
use rusqlite::{Connection, OptionalExtension, Row, params_from_iter};
use uuid::Uuid;

use crate::bundles;
use crate::claim::{Claim, describe, is_gone};
use crate::damage;
use crate::error::{from_io, from_sqlite};
use crate::files;
use crate::recorded::{self, RecordedEvent};
use crate::schema;

/// The shortest beginning of an id that names a run.
pub const MIN_ID_CHARS: usize = 4;

/// How many digits of an id people see. Ids are random from their first digit on.
const SHOWN_DIGITS: usize = 8;

/// Returns the part of an id that people read and type.
pub fn short_id(run: RunId) -> String {
    run.to_string().chars().take(SHOWN_DIGITS).collect()
}

/// Reads a record.
pub struct Reader {
    pub(crate) connection: Connection,
    path: PathBuf,
}

/// A run, as lists show it.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct RunSummary {
    /// The run.
    pub id: RunId,
    /// How it ended, or whether it is still written.
    pub state: RecordedState,
    /// The name of what was run.
    pub entry: String,
    /// The beginning of what it was given.
    pub title: String,
    /// The directory of its project.
    pub project: Option<PathBuf>,
    /// When it began.
    pub began: Timestamp,
    /// When it ended.
    pub ended: Option<Timestamp>,
    /// Why it failed.
    pub error: Option<String>,
    /// The tokens that its models were sent.
    pub tokens_in: u64,
    /// The tokens that they wrote.
    pub tokens_out: u64,
    /// What is known of its cost.
    pub cost: Money,
    /// The requests whose cost is unknown.
    pub unpriced: u64,
    /// The calls of agents and tools.
    pub calls: u64,
    /// Whether it can be continued by itself.
    pub can_resume: bool,
    /// Whether it is a turn of a conversation.
    pub is_turn: bool,
    /// The session of which it is a turn.
    pub session: Option<RunId>,
    /// How many events were written.
    pub events: u64,
}

/// How a run is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum RecordedState {
    /// A process is writing it.
    Running,
    /// It has no end, and nobody is writing it: its process was killed.
    CutOff,
    /// It ended.
    Ended(Status),
}

impl RecordedState {
    /// Returns the word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::CutOff => "cut_off",
            Self::Ended(status) => status.as_str(),
        }
    }
}

/// Which runs to list. Everything without a value matches all.
#[derive(Debug, Clone, Default)]
pub struct RunFilter {
    /// The directory of their project.
    pub project: Option<PathBuf>,
    /// The name of what was run.
    pub entry: Option<String>,
    /// How they ended, by its word; `running` or `cut_off` for those without an end.
    pub status: Option<String>,
    /// They began then or later.
    pub since: Option<Timestamp>,
    /// They cost at least this much.
    pub min_cost: Option<Money>,
    /// How many to list, newest first.
    pub limit: Option<usize>,
}

/// What the usage is added up by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum UsageBy {
    /// The model that answered.
    Model,
    /// The agent that asked.
    Agent,
    /// The day, in UTC.
    Day,
}

/// The usage of one model, agent or day.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct UsageRow {
    /// The model, the agent, or the day as `2026-11-19`.
    pub name: String,
    /// The requests.
    pub requests: u64,
    /// The tokens that were sent.
    pub input: u64,
    /// The tokens that were written.
    pub output: u64,
    /// Tokens of the input that came from a cache.
    pub cache_read: u64,
    /// What is known of the cost.
    pub cost: Money,
    /// The requests whose cost is unknown.
    pub unpriced: u64,
}

/// Why the beginning of an id names no run or session.
#[derive(Debug)]
#[non_exhaustive]
pub enum FindError<T = RunSummary> {
    /// It is too short, or no part of an id.
    NoId,
    /// There is none.
    NotFound,
    /// Several begin so; the newest ten of them.
    Several(Vec<T>),
    /// The record cannot be read.
    Store(StoreError),
}

impl Reader {
    /// Opens the record in a file. `None` if there is no such file, or its creation was cut off and it holds nothing yet.
    pub fn open(path: impl AsRef<Path>) -> Result<Option<Self>, StoreError> {
        let path = path.as_ref();
        match std::fs::metadata(path) {
            Ok(_) => {
                files::refuse_shared(path)?;
                // Without it, a record that is set aside right now may be read as damaged.
                let _lock = files::lock_shared(path).ok();
                let connection = schema::open_to_read(path)?;
                Ok(connection.map(|connection| Self { connection, path: path.to_owned() }))
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(from_io(&format!("the record {} cannot be opened", path.display()), &error)),
        }
    }

    /// Lists runs, newest first.
    pub fn runs(&self, filter: &RunFilter) -> Result<Vec<RunSummary>, StoreError> {
        let mut conditions = vec!["kind = 0 AND began IS NOT NULL".to_owned()];
        let mut values: Vec<SqlValue> = Vec::new();
        let mut add = |condition: &str, value: SqlValue| {
            conditions.push(condition.to_owned());
            values.push(value);
        };
        if let Some(project) = &filter.project {
            add("projects.root = ?", project.to_string_lossy().into_owned().into());
        }
        if let Some(entry) = &filter.entry {
            add("entry = ?", entry.clone().into());
        }
        if let Some(since) = filter.since {
            add("began >= ?", i64::try_from(since.as_nanosecond()).unwrap_or(i64::MAX).into());
        }
        if let Some(cost) = filter.min_cost {
            add("cost >= ?", i64::try_from(cost.0).unwrap_or(i64::MAX).into());
        }
        // Whether a run without an end is still written, only its lock can tell.
        let open = matches!(filter.status.as_deref(), Some("running" | "cut_off"));
        match &filter.status {
            Some(_) if open => conditions.push("status IS NULL".to_owned()),
            Some(status) => add("status = ?", status.clone().into()),
            None => {}
        }
        let limit =
            filter.limit.filter(|_| !open).map_or_else(String::new, |limit| format!(" LIMIT {limit}"));
        let sql = format!("{SUMMARY} WHERE {} ORDER BY began DESC{limit}", conditions.join(" AND "));
        let mut runs = self.summaries(&sql, values)?;
        if open {
            runs.retain(|run| Some(run.state.as_str()) == filter.status.as_deref());
            runs.truncate(filter.limit.unwrap_or(usize::MAX));
        }
        Ok(runs)
    }

    /// Lists the runs and sessions that ended before then, those first that ended first. A run without an end counts from its
    /// beginning, and a session ended when something happened in it last.
    pub(crate) fn ended_first(
        &self,
        before: Option<Timestamp>,
        limit: usize,
    ) -> Result<Vec<RunSummary>, StoreError> {
        let before = before.and_then(|before| i64::try_from(before.as_nanosecond()).ok()).unwrap_or(i64::MAX);
        let sql = format!(
            "{SUMMARY} WHERE began IS NOT NULL AND coalesce(ended, began) < ?
             ORDER BY coalesce(ended, began) LIMIT {limit}"
        );
        self.summaries(&sql, vec![before.into()])
    }

    /// Returns the runs that are turns of a session.
    pub(crate) fn runs_of(&self, session: RunId) -> Result<Vec<RunSummary>, StoreError> {
        let uuid = SqlValue::Blob(session.0.as_bytes().to_vec());
        let sql = format!("{SUMMARY} WHERE session = (SELECT id FROM streams WHERE uuid = ?)");
        self.summaries(&sql, vec![uuid])
    }

    /// Returns one run.
    pub fn run(&self, run: RunId) -> Result<Option<RunSummary>, StoreError> {
        let uuid = SqlValue::Blob(run.0.as_bytes().to_vec());
        Ok(self.summaries(&format!("{SUMMARY} WHERE uuid = ?"), vec![uuid])?.into_iter().next())
    }

    /// Finds a run by its id, a unique beginning of it, or `last`.
    pub fn find(&self, id: &str) -> Result<RunSummary, FindError> {
        if id == "last" {
            let filter = RunFilter { limit: Some(1), ..RunFilter::default() };
            return self
                .runs(&filter)
                .map_err(FindError::Store)?
                .into_iter()
                .next()
                .ok_or(FindError::NotFound);
        }
        let digits: String = id.chars().filter(|digit| *digit != '-').collect();
        let (from, to) = range_of(&digits).ok_or(FindError::NoId)?;
        let sql = format!("{SUMMARY} WHERE kind = 0 AND uuid BETWEEN ? AND ? ORDER BY began DESC LIMIT 10");
        let mut found = self.summaries(&sql, vec![from.into(), to.into()]).map_err(FindError::Store)?;
        match found.len() {
            0 => Err(FindError::NotFound),
            1 => Ok(found.remove(0)),
            _ => Err(FindError::Several(found)),
        }
    }

    /// Reads the events of a run that come after `after`, oldest first; all of them without it.
    pub fn events(&self, run: RunId, after: Option<u64>) -> Result<Vec<Arc<Event>>, StoreError> {
        self.noting_damage(recorded::events(&self.connection, run, after))
    }

    /// Reads all events of a run, those included that a newer version wrote.
    pub fn recorded(&self, run: RunId) -> Result<Vec<RecordedEvent>, StoreError> {
        self.noting_damage(recorded::all(&self.connection, run))
    }

    /// Returns the version of the record if it is newer than this program, which then shows what it knows of it.
    pub fn newer_version(&self) -> Result<Option<u32>, StoreError> {
        schema::newer_version(&self.connection)
    }

    /// Reads all of the record, and returns the first problem of its structure. Whoever opens it next to write sets it aside
    /// then.
    pub fn problem(&self) -> Result<Option<String>, StoreError> {
        let problem = damage::problem(&self.connection)?;
        if problem.is_some() {
            damage::suspect(&self.path);
        }
        Ok(problem)
    }

    /// Reads the files of a project by the digest that an event names; none if they are not kept.
    pub fn bundle(&self, digest: Digest) -> Result<Option<ProjectBundle>, StoreError> {
        bundles::read(&self.connection, digest)
    }

    /// Returns who writes a run, such as "process 4711 on this machine since 14:02".
    pub fn holder(&self, run: RunId) -> Result<Option<String>, StoreError> {
        let holder = holder(&self.connection, run)?;
        Ok(holder.filter(|holder| self.is_written(run, Some(holder.clone()))).map(|holder| describe(&holder)))
    }

    /// Adds up what requests used, most expensive first; days in their order.
    pub fn usage(&self, by: UsageBy, since: Option<Timestamp>) -> Result<Vec<UsageRow>, StoreError> {
        let (column, order) = match by {
            UsageBy::Model => ("model", "sum(cost) DESC, sum(input) DESC"),
            UsageBy::Agent => ("agent", "sum(cost) DESC, sum(input) DESC"),
            UsageBy::Day => ("date(day * 86400, 'unixepoch')", "day"),
        };
        let since = since.map_or(i64::MIN, |since| since.as_second().div_euclid(24 * 60 * 60));
        let sql = format!(
            "SELECT {column}, sum(requests), sum(input), sum(output), sum(cache_read), sum(cost), sum(unpriced)
             FROM usage WHERE day >= ? GROUP BY 1 ORDER BY {order}"
        );
        let mut query = self.connection.prepare_cached(&sql).map_err(from_sqlite)?;
        let rows = query.query_map([since], |row| {
            Ok(UsageRow {
                name: row.get(0)?,
                requests: unsigned(row, 1)?,
                input: unsigned(row, 2)?,
                output: unsigned(row, 3)?,
                cache_read: unsigned(row, 4)?,
                cost: Money(unsigned(row, 5)?),
                unpriced: unsigned(row, 6)?,
            })
        });
        rows.and_then(Iterator::collect).map_err(from_sqlite)
    }

    /// Has a record that may be damaged checked by whoever opens it next to write.
    pub(crate) fn noting_damage<T>(&self, read: Result<T, StoreError>) -> Result<T, StoreError> {
        if matches!(read, Err(StoreError::Corrupt(_))) {
            damage::suspect(&self.path);
        }
        read
    }

    fn summaries(&self, sql: &str, values: Vec<SqlValue>) -> Result<Vec<RunSummary>, StoreError> {
        let read = || {
            let mut query = self.connection.prepare_cached(sql)?;
            let rows = query.query_map(params_from_iter(values), |row| self.summary(row))?;
            rows.collect::<rusqlite::Result<Vec<_>>>()
        };
        self.noting_damage(read().map_err(from_sqlite))
    }

    fn summary(&self, row: &Row<'_>) -> rusqlite::Result<RunSummary> {
        let id = RunId(Uuid::from_bytes(row.get(0)?));
        let state = match row.get::<_, Option<String>>(1)? {
            Some(status) => RecordedState::Ended(status_of(&status)),
            None if self.is_written(id, row.get(16)?) => RecordedState::Running,
            None => RecordedState::CutOff,
        };
        Ok(RunSummary {
            id,
            state,
            entry: row.get::<_, Option<String>>(2)?.unwrap_or_default(),
            title: row.get::<_, Option<String>>(3)?.unwrap_or_default(),
            project: row.get::<_, Option<String>>(4)?.map(PathBuf::from),
            began: time(row.get(5)?),
            ended: row.get::<_, Option<i64>>(6)?.map(time),
            error: row.get(7)?,
            tokens_in: unsigned(row, 8)?,
            tokens_out: unsigned(row, 9)?,
            cost: Money(unsigned(row, 10)?),
            unpriced: unsigned(row, 11)?,
            calls: unsigned(row, 12)?,
            can_resume: row.get(13)? && can_resume(state),
            is_turn: row.get(14)?,
            session: row.get::<_, Option<[u8; 16]>>(17)?.map(|id| RunId(Uuid::from_bytes(id))),
            events: unsigned(row, 15)?,
        })
    }

    /// Returns whether a process writes a run.
    pub(crate) fn is_written(&self, run: RunId, holder: Option<String>) -> bool {
        Claim::is_taken(&self.path, run) && !holder.is_some_and(|holder| is_gone(&holder))
    }
}

const SUMMARY: &str = "SELECT uuid, status, entry, title, projects.root, coalesce(began, 0), ended, error, tokens_in, tokens_out, cost,
    unpriced, calls, is_turn = 0 AND (status IS NULL OR NOT EXISTS (SELECT 1 FROM calls WHERE calls.stream = streams.id
        AND calls.key = CAST(streams.ordinal AS TEXT) AND calls.finished IS NOT NULL)), is_turn, next_seq, holder,
    (SELECT uuid FROM streams AS sessions WHERE sessions.id = streams.session)
    FROM streams LEFT JOIN projects ON projects.id = streams.project";

/// Returns whether a run that has no result may get one.
fn can_resume(state: RecordedState) -> bool {
    match state {
        RecordedState::Running => false,
        RecordedState::CutOff => true,
        RecordedState::Ended(status) => {
            !matches!(status, Status::Done | Status::Failed | Status::Denied | Status::Output)
        }
    }
}

/// The first and the last id with a beginning.
pub(crate) fn range_of(digits: &str) -> Option<(Vec<u8>, Vec<u8>)> {
    if digits.len() < MIN_ID_CHARS || digits.len() > 32 {
        return None;
    }
    let bound = |filler: &str| {
        let whole = format!("{digits}{}", filler.repeat(32 - digits.len()));
        u128::from_str_radix(&whole, 16).ok().map(|number| number.to_be_bytes().to_vec())
    };
    Some((bound("0")?, bound("f")?))
}

/// A word of a newer version means that the run ended somehow.
pub(crate) fn status_of(word: &str) -> Status {
    serde_json::from_value(serde_json::Value::String(word.to_owned())).unwrap_or(Status::Failed)
}

/// Reads a time of a table.
pub(crate) fn time(nanoseconds: i64) -> Timestamp {
    Timestamp::from_nanosecond(i128::from(nanoseconds)).unwrap_or_default()
}

pub(crate) fn unsigned(row: &Row<'_>, column: usize) -> rusqlite::Result<u64> {
    row.get::<_, i64>(column).map(|number| u64::try_from(number).unwrap_or_default())
}

/// Returns who wrote a run last.
pub(crate) fn holder(connection: &Connection, run: RunId) -> Result<Option<String>, StoreError> {
    connection
        .query_row("SELECT holder FROM streams WHERE uuid = ?", [run.0.as_bytes()], |row| row.get(0))
        .optional()
        .map(Option::flatten)
        .map_err(from_sqlite)
}
