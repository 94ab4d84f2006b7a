//! What went wrong, in the kinds that a run and a person tell apart.

use std::io;

use llm_do_runtime::StoreError;
use rusqlite::{Error, ErrorCode};

/// Returns the kind of an error of SQLite.
pub(crate) fn from_sqlite(error: Error) -> StoreError {
    match error.sqlite_error_code() {
        Some(ErrorCode::DiskFull) => StoreError::Full(error.to_string()),
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => StoreError::Corrupt(error.to_string()),
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
            StoreError::Io("another process kept the record locked for more than 10 seconds".to_owned())
        }
        Some(_) => StoreError::Io(format!("the record cannot be written or read: {error}")),
        None => StoreError::Other(error.to_string()),
    }
}

/// Returns the kind of an error of the file system.
pub(crate) fn from_io(doing: &str, error: &io::Error) -> StoreError {
    let text = format!("{doing}: {error}");
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => StoreError::Full(text),
        _ => StoreError::Io(text),
    }
}

/// An error about an event that cannot be stored or read back.
pub(crate) fn corrupt(text: impl ToString) -> StoreError {
    StoreError::Corrupt(text.to_string())
}
