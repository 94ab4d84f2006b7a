//! The tables, and connections to them.

use std::path::Path;
use std::time::Duration;

use llm_do_runtime::StoreError;
use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OpenFlags};

use crate::damage;
use crate::error::from_sqlite;
use crate::migration::{self, MIGRATIONS, version};

/// The version of the tables: each migration makes the next one.
const VERSION: u32 = 1 + MIGRATIONS.len() as u32;

/// The pages of a database file.
pub(crate) const PAGE_BYTES: u32 = 8 * 1024;

/// How large the file of the write-ahead log may remain after its content was moved into the database.
const MAX_LOG_FILE_BYTES: i64 = 64 * 1024 * 1024;

/// A stream is a run or a session. Every table but `events`, `blobs`, `bundles` and the answers of
/// `approvals` is derived from events, in the transaction that writes them.
const TABLES: &str = "
CREATE TABLE meta (key TEXT PRIMARY KEY, value) WITHOUT ROWID;
CREATE TABLE projects (id INTEGER PRIMARY KEY, root TEXT NOT NULL UNIQUE, name TEXT);
CREATE TABLE streams (
    id INTEGER PRIMARY KEY, uuid BLOB NOT NULL UNIQUE, kind INTEGER NOT NULL, session INTEGER, ordinal INTEGER, parent INTEGER,
    parent_key TEXT, project INTEGER, bundle BLOB, pin BLOB, build TEXT, format INTEGER, entry TEXT, agent TEXT, title TEXT,
    is_turn INTEGER NOT NULL DEFAULT 0, status TEXT, epoch INTEGER NOT NULL, holder TEXT, next_seq INTEGER NOT NULL, began INTEGER, ended INTEGER, error TEXT,
    tokens_in INTEGER NOT NULL DEFAULT 0, tokens_out INTEGER NOT NULL DEFAULT 0, cost INTEGER NOT NULL DEFAULT 0,
    unpriced INTEGER NOT NULL DEFAULT 0, calls INTEGER NOT NULL DEFAULT 0, parked INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX streams_by_project ON streams (project, began DESC);
CREATE INDEX streams_by_status ON streams (status, began DESC);
CREATE INDEX streams_by_begin ON streams (began DESC);
CREATE INDEX streams_by_session ON streams (session, ordinal);
CREATE INDEX streams_of_sessions ON streams (ended DESC) WHERE kind = 1;
CREATE INDEX streams_by_parent ON streams (parent);
CREATE TABLE events (
    stream INTEGER NOT NULL, seq INTEGER NOT NULL, call INTEGER NOT NULL, key TEXT, time INTEGER NOT NULL, body TEXT NOT NULL,
    PRIMARY KEY (stream, seq)
) WITHOUT ROWID;
CREATE TABLE calls (
    stream INTEGER NOT NULL, id INTEGER NOT NULL, key TEXT NOT NULL, parent TEXT, depth INTEGER NOT NULL, path TEXT NOT NULL,
    agent TEXT NOT NULL, kind TEXT, name TEXT, started INTEGER, executing INTEGER, finished INTEGER, began INTEGER,
    ended INTEGER, outcome TEXT, tokens_in INTEGER, tokens_out INTEGER, cost INTEGER, unpriced INTEGER,
    PRIMARY KEY (stream, id)
) WITHOUT ROWID;
CREATE INDEX calls_by_key ON calls (stream, key);
CREATE INDEX calls_by_name ON calls (name, kind, began);
CREATE TABLE usage (
    stream INTEGER NOT NULL, seq INTEGER NOT NULL, call INTEGER NOT NULL, agent TEXT NOT NULL, model TEXT NOT NULL, provider TEXT NOT NULL,
    day INTEGER NOT NULL, requests INTEGER NOT NULL, input INTEGER NOT NULL, output INTEGER NOT NULL, cache_read INTEGER NOT NULL,
    cache_write INTEGER NOT NULL, reasoning INTEGER NOT NULL, searches INTEGER NOT NULL, cost INTEGER NOT NULL,
    unpriced INTEGER NOT NULL, ms INTEGER NOT NULL,
    PRIMARY KEY (stream, seq)
) WITHOUT ROWID;
CREATE INDEX usage_by_day ON usage (day, model);
CREATE INDEX usage_by_agent ON usage (agent, day);
CREATE TABLE approvals (
    stream INTEGER NOT NULL, id TEXT NOT NULL, asked_seq INTEGER NOT NULL, digest BLOB, asked INTEGER NOT NULL, expires INTEGER,
    state TEXT NOT NULL, answer BLOB, answered INTEGER, answered_by TEXT,
    PRIMARY KEY (stream, id)
) WITHOUT ROWID;
CREATE INDEX approvals_by_state ON approvals (state, asked);
CREATE TABLE blobs (digest BLOB PRIMARY KEY, body BLOB NOT NULL);
CREATE TABLE refs (stream INTEGER NOT NULL, digest BLOB NOT NULL, PRIMARY KEY (stream, digest)) WITHOUT ROWID;
CREATE INDEX refs_by_digest ON refs (digest);
CREATE TABLE turns (
    stream INTEGER NOT NULL, ordinal INTEGER NOT NULL, run BLOB, text TEXT NOT NULL, answer TEXT, status TEXT,
    PRIMARY KEY (stream, ordinal)
) WITHOUT ROWID;
CREATE TABLE bundles (digest BLOB PRIMARY KEY, files BLOB NOT NULL) WITHOUT ROWID;
";

/// Opens a connection that writes. Makes the tables if they are missing, and brings those of an older version up to date.
pub(crate) fn open_to_write(path: &Path) -> Result<Connection, StoreError> {
    let mut connection = open(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    refuse_other_database(&connection)?;
    damage::check_suspect(&connection, path)?;
    while_busy(|| set_up(&connection))?;
    match version(&connection).map_err(from_sqlite)? {
        VERSION => {}
        0 => while_busy(|| create(&mut connection))?,
        found if found > VERSION => return Err(StoreError::Newer { found, known: VERSION }),
        _ => migration::migrate(&mut connection, path, MIGRATIONS)?,
    }
    Ok(connection)
}

/// Does something again while other processes have the record locked: while several make one, SQLite does not call the busy
/// handler for each lock that it needs.
fn while_busy<T>(mut work: impl FnMut() -> rusqlite::Result<T>) -> Result<T, StoreError> {
    let mut attempt = 0;
    loop {
        match work() {
            Err(error) if is_busy(&error) && wait_for_others(attempt) => attempt += 1,
            done => return done.map_err(from_sqlite),
        }
    }
}

fn is_busy(error: &rusqlite::Error) -> bool {
    error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy)
}

/// Opens a connection that reads; none if there are no tables yet. A record of an older version is brought up to date first; one
/// of a newer version is tried.
pub(crate) fn open_to_read(path: &Path) -> Result<Option<Connection>, StoreError> {
    let connection = open_query_only(path)?;
    match version(&connection).map_err(from_sqlite)? {
        0 => Ok(None),
        found if found >= VERSION => Ok(Some(connection)),
        _ => {
            drop(connection);
            drop(open_to_write(path)?);
            open_query_only(path).map(Some)
        }
    }
}

fn open_query_only(path: &Path) -> Result<Connection, StoreError> {
    let connection = open(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    connection.pragma_update(None, "query_only", true).map_err(from_sqlite)?;
    Ok(connection)
}

/// Opens a connection that reads what it can of a damaged record, and changes nothing of it.
pub(crate) fn open_damaged(path: &Path) -> Result<Connection, StoreError> {
    open_query_only(path)
}

/// Refuses a record of another version than the one that was opened: a newer program may have changed its tables since.
pub(crate) fn check_version(connection: &Connection) -> Result<(), StoreError> {
    let found: u32 = connection
        .prepare_cached("PRAGMA user_version")
        .and_then(|mut query| query.query_row([], |row| row.get(0)))
        .map_err(from_sqlite)?;
    if found == VERSION { Ok(()) } else { Err(StoreError::Newer { found, known: VERSION }) }
}

/// Returns the version of a record, if it is newer than this program.
pub(crate) fn newer_version(connection: &Connection) -> Result<Option<u32>, StoreError> {
    let found = version(connection).map_err(from_sqlite)?;
    Ok((found > VERSION).then_some(found))
}

/// Refuses a database that has tables and no version: it is not a record.
fn refuse_other_database(connection: &Connection) -> Result<(), StoreError> {
    // The tables first: another process may make them and their version right now.
    let tables = "SELECT count(*) FROM sqlite_schema";
    let tables: i64 = while_busy(|| connection.query_row(tables, [], |row| row.get(0)))?;
    if tables > 0 && while_busy(|| version(connection))? == 0 {
        return Err(StoreError::Other("it is the database of another program".to_owned()));
    }
    Ok(())
}

fn open(path: &Path, flags: OpenFlags) -> Result<Connection, StoreError> {
    let flags = flags | OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_NOFOLLOW;
    // SQLite refuses links anywhere in a path; those above the file itself are resolved.
    let path = match (path.parent().map(Path::canonicalize), path.file_name()) {
        (Some(Ok(directory)), Some(name)) => directory.join(name),
        _ => path.to_owned(),
    };
    let mut connection = Connection::open_with_flags(path, flags).map_err(from_sqlite)?;
    connection.busy_handler(Some(wait_for_others)).map_err(from_sqlite)?;
    // Closing the last connection would move the log into the database, remove it and wait for the disk three times, at the
    // end of each run; the next process goes on with the log.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true).map_err(from_sqlite)?;
    Ok(connection)
}

/// Sleeps for 0.3 to 0.7 ms, and gives up after 10 seconds. The waits of SQLite's own handler grow to 100 ms, and
/// several processes that write at full speed then make one of them wait for a second.
fn wait_for_others(attempt: i32) -> bool {
    const MAX_ATTEMPTS: i32 = 20_000;
    let spread = (u64::from(std::process::id()) ^ u64::from(attempt.unsigned_abs()))
        .wrapping_mul(0x9e37_79b9_7f4a_7c15)
        >> 40;
    std::thread::sleep(Duration::from_micros(300 + spread % 400));
    attempt < MAX_ATTEMPTS
}

fn set_up(connection: &Connection) -> rusqlite::Result<()> {
    // Of a record that has tables, these would write a page and wait for the disk.
    if version(connection)? == 0 {
        connection.pragma_update(None, "page_size", PAGE_BYTES)?;
        connection.pragma_update(None, "auto_vacuum", "INCREMENTAL")?;
    }
    connection.pragma_update_and_check(None, "journal_mode", "WAL", |_| Ok(()))?;
    connection.pragma_update(None, "journal_size_limit", MAX_LOG_FILE_BYTES)?;
    connection.pragma_update(None, "synchronous", "NORMAL")?;
    // What is removed is overwritten, so that nothing of a forgotten session is left in the file.
    connection.pragma_update_and_check(None, "secure_delete", true, |_| Ok(()))?;
    // The writer decides when: in the middle of a commit, it would be time that a run waits.
    connection.pragma_update_and_check(None, "wal_autocheckpoint", 0, |_| Ok(()))?;
    // macOS keeps what was synced in the cache of the drive otherwise.
    connection.pragma_update(None, "fullfsync", true)
}

fn create(connection: &mut Connection) -> rusqlite::Result<()> {
    let transaction = connection.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
    // Another process may have made them in the meantime.
    if version(&transaction)? == 0 {
        transaction.execute_batch(TABLES)?;
        transaction.pragma_update(None, "user_version", VERSION)?;
    }
    transaction.commit()
}

#[cfg(test)]
mod tests {
    #[test]
    fn sqlite_has_no_reset_bug_of_its_log() {
        // Before 3.51.3, a checkpoint that met a write could damage the database.
        assert!(rusqlite::version_number() >= 3_051_003, "{}", rusqlite::version());
    }
}
