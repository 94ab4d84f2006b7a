//! The claim of a run: a locked file, which the kernel releases when its process ends.
//!
//! The lock says that somebody writes; the epoch in the record, raised by each claim, makes sure that one who lost the
//! lock (a suspended machine, a removed file) writes nothing more.

use std::fs::{self, File, TryLockError};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use jiff::tz::TimeZone;
use llm_do_core::RunId;
use llm_do_runtime::StoreError;

use crate::error::from_io;
use crate::files;

/// A claimed run. Dropping it releases the claim.
#[derive(Debug)]
pub(crate) struct Claim {
    path: PathBuf,
    // Locked as long as it is open.
    _file: File,
}

impl Claim {
    /// Claims a run; `None` if another process or runtime has it.
    pub(crate) fn take(record: &Path, run: RunId) -> Result<Option<Self>, StoreError> {
        let directory = files::claims_of(record);
        let path = directory.join(run.to_string());
        let failed = |error: &std::io::Error| from_io(&format!("{} cannot be locked", path.display()), error);
        fail_point!("record::before_claim");
        loop {
            let open = || File::options().write(true).create(true).truncate(false).mode(0o600).open(&path);
            let file = match open() {
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                    files::create_directory(&directory)?;
                    open()
                }
                opened => opened,
            };
            let file = file.map_err(|error| failed(&error))?;
            match file.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) if is_held(&file) => return Ok(None),
                // Somebody only looked.
                Err(TryLockError::WouldBlock) => {
                    std::thread::yield_now();
                    continue;
                }
                Err(TryLockError::Error(error)) => return Err(failed(&error)),
            }
            // Whoever held it before may have removed the file that was just locked.
            let own = file.metadata().map_err(|error| failed(&error))?.ino();
            if fs::metadata(&path).is_ok_and(|found| found.ino() == own) {
                fail_point!("record::after_claim");
                return Ok(Some(Self { path, _file: file }));
            }
        }
    }

    /// Returns whether somebody has claimed a run.
    pub(crate) fn is_taken(record: &Path, run: RunId) -> bool {
        let path = files::claims_of(record).join(run.to_string());
        File::options().write(true).open(path).is_ok_and(|file| is_held(&file))
    }
}

/// Returns whether the file of a claim is locked by whoever holds the claim. That lock is exclusive; this looks with a shared
/// one, so that those who look are not taken for a holder.
fn is_held(file: &File) -> bool {
    let locked = file.try_lock_shared();
    if locked.is_ok() {
        // It would fail only for a file that is not open.
        let _ = file.unlock();
    }
    matches!(locked, Err(TryLockError::WouldBlock))
}

impl Drop for Claim {
    fn drop(&mut self) {
        // Removed while it is locked, so that nobody can have locked the same file.
        fail_point!("record::before_release");
        let _ = fs::remove_file(&self.path);
        fail_point!("record::after_release");
    }
}

/// Who holds a claim, as it is written into the record.
pub(crate) fn holder() -> String {
    let machine = rustix::system::uname().nodename().to_string_lossy().into_owned();
    format!("{machine}:{}:{}", std::process::id(), Timestamp::now().as_second())
}

/// Returns whether the process that held a claim is gone. Its lock may outlive it for a moment, in a child that has not yet
/// started its program.
pub(crate) fn is_gone(holder: &str) -> bool {
    let mut parts = holder.rsplitn(3, ':').skip(1);
    let (Some(process), Some(machine)) = (parts.next(), parts.next()) else { return false };
    let process = process.parse().ok().and_then(rustix::process::Pid::from_raw);
    machine.as_bytes() == rustix::system::uname().nodename().to_bytes()
        && process.is_some_and(|process| {
            rustix::process::test_kill_process(process) == Err(rustix::io::Errno::SRCH)
        })
}

/// Says who holds a claim, such as "process 4711 on this machine since 14:02".
pub(crate) fn describe(holder: &str) -> String {
    let mut parts = holder.rsplitn(3, ':');
    let (Some(began), Some(process), Some(machine)) = (parts.next(), parts.next(), parts.next()) else {
        return "another process".to_owned();
    };
    let here = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let host = if machine == here { "this machine" } else { machine };
    let began = began.parse().ok().and_then(|second| Timestamp::from_second(second).ok());
    match began {
        Some(began) => {
            let time = began.to_zoned(TimeZone::system()).strftime("%H:%M").to_string();
            format!("process {process} on {host} since {time}")
        }
        None => format!("process {process} on {host}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(number: u128) -> RunId {
        RunId(uuid::Uuid::from_u128(number))
    }

    #[test]
    fn a_run_is_claimed_once_until_the_claim_is_dropped() {
        let directory = tempfile::tempdir().unwrap();
        let record = directory.path().join("record.db");
        let claim = Claim::take(&record, run(1)).unwrap();
        assert!(claim.is_some());
        assert!(Claim::is_taken(&record, run(1)));
        assert!(Claim::take(&record, run(1)).unwrap().is_none());
        assert!(Claim::take(&record, run(2)).unwrap().is_some());
        drop(claim);
        assert!(!Claim::is_taken(&record, run(1)));
        assert!(Claim::take(&record, run(1)).unwrap().is_some());
    }

    #[test]
    fn of_many_threads_one_at_a_time_has_the_claim() {
        let directory = tempfile::tempdir().unwrap();
        let record = directory.path().join("record.db");
        let inside = std::sync::atomic::AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    for _ in 0..200 {
                        let Some(claim) = Claim::take(&record, run(1)).unwrap() else { continue };
                        assert_eq!(inside.fetch_add(1, std::sync::atomic::Ordering::SeqCst), 0);
                        inside.fetch_sub(1, std::sync::atomic::Ordering::SeqCst);
                        drop(claim);
                    }
                });
            }
        });
    }

    #[test]
    fn whoever_looks_at_a_claim_disturbs_nobody() {
        let directory = tempfile::tempdir().unwrap();
        let record = directory.path().join("record.db");
        // What a killed process leaves behind.
        let left = files::claims_of(&record);
        files::create_directory(&left).unwrap();
        File::create(left.join(run(2).to_string())).unwrap();
        let is_over = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    while !is_over.load(std::sync::atomic::Ordering::SeqCst) {
                        Claim::is_taken(&record, run(1));
                        assert!(!Claim::is_taken(&record, run(2)), "two that look see each other");
                        std::thread::yield_now();
                    }
                });
            }
            let taken = (0..3_000).filter(|_| Claim::take(&record, run(1)).unwrap().is_some()).count();
            is_over.store(true, std::sync::atomic::Ordering::SeqCst);
            assert_eq!(taken, 3_000);
        });
    }

    #[test]
    fn the_holder_of_a_claim_is_described_for_people() {
        let told = describe(&holder());
        assert!(
            told.starts_with(&format!("process {} on this machine since ", std::process::id())),
            "{told}"
        );
        assert!(describe("far:12:0").starts_with("process 12 on far since "));
        assert_eq!(describe("?"), "another process");
    }
}
