//! Removes runs that are older, or take more space, than a record should keep: once a day, in small steps.

use std::collections::VecDeque;
use std::time::Duration;

use jiff::Timestamp;
use llm_do_runtime::StoreError;
use rusqlite::{Connection, OptionalExtension};

use crate::error::from_sqlite;
use crate::prune;
use crate::read::{Reader, RecordedState, RunSummary};
use crate::writer::Writing;

const DAY: Duration = Duration::from_hours(24);

/// How many pages are given back to the file system at once.
const PAGES_PER_STEP: u32 = 128;

/// How many runs are looked at when there are too many bytes.
const MAX_CANDIDATES: usize = 1_000;

/// The time of the last sweep that was finished, in the table `meta`.
const LAST: &str = "retention";

/// How long runs are kept, and how much space they may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retention {
    /// Runs that ended more days ago are removed.
    pub keep_days: u64,
    /// If the record holds more bytes, the runs that ended first are removed.
    pub keep_bytes: u64,
}

impl Default for Retention {
    fn default() -> Self {
        Self { keep_days: 90, keep_bytes: 2 * 1024 * 1024 * 1024 }
    }
}

/// What was removed.
#[derive(Debug, Clone, PartialEq, Default)]
#[non_exhaustive]
pub struct RetentionReport {
    /// How many runs.
    pub removed: usize,
    /// Runs that were kept because they can be resumed, the oldest first.
    pub kept: Vec<RunSummary>,
}

/// The removal of what a record should not keep, step by step.
pub(crate) struct Sweep {
    retention: Retention,
    phase: Phase,
    report: RetentionReport,
}

enum Phase {
    /// Runs that ended too long ago.
    Old(VecDeque<RunSummary>),
    /// The runs that ended first, while there are too many bytes.
    Large(VecDeque<RunSummary>),
    /// Pages without content are given back.
    Vacuum,
    Done,
}

impl Sweep {
    /// Begins a sweep; `None` if one was finished within a day.
    pub(crate) fn begin(writing: &Writing, retention: Retention) -> Result<Option<Self>, StoreError> {
        let now = Timestamp::now();
        let today = 0..i64::try_from(DAY.as_secs()).unwrap_or(i64::MAX);
        if last(&writing.connection)?.is_some_and(|last| today.contains(&(now.as_second() - last))) {
            return Ok(None);
        }
        let kept = DAY.saturating_mul(u32::try_from(retention.keep_days).unwrap_or(u32::MAX));
        let old = match now.checked_sub(kept) {
            Ok(before) => candidates(writing, Some(before))?,
            Err(_) => VecDeque::new(),
        };
        Ok(Some(Self { retention, phase: Phase::Old(old), report: RetentionReport::default() }))
    }

    /// Removes one run, or gives some pages back.
    pub(crate) fn step(&mut self, writing: &mut Writing) -> Result<(), StoreError> {
        match &mut self.phase {
            Phase::Old(runs) => match runs.pop_front() {
                Some(run) => self.remove(writing, run)?,
                None if self.is_too_large(&writing.connection)? => {
                    self.phase = Phase::Large(candidates(writing, None)?);
                }
                None => self.phase = Phase::Vacuum,
            },
            Phase::Large(runs) => match runs.pop_front() {
                Some(run) if self.is_too_large(&writing.connection)? => self.remove(writing, run)?,
                _ => self.phase = Phase::Vacuum,
            },
            Phase::Vacuum => {
                if !give_back(&writing.connection)? {
                    finish(&writing.connection)?;
                    self.phase = Phase::Done;
                }
            }
            Phase::Done => {}
        }
        Ok(())
    }

    /// Returns whether nothing is left to do.
    pub(crate) fn is_done(&self) -> bool {
        matches!(self.phase, Phase::Done)
    }

    pub(crate) fn into_report(self) -> RetentionReport {
        self.report
    }

    fn remove(&mut self, writing: &mut Writing, run: RunSummary) -> Result<(), StoreError> {
        if run.can_resume {
            let is_new = !self.report.kept.iter().any(|kept| kept.id == run.id);
            self.report.kept.extend(is_new.then_some(run));
        } else if run.state != RecordedState::Running {
            self.report.removed += prune::remove_claimed(writing, &run)?;
        }
        Ok(())
    }

    fn is_too_large(&self, connection: &Connection) -> Result<bool, StoreError> {
        let pages = number(connection, "page_count")?.saturating_sub(number(connection, "freelist_count")?);
        Ok(pages.saturating_mul(number(connection, "page_size")?) > self.retention.keep_bytes)
    }
}

/// The runs that ended before then, those first that ended first.
fn candidates(writing: &Writing, before: Option<Timestamp>) -> Result<VecDeque<RunSummary>, StoreError> {
    match Reader::open(&writing.path)? {
        Some(reader) => reader.ended_first(before, MAX_CANDIDATES).map(VecDeque::from),
        None => Ok(VecDeque::new()),
    }
}

fn last(connection: &Connection) -> Result<Option<i64>, StoreError> {
    let sql = "SELECT value FROM meta WHERE key = ?";
    connection.query_row(sql, [LAST], |row| row.get(0)).optional().map_err(from_sqlite)
}

/// Gives pages without content back. Returns whether there were any.
fn give_back(connection: &Connection) -> Result<bool, StoreError> {
    if number(connection, "freelist_count")? == 0 {
        return Ok(false);
    }
    // It gives one page back per row that is read.
    connection.pragma(None, "incremental_vacuum", PAGES_PER_STEP, |_| Ok(())).map_err(from_sqlite)?;
    Ok(true)
}

fn finish(connection: &Connection) -> Result<(), StoreError> {
    prune::remove_unused_projects(connection)?;
    let sql = "INSERT OR REPLACE INTO meta (key, value) VALUES (?, ?)";
    connection
        .execute(sql, rusqlite::params![LAST, Timestamp::now().as_second()])
        .map(drop)
        .map_err(from_sqlite)
}

fn number(connection: &Connection, pragma: &str) -> Result<u64, StoreError> {
    let number =
        connection.pragma_query_value(None, pragma, |row| row.get::<_, i64>(0)).map_err(from_sqlite)?;
    Ok(u64::try_from(number).unwrap_or_default())
}
