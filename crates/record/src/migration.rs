//! Brings the tables of older versions up to date. There is no way back.
//!
//! Each migration makes one version of the tables from the one before it. All that are needed happen in one transaction, and
//! a copy of the record as it was is kept beside it.

use std::fs;
use std::path::{Path, PathBuf};

use llm_do_runtime::StoreError;
use rusqlite::{Connection, TransactionBehavior};

use crate::error::{from_io, from_sqlite};
use crate::files;

/// The SQL that makes version 2 of version 1, and so on.
pub(crate) const MIGRATIONS: &[&str] = &[];

/// A larger record is not copied before it is migrated: the copy would take as much space, and minutes.
const MAX_COPIED_BYTES: u64 = 1024 * 1024 * 1024;

/// Brings a record up to date.
pub(crate) fn migrate(
    connection: &mut Connection,
    record: &Path,
    migrations: &[&str],
) -> Result<(), StoreError> {
    // A second process waits here, and then finds nothing left to do.
    let _lock = files::lock_migration(record)?;
    let found = version(connection).map_err(from_sqlite)?;
    let done = usize::try_from(found.saturating_sub(1)).unwrap_or(usize::MAX);
    if migrations.len() <= done {
        return Ok(());
    }
    if fs::metadata(record).is_ok_and(|file| file.len() < MAX_COPIED_BYTES) {
        copy(connection, &copy_of(record, found))?;
    }
    apply(connection, migrations, done).map_err(from_sqlite)
}

/// Returns the version of the tables; 0 if there are none.
pub(crate) fn version(connection: &Connection) -> rusqlite::Result<u32> {
    connection.pragma_query_value(None, "user_version", |row| row.get(0))
}

fn apply(connection: &mut Connection, migrations: &[&str], done: usize) -> rusqlite::Result<()> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Exclusive)?;
    for (migration, to) in migrations.iter().zip(2_u32..).skip(done) {
        transaction.execute_batch(migration)?;
        transaction.pragma_update(None, "user_version", to)?;
    }
    transaction.commit()
}

/// Copies a record, and the copy is there as a whole or not at all.
fn copy(connection: &Connection, to: &Path) -> Result<(), StoreError> {
    let failed = |error: &std::io::Error| from_io("the record cannot be copied before it is migrated", error);
    let part = to.with_added_extension("part");
    // What an earlier attempt left; a file that is not empty would be refused.
    drop(fs::remove_file(&part));
    files::create_private(&part).map_err(|error| failed(&error))?;
    connection.execute("VACUUM INTO ?", [part.to_string_lossy()]).map_err(from_sqlite)?;
    fs::rename(&part, to).map_err(|error| failed(&error))
}

/// Where the copy of a record is, as it was before it was migrated.
fn copy_of(record: &Path, version: u32) -> PathBuf {
    let mut name = record.file_name().unwrap_or_default().to_owned();
    name.push(format!(".version-{version}"));
    record.with_file_name(name)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    /// A record of version 1 as a program long ago might have written it.
    fn old(path: &Path) -> Connection {
        let connection = Connection::open(path).unwrap();
        connection
            .execute_batch(
                "CREATE TABLE runs (id INTEGER, cost TEXT); INSERT INTO runs VALUES (1, '2.5'); PRAGMA user_version = 1;",
            )
            .unwrap();
        connection
    }

    const TO_2: &str = "ALTER TABLE runs ADD COLUMN title TEXT NOT NULL DEFAULT ''";
    const TO_3: &str = "UPDATE runs SET title = 'cost ' || cost; ALTER TABLE runs DROP COLUMN cost";

    fn row(connection: &Connection, sql: &str) -> String {
        connection.query_row(sql, [], |row| row.get(0)).unwrap()
    }

    #[test]
    fn an_old_record_is_brought_up_to_date_and_a_copy_is_kept() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("record.db");
        let mut connection = old(&path);
        migrate(&mut connection, &path, &[TO_2, TO_3]).unwrap();
        assert_eq!(version(&connection).unwrap(), 3);
        assert_eq!(row(&connection, "SELECT title FROM runs"), "cost 2.5");

        let copy = directory.path().join("record.db.version-1");
        assert_eq!(fs::metadata(&copy).unwrap().permissions().mode() & 0o777, 0o600);
        let before = Connection::open(&copy).unwrap();
        assert_eq!(version(&before).unwrap(), 1);
        assert_eq!(row(&before, "SELECT cost FROM runs"), "2.5");
    }

    #[test]
    fn only_what_is_missing_is_done() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("record.db");
        let mut connection = old(&path);
        migrate(&mut connection, &path, &[TO_2]).unwrap();
        migrate(&mut connection, &path, &[TO_2, TO_3]).unwrap();
        migrate(&mut connection, &path, &[TO_2, TO_3]).unwrap();
        assert_eq!(version(&connection).unwrap(), 3);
    }

    #[test]
    fn a_migration_that_fails_changes_nothing_and_can_be_tried_again() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("record.db");
        let mut connection = old(&path);
        let failed = migrate(&mut connection, &path, &[TO_2, "UPDATE nowhere SET x = 1"]);
        assert!(
            failed.as_ref().is_err_and(|error| error.to_string().contains("no such table")),
            "{failed:?}"
        );
        assert_eq!(version(&connection).unwrap(), 1);
        assert!(connection.prepare("SELECT title FROM runs").is_err());
        migrate(&mut connection, &path, &[TO_2, TO_3]).unwrap();
        assert_eq!(version(&connection).unwrap(), 3);
    }

    #[test]
    fn of_many_processes_one_migrates() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("record.db");
        drop(old(&path));
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    let mut connection = Connection::open(&path).unwrap();
                    migrate(&mut connection, &path, &[TO_2, TO_3]).unwrap();
                });
            }
        });
        let connection = Connection::open(&path).unwrap();
        assert_eq!(
            (version(&connection).unwrap(), row(&connection, "SELECT title FROM runs")),
            (3, "cost 2.5".to_owned())
        );
    }
}
