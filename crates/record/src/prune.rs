//! Removing runs from a record.

use jiff::Timestamp;
use llm_do_core::RunId;
use llm_do_runtime::StoreError;
use rusqlite::{Connection, TransactionBehavior};

use crate::error::from_sqlite;
use crate::read::{Reader, RecordedState, RunFilter, RunSummary};
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

/// Removes runs, and the values to which only they refer. Returns how many there were; one that is being written by then
/// stays.
pub(crate) fn remove(writing: &mut Writing, runs: &[RunId]) -> Result<usize, StoreError> {
    let mut removed = 0;
    for run in runs {
        // Held while its rows go, so that nobody continues it in between.
        let Some(claim) = crate::claim::Claim::take(&writing.path, *run)? else { continue };
        removed += remove_one(&mut writing.connection, *run).map_err(from_sqlite)?;
        drop(claim);
    }
    remove_unused(&mut writing.connection).map_err(from_sqlite)?;
    Ok(removed)
}

fn remove_one(connection: &mut Connection, run: RunId) -> rusqlite::Result<usize> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let stream = "(SELECT id FROM streams WHERE uuid = ?)";
    for table in ["events", "calls", "usage", "approvals", "refs"] {
        transaction.execute(&format!("DELETE FROM {table} WHERE stream = {stream}"), [run.0.as_bytes()])?;
    }
    let removed = transaction.execute("DELETE FROM streams WHERE uuid = ?", [run.0.as_bytes()])?;
    transaction.commit()?;
    Ok(removed)
}

/// Removes values without a reference, and gives their pages back to the file system.
fn remove_unused(connection: &mut Connection) -> rusqlite::Result<()> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    transaction.execute(
        "DELETE FROM blobs WHERE NOT EXISTS (SELECT 1 FROM refs WHERE refs.digest = blobs.digest)",
        [],
    )?;
    transaction.execute(
        "DELETE FROM projects WHERE NOT EXISTS (SELECT 1 FROM streams WHERE streams.project = projects.id)",
        [],
    )?;
    transaction.commit()?;
    // It frees one page per row that is read.
    connection.pragma_query(None, "incremental_vacuum", |_| Ok(()))
}
