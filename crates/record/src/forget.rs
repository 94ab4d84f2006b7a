//! Removing a session, so that nothing of it is left in the files.

use llm_do_core::RunId;
use llm_do_runtime::StoreError;

use crate::claim::Claim;
use crate::error::from_sqlite;
use crate::prune;
use crate::read::Reader;
use crate::writer::Writing;

/// Removes a session and the runs that were its turns. Returns whether it was there; one that somebody has open stays.
pub(crate) fn forget(writing: &mut Writing, session: RunId) -> Result<bool, StoreError> {
    let Some(claim) = Claim::take(&writing.path, session)? else {
        let holder = "another process".to_owned();
        return Err(StoreError::Held { run: session, holder });
    };
    let Some(reader) = Reader::open(&writing.path)? else { return Ok(false) };
    let Some(summary) = reader.run(session)? else { return Ok(false) };
    let turns = reader.runs_of(session)?;
    drop((reader, claim));
    for turn in turns {
        prune::remove_claimed(writing, &turn)?;
    }
    let removed = prune::remove_claimed(writing, &summary)?;
    prune::remove_unused_projects(&writing.connection)?;
    // What is forgotten is not left in the log.
    let truncate = "PRAGMA wal_checkpoint(TRUNCATE)";
    writing.connection.query_row(truncate, [], |_| Ok(())).map_err(from_sqlite)?;
    Ok(removed > 0)
}
