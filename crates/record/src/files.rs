//! The files of a record: readable by their owner only, replaceable by nobody else, and on a file system that can hold
//! them.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use llm_do_runtime::StoreError;

use crate::error::from_io;
use crate::file_systems::unsafe_file_system;

/// Creates the directories of a record, unless they are there.
pub(crate) fn create_parent(path: &Path) -> Result<(), StoreError> {
    match path.parent().filter(|directory| !directory.as_os_str().is_empty()) {
        Some(directory) => create_directory(directory).and_then(|()| refuse_unsafe(directory)),
        None => Ok(()),
    }
}

/// Creates the file of a record, unless it is there. SQLite gives its other files the same mode.
pub(crate) fn create(path: &Path) -> Result<(), StoreError> {
    refuse_shared(path)?;
    create_private(path)
        .map_err(|error| from_io(&format!("the record {} cannot be created", path.display()), &error))
}

/// Creates an empty file that only its owner can read, unless there is one.
pub(crate) fn create_private(path: &Path) -> io::Result<()> {
    match OpenOptions::new().write(true).create_new(true).mode(0o600).open(path) {
        Ok(_) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(error),
    }
}

/// Waits until nobody else opens the files of a record or sets them aside. Released with the file.
pub(crate) fn lock_exclusively(record: &Path) -> Result<File, StoreError> {
    lock(record, "files", File::lock)
}

/// Waits until nobody sets the files of a record aside. Released with the file.
pub(crate) fn lock_shared(record: &Path) -> Result<File, StoreError> {
    lock(record, "files", File::lock_shared)
}

/// Waits until nobody else migrates a record. Released with the file.
pub(crate) fn lock_migration(record: &Path) -> Result<File, StoreError> {
    lock(record, "migration", File::lock)
}

fn lock(record: &Path, name: &str, take: impl Fn(&File) -> io::Result<()>) -> Result<File, StoreError> {
    let directory = claims_of(record);
    create_directory(&directory)?;
    let path = directory.join(name);
    let open = File::options().write(true).create(true).truncate(false).mode(0o600).open(&path);
    let locked = open.and_then(|file| take(&file).map(|()| file));
    locked.map_err(|error| from_io(&format!("{} cannot be locked", path.display()), &error))
}

/// Creates a directory that only its owner can read.
pub(crate) fn create_directory(directory: &Path) -> Result<(), StoreError> {
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(directory)
        .map_err(|error| from_io(&format!("the directory {} cannot be created", directory.display()), &error))
}

/// Refuses a record that another user owns, or can put another one in the place of: what it says decides what a resumed
/// run does.
pub(crate) fn refuse_shared(record: &Path) -> Result<(), StoreError> {
    const STICKY: u32 = 0o1000;
    const OTHERS_WRITE: u32 = 0o002;
    let directory = record.parent().filter(|directory| !directory.as_os_str().is_empty());
    for path in [directory.unwrap_or(Path::new(".")), record] {
        // What is not there is created with the rights that it needs.
        let Ok(found) = path.metadata() else { continue };
        let refused = |why: String| StoreError::Other(format!("{} {why}", path.display()));
        let owner = found.uid();
        if owner != rustix::process::geteuid().as_raw() && owner != 0 {
            return Err(refused(format!("belongs to the user {owner}")));
        }
        if found.mode() & OTHERS_WRITE != 0 && found.mode() & STICKY == 0 {
            return Err(refused("is not safe: others can write to it (`chmod o-w` forbids it)".into()));
        }
    }
    Ok(())
}

/// Returns all files and directories of a record, whether they exist or not. None of them is for anybody but this crate.
pub fn record_files(record: &Path) -> Vec<PathBuf> {
    let beside = |ending: &str| {
        let mut name = record.file_name().unwrap_or_default().to_owned();
        name.push(ending);
        record.with_file_name(name)
    };
    ["", "-wal", "-shm", "-journal", "-claims", "-suspect"].map(beside).into()
}

/// Returns the directory of the claims of a record.
pub(crate) fn claims_of(record: &Path) -> PathBuf {
    let mut name = record.file_name().unwrap_or_default().to_owned();
    name.push("-claims");
    record.with_file_name(name)
}

/// Refuses file systems on which readers would see a damaged record.
fn refuse_unsafe(directory: &Path) -> Result<(), StoreError> {
    let Some(kind) = unsafe_file_system(directory) else { return Ok(()) };
    Err(StoreError::Other(format!(
        "{} is on {kind}, a file system that cannot hold a record safely; LLM_DO_RECORD names a file on a local disk",
        directory.display()
    )))
}
