//! One writer per directory, in this process and across processes.
//!
//! Every file that is written gets a new inode, so the file itself cannot carry a lock that outlives a write. Its
//! directory can: it has one identity, whatever path or root led to it, also for a file that does not exist yet.
//! Threads of this process queue on a table of directories; processes meet at an advisory `flock` on the directory,
//! which the kernel releases when a process dies and which leaves no file behind.
//!
//! The lock does not stop programs that do not take it: see [`atomic`](super::atomic).

use std::collections::BTreeSet;
use std::io;
use std::time::{Duration, Instant};

use cap_std::fs::Dir;
use parking_lot::{Condvar, Mutex};

use self::system::DirectoryIdentity;

/// How long a writer waits for others before it gives up. A write holds the lock for milliseconds.
pub(crate) const MAX_WAIT: Duration = Duration::from_secs(10);

/// The directories in which a thread of this process is writing.
static LOCKED: Mutex<BTreeSet<DirectoryIdentity>> = Mutex::new(BTreeSet::new());
static RELEASED: Condvar = Condvar::new();

/// Why a directory was not locked.
#[derive(Debug)]
pub(crate) enum LockError {
    /// Another thread or process held the lock all the time.
    TimedOut,
    System(io::Error),
}

/// The right to change the files of one directory, until it is dropped.
///
/// A thread holds at most one, so that writers cannot wait for each other in a circle.
#[derive(Debug)]
pub(crate) struct DirectoryLock {
    // Dropped before `_entry`: the next thread of this process finds the `flock` free.
    _flock: system::Flock,
    _entry: TableEntry,
}

impl DirectoryLock {
    /// Waits for other writers, but not longer than [`MAX_WAIT`].
    pub(crate) fn acquire(directory: &Dir) -> Result<Self, LockError> {
        Self::acquire_within(directory, MAX_WAIT)
    }

    fn acquire_within(directory: &Dir, wait: Duration) -> Result<Self, LockError> {
        let deadline = Instant::now() + wait;
        // The handle of a directory may be one that only names it, which cannot be locked.
        let handle = directory.open(".").map_err(LockError::System)?;
        let identity = system::identity(&handle).map_err(LockError::System)?;
        let entry = TableEntry::insert(identity, deadline)?;
        Ok(Self { _flock: system::Flock::acquire(handle, deadline)?, _entry: entry })
    }
}

/// The entry of a locked directory in the table of this process.
#[derive(Debug)]
struct TableEntry(DirectoryIdentity);

impl TableEntry {
    fn insert(identity: DirectoryIdentity, deadline: Instant) -> Result<Self, LockError> {
        let is_locked = |locked: &mut BTreeSet<DirectoryIdentity>| locked.contains(&identity);
        let mut locked = LOCKED.lock();
        RELEASED.wait_while_until(&mut locked, is_locked, deadline);
        if locked.insert(identity) { Ok(Self(identity)) } else { Err(LockError::TimedOut) }
    }
}

impl Drop for TableEntry {
    fn drop(&mut self) {
        LOCKED.lock().remove(&self.0);
        RELEASED.notify_all();
    }
}

#[cfg(unix)]
mod system {
    use std::io;
    use std::time::{Duration, Instant};

    use cap_std::fs::{File, MetadataExt};
    use rustix::fs::{FlockOperation, flock};
    use rustix::io::Errno;

    use super::LockError;

    /// The device and the inode of a directory.
    pub(super) type DirectoryIdentity = (u64, u64);

    /// The waits between two attempts: `flock` itself cannot wait for a limited time.
    const FIRST_PAUSE: Duration = Duration::from_millis(1);
    const MAX_PAUSE: Duration = Duration::from_millis(20);

    pub(super) fn identity(directory: &File) -> io::Result<DirectoryIdentity> {
        let metadata = directory.metadata()?;
        Ok((metadata.dev(), metadata.ino()))
    }

    /// An advisory lock on a directory that other processes respect.
    #[derive(Debug)]
    pub(super) struct Flock(File);

