//! Removing runs from a record.

use jiff::Timestamp;
use llm_do_runtime::StoreError;
use rusqlite::{Connection, OptionalExtension, TransactionBehavior, params};

use crate::bundles;
use crate::claim::Claim;
use crate::error::from_sqlite;
use crate::read::{Reader, RecordedState, RunFilter, RunSummary};
use crate::schema;
use crate::writer::Writing;

/// Which runs are removed. A run that may still be resumed, or is being written, stays unless its status is named.
#[derive(Debug, Clone, Default)]
pub struct PruneFilter {
    /// They ended before then.
    pub before: Option<Timestamp>,
    /// Of this project, with this status, ..
    pub runs: RunFilter,
}

impl PruneFilter {
    /// Returns the runs that would be removed, oldest last.
    pub fn matching(&self, reader: &Reader) -> Result<Vec<RunSummary>, StoreError> {
        let is_over = |run: &RunSummary| {
            let ended = run.ended.unwrap_or(run.began);
            self.before.is_none_or(|before| ended < before)
        };
        let is_wanted = |run: &RunSummary| self.runs.status.is_some() || !run.can_resume;
        let mut runs = reader.runs(&self.runs)?;
        runs.retain(|run| run.state != RecordedState::Running && is_over(run) && is_wanted(run));
        Ok(runs)
    }
}

/// Removes runs, and the values to which only they refer. Returns how many there were; one that is being written by then, or
/// went on since it was listed, stays.
pub(crate) fn remove(writing: &mut Writing, runs: &[RunSummary]) -> Result<usize, StoreError> {
    let mut removed = 0;
    for run in runs {
        removed += remove_claimed(writing, run)?;
    }
    remove_unused_projects(&writing.connection)?;
    // It gives one page back to the file system per row that is read.
    writing.connection.pragma_query(None, "incremental_vacuum", |_| Ok(())).map_err(from_sqlite)?;
    Ok(removed)
}

/// Removes a run unless it is being written, or went on since it was listed. Returns how many there were.
pub(crate) fn remove_claimed(writing: &mut Writing, run: &RunSummary) -> Result<usize, StoreError> {
    // Held while its rows go, so that nobody continues it in between.
    let Some(_claim) = Claim::take(&writing.path, run.id)? else { return Ok(0) };
    schema::check_version(&writing.connection)?;
    writing.has_removed = true;
    remove_rows(&mut writing.connection, run).map_err(from_sqlite)
}

fn remove_rows(connection: &mut Connection, run: &RunSummary) -> rusqlite::Result<usize> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let events = i64::try_from(run.events).unwrap_or(i64::MAX);
    let as_listed = "DELETE FROM streams WHERE uuid = ? AND next_seq = ? RETURNING id";
    let removed = transaction
        .query_row(as_listed, params![run.id.0.as_bytes(), events], |row| row.get::<_, i64>(0))
        .optional()?;
    let Some(stream) = removed else { return Ok(0) };
    let own_blobs = "DELETE FROM blobs WHERE digest IN (SELECT digest FROM refs WHERE stream = ?1)
        AND NOT EXISTS (SELECT 1 FROM refs WHERE refs.digest = blobs.digest AND refs.stream <> ?1)";
    transaction.execute(own_blobs, [stream])?;
    for table in ["events", "calls", "usage", "approvals", "turns", "refs"] {
        transaction.execute(&format!("DELETE FROM {table} WHERE stream = ?"), [stream])?;
    }
    // In the same transaction: a run that begins now keeps the files of its project again.
    bundles::remove_unused(&transaction)?;
    transaction.commit()?;
    Ok(1)
}

/// Removes projects of which no run is left.
pub(crate) fn remove_unused_projects(connection: &Connection) -> Result<(), StoreError> {
    let sql =
        "DELETE FROM projects WHERE NOT EXISTS (SELECT 1 FROM streams WHERE streams.project = projects.id)";
    connection.execute(sql, []).map(drop).map_err(from_sqlite)
}
