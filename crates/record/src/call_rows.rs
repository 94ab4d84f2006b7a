//! The calls of a stream, which its events name by number.

use std::sync::Arc;

use llm_do_core::{CallInfo, Key, Name, RunId};
use llm_do_runtime::StoreError;
use rusqlite::{Connection, Row};

use crate::error::from_sqlite;

/// Returns the calls of a stream as their events name them, by the ids of their rows.
pub(crate) fn calls_of(
    connection: &Connection,
    stream: i64,
    run: RunId,
) -> Result<Vec<(i64, Arc<CallInfo>)>, StoreError> {
    let mut calls = Vec::new();
    visit_calls(connection, stream, run, &mut |id, info| calls.push((id, info)))?;
    Ok(calls)
}

/// Reads the calls of a stream in the order of their ids, until one cannot be read.
pub(crate) fn visit_calls(
    connection: &Connection,
    stream: i64,
    run: RunId,
    visit: &mut dyn FnMut(i64, Arc<CallInfo>),
) -> Result<(), StoreError> {
    let mut query = connection
        .prepare_cached("SELECT id, key, parent, depth, path, agent FROM calls WHERE stream = ? ORDER BY id")
        .map_err(from_sqlite)?;
    let mut rows = query.query([stream]).map_err(from_sqlite)?;
    while let Some(row) = rows.next().map_err(from_sqlite)? {
        let (id, info) = call_of(row, run).map_err(from_sqlite)?;
        visit(id, Arc::new(info));
    }
    Ok(())
}

fn call_of(row: &Row<'_>, run: RunId) -> rusqlite::Result<(i64, CallInfo)> {
    let info = CallInfo {
        run,
        id: Key::from(row.get::<_, String>(1)?.as_str()),
        parent: row.get::<_, Option<String>>(2)?.map(|parent| Key::from(parent.as_str())),
        depth: row.get(3)?,
        path: row.get::<_, String>(4)?.into(),
        agent: Name::from(row.get::<_, String>(5)?.as_str()),
    };
    Ok((row.get(0)?, info))
}