    impl Flock {
        pub(super) fn acquire(directory: File, deadline: Instant) -> Result<Self, LockError> {
            let mut pause = FIRST_PAUSE;
            loop {
                match flock(&directory, FlockOperation::NonBlockingLockExclusive) {
                    Ok(()) => return Ok(Self(directory)),
                    Err(Errno::INTR) => {}
                    Err(Errno::WOULDBLOCK) if Instant::now() >= deadline => return Err(LockError::TimedOut),
                    Err(Errno::WOULDBLOCK) => {
                        std::thread::sleep(pause);
                        pause = (pause * 2).min(MAX_PAUSE);
                    }
                    // Some network file systems lock files only. What another process writes is still seen when
                    // the file is replaced.
                    Err(error) if is_unsupported(error) => return Ok(Self(directory)),
                    Err(error) => return Err(LockError::System(error.into())),
                }
            }
        }
    }

    fn is_unsupported(error: Errno) -> bool {
        matches!(error, Errno::BADF | Errno::INVAL | Errno::NOLCK | Errno::NOSYS | Errno::OPNOTSUPP)
    }

    impl Drop for Flock {
        fn drop(&mut self) {
            // Closing the file is not enough while a child process that was just forked still has it open.
            let _ = flock(&self.0, FlockOperation::Unlock);
        }
    }
}

#[cfg(not(unix))]
mod system {
    //! Systems without `flock`: all writers of this process queue on one entry.

    use std::io;
    use std::time::Instant;

    use cap_std::fs::File;

    use super::LockError;

    pub(super) type DirectoryIdentity = ();

    pub(super) fn identity(_directory: &File) -> io::Result<DirectoryIdentity> {
        Ok(())
    }

    #[derive(Debug)]
    pub(super) struct Flock;

    impl Flock {
        pub(super) fn acquire(_directory: File, _deadline: Instant) -> Result<Self, LockError> {
            Ok(Self)
        }
    }
}

#[cfg(unix)]
#[cfg(test)]
mod tests {

    use llm_do_testing::TestDir;
    use rustix::fs::{FlockOperation, flock};

    use super::*;

    const SHORT: Duration = Duration::from_millis(30);

    fn directory() -> (TestDir, Dir) {
        let directory = TestDir::new();
        std::fs::create_dir(directory.join("below")).unwrap();
        let opened = open(directory.path());
        (directory, opened)
    }

    fn open(path: &std::path::Path) -> Dir {
        Dir::open_ambient_dir(path, cap_std::ambient_authority()).unwrap()
    }

    #[test]
    fn one_directory_has_one_writer_whatever_handle_leads_to_it() {
        let (path, directory) = directory();
        let lock = DirectoryLock::acquire(&directory).unwrap();
        let again = DirectoryLock::acquire_within(&open(path.path()), SHORT);
        assert!(matches!(again, Err(LockError::TimedOut)), "{again:?}");
        DirectoryLock::acquire(&open(&path.join("below"))).unwrap();
        drop(lock);
        DirectoryLock::acquire(&directory).unwrap();
    }

    #[test]
    fn a_writer_that_waits_gets_the_lock_as_soon_as_it_is_free() {
        let (path, directory) = directory();
        let lock = DirectoryLock::acquire(&directory).unwrap();
        let other = open(path.path());
        let waiting = std::thread::spawn(move || DirectoryLock::acquire(&other).map(drop));
        drop(lock);
        waiting.join().unwrap().unwrap();
    }

    #[test]
    fn a_lock_of_another_program_is_waited_for_and_nothing_is_left_in_the_directory() {
        let (path, directory) = directory();
        let other = std::fs::File::open(path.path()).unwrap();
        flock(&other, FlockOperation::LockExclusive).unwrap();
        let lock = DirectoryLock::acquire_within(&directory, SHORT);
        assert!(matches!(lock, Err(LockError::TimedOut)), "{lock:?}");
        drop(other);
        let lock = DirectoryLock::acquire(&directory).unwrap();
        let names: Vec<_> = directory.entries().unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(names, ["below"]);
        drop(lock);
    }
}
