//! A damaged record is never deleted: its files are set aside, and a new one begins.
//!
//! Opening a record reads little of it. Damage that shows later is noted in a file beside the record, and whoever opens the
//! record next checks all of it.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use llm_do_runtime::StoreError;
use rusqlite::Connection;

use crate::error::{corrupt, from_io, from_sqlite};
use crate::files;

/// How every database file of SQLite begins.
const HEADER: &[u8] = b"SQLite format 3\0";

/// What the name of a damaged record has behind that of the record.
const DAMAGED: &str = ".damaged-";

/// Returns whether a file begins as a database does, damaged or not.
pub fn is_database(path: impl AsRef<Path>) -> bool {
    let mut header = [0; HEADER.len()];
    File::open(path).and_then(|mut file| file.read_exact(&mut header)).is_ok() && header == *HEADER
}

/// Refuses a file that has content and is not a database, before anything is made beside it.
pub(crate) fn refuse_other_file(path: &Path) -> Result<(), StoreError> {
    match fs::metadata(path) {
        Ok(file) if file.len() > 0 && !is_database(path) => Err(corrupt("the file is not a database")),
        _ => Ok(()),
    }
}

/// Lists the damaged files that were set aside beside a record, oldest first.
pub fn damaged_files(record: impl AsRef<Path>) -> Vec<PathBuf> {
    let record = record.as_ref();
    let beginning = beside(record, DAMAGED);
    let (Some(directory), Some(beginning)) = (record.parent(), beginning.file_name()) else {
        return Vec::new();
    };
    let directory = if directory.as_os_str().is_empty() { Path::new(".") } else { directory };
    let entries = fs::read_dir(directory).into_iter().flatten().filter_map(Result::ok);
    let is_damaged = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with(&*beginning.to_string_lossy()) && !name.ends_with("-wal") && !name.ends_with("-shm")
    };
    let mut found: Vec<PathBuf> = entries.map(|entry| entry.path()).filter(is_damaged).collect();
    found.sort();
    found
}

/// Moves the files of a record out of the way. Returns where the record is now.
pub(crate) fn set_aside(record: &Path) -> Result<PathBuf, StoreError> {
    let damaged = free_name(record);
    // The database last: beside a new one, an old log would be taken for its own.
    for suffix in ["-wal", "-shm", ""] {
        match fs::rename(beside(record, suffix), beside(&damaged, suffix)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => {
                return Err(from_io("the damaged record cannot be set aside", &error));
            }
            Ok(()) => {}
        }
    }
    clear_suspicion(record);
    Ok(damaged)
}

fn free_name(record: &Path) -> PathBuf {
    let time = Timestamp::now().strftime("%Y%m%dT%H%M%SZ").to_string();
    let names = (1..).map(|number| match number {
        1 => format!("{DAMAGED}{time}"),
        number => format!("{DAMAGED}{time}.{number}"),
    });
    let mut paths = names.map(|name| beside(record, &name));
    paths.find(|path| !path.exists()).unwrap_or_else(|| beside(record, DAMAGED))
}

/// Notes that something in the record could not be read or written.
pub(crate) fn suspect(record: &Path) {
    // A record that cannot even get a note beside it cannot be set aside either.
    let _ = files::create_private(&suspicion(record));
}

fn clear_suspicion(record: &Path) {
    // Without it, the next one that opens the record checks it again.
    let _ = fs::remove_file(suspicion(record));
}

fn suspicion(record: &Path) -> PathBuf {
    beside(record, "-suspect")
}

/// Checks a record that is suspected to be damaged.
pub(crate) fn check_suspect(connection: &Connection, record: &Path) -> Result<(), StoreError> {
    if !suspicion(record).exists() {
        return Ok(());
    }
    match problem(connection)? {
        Some(problem) => Err(corrupt(problem)),
        None => {
            clear_suspicion(record);
            Ok(())
        }
    }
}

/// Reads all of a record, and returns the first problem of its structure.
pub(crate) fn problem(connection: &Connection) -> Result<Option<String>, StoreError> {
    let found: Result<String, _> = connection.query_row("PRAGMA quick_check(1)", [], |row| row.get(0));
    match found.map_err(from_sqlite) {
        Ok(found) if found == "ok" => Ok(None),
        Ok(found) => Ok(Some(found)),
        Err(StoreError::Corrupt(problem)) => Ok(Some(problem)),
        Err(error) => Err(error),
    }
}

/// The path of a file whose name begins with that of the record.
fn beside(record: &Path, suffix: &str) -> PathBuf {
    let mut name = record.file_name().unwrap_or_default().to_owned();
    name.push(suffix);
    record.with_file_name(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_files_of_a_damaged_record_are_set_aside_under_names_that_are_free() {
        let directory = tempfile::tempdir().unwrap();
        let record = directory.path().join("record.db");
        let mut set = Vec::new();
        for text in ["first", "second"] {
            for suffix in ["", "-wal", "-shm"] {
                fs::write(beside(&record, suffix), text).unwrap();
            }
            set.push(set_aside(&record).unwrap());
            assert!(!record.exists());
        }
        assert_eq!(damaged_files(&record), set);
        for (path, text) in set.iter().zip(["first", "second"]) {
            for suffix in ["", "-wal", "-shm"] {
                assert_eq!(fs::read_to_string(beside(path, suffix)).unwrap(), text);
            }
        }
    }

    #[test]
    fn a_record_without_a_log_is_set_aside_as_well() {
        let directory = tempfile::tempdir().unwrap();
        let record = directory.path().join("record.db");
        fs::write(&record, "x").unwrap();
        suspect(&record);
        let damaged = set_aside(&record).unwrap();
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
        assert_eq!(fs::read_to_string(damaged).unwrap(), "x");
    }
}
