//! The files of projects, kept once each: a bundle is a row that names its files by their digests, and their texts are among
//! the large values. Both stay as long as a run names the bundle.

use std::collections::BTreeMap;
use std::sync::Arc;

use llm_do_core::{BundledFile, Digest, ProjectBundle};
use llm_do_runtime::StoreError;
use rusqlite::{Connection, OptionalExtension, params};

use crate::error::{corrupt, from_sqlite};

/// Keeps a bundle, unless it is kept already.
pub(crate) fn keep(
    connection: &Connection,
    digest: Digest,
    bundle: &ProjectBundle,
) -> Result<(), StoreError> {
    let files: BTreeMap<&str, Digest> = bundle.files().map(|(path, file)| (path, file.digest)).collect();
    let files = serde_json::to_string(&files).map_err(corrupt)?;
    let added = execute(
        connection,
        "INSERT OR IGNORE INTO bundles (digest, files) VALUES (?, ?)",
        params![digest.as_bytes(), files],
    )?;
    if added == 0 {
        return Ok(());
    }
    for (_, file) in bundle.files() {
        let Some(text) = &file.text else { continue };
        let insert = "INSERT OR IGNORE INTO blobs (digest, body) VALUES (?, ?)";
        execute(connection, insert, params![file.digest.as_bytes(), text.as_bytes()])?;
    }
    Ok(())
}

/// Notes the bundle of a run. The run refers to its files as it does to other large values, so that they go with the last run.
pub(crate) fn refer(connection: &Connection, stream: i64, bundle: Option<Digest>) -> rusqlite::Result<()> {
    let Some(bundle) = bundle else { return Ok(()) };
    let mut update = connection.prepare_cached("UPDATE streams SET bundle = ? WHERE id = ?")?;
    update.execute(params![bundle.as_bytes(), stream])?;
    let refer = "INSERT OR IGNORE INTO refs (stream, digest)
        SELECT ?, unhex(file.value) FROM bundles, json_each(bundles.files) AS file WHERE bundles.digest = ?";
    connection.prepare_cached(refer)?.execute(params![stream, bundle.as_bytes()]).map(drop)
}

/// Reads a bundle. A file whose text is not kept is known by its digest.
pub(crate) fn read(connection: &Connection, digest: Digest) -> Result<Option<ProjectBundle>, StoreError> {
    let files: Option<String> = connection
        .query_row("SELECT files FROM bundles WHERE digest = ?", [digest.as_bytes()], |row| row.get(0))
        .optional()
        .map_err(from_sqlite)?;
    let Some(files) = files else { return Ok(None) };
    let files: BTreeMap<String, Digest> = serde_json::from_str(&files).map_err(corrupt)?;
    let mut bundle = ProjectBundle::default();
    for (path, digest) in files {
        let text = text(connection, &digest)?;
        bundle.insert(path, BundledFile { digest, text });
    }
    Ok(Some(bundle))
}

fn text(connection: &Connection, digest: &Digest) -> Result<Option<Arc<str>>, StoreError> {
    let body: Option<Vec<u8>> = connection
        .prepare_cached("SELECT body FROM blobs WHERE digest = ?")
        .and_then(|mut query| query.query_row([digest.as_bytes()], |row| row.get(0)).optional())
        .map_err(from_sqlite)?;
    Ok(body.and_then(|body| String::from_utf8(body).ok()).map(Arc::from))
}

/// Removes the bundles that no run names any more.
pub(crate) fn remove_unused(connection: &Connection) -> rusqlite::Result<()> {
    let unused =
        "DELETE FROM bundles WHERE NOT EXISTS (SELECT 1 FROM streams WHERE streams.bundle = bundles.digest)";
    connection.execute(unused, []).map(drop)
}

fn execute(connection: &Connection, sql: &str, values: &[&dyn rusqlite::ToSql]) -> Result<usize, StoreError> {
    connection.prepare_cached(sql).and_then(|mut insert| insert.execute(values)).map_err(from_sqlite)
}
