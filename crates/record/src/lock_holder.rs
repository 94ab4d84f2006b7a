//! Which process writes to a record right now, as the kernel knows it.

use std::path::Path;

/// The byte of the shared memory file that SQLite locks while it writes to the log.
#[cfg(target_os = "linux")]
const WRITE_LOCK: u64 = 120;

/// Returns the process that holds the lock for writing, if the system tells.
#[cfg(target_os = "linux")]
pub(crate) fn lock_holder(record: &Path) -> Option<u32> {
    use std::os::unix::fs::MetadataExt;
    let mut name = record.file_name()?.to_owned();
    name.push("-shm");
    // The file must not be opened: closing it would release the locks that this process has on it.
    let inode = std::fs::metadata(record.with_file_name(name)).ok()?.ino();
    let locks = std::fs::read_to_string("/proc/locks").ok()?;
    locks.lines().find_map(|line| holder_in(line, inode))
}

/// Returns the process that holds the lock for writing: on this system, that is not known.
#[cfg(not(target_os = "linux"))]
pub(crate) fn lock_holder(_record: &Path) -> Option<u32> {
    None
}

/// Reads a line such as `1: POSIX  ADVISORY  WRITE 4711 fd:01:12345 120 120`. A process of another container has the number 0.
#[cfg(target_os = "linux")]
fn holder_in(line: &str, inode: u64) -> Option<u32> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let [_, "POSIX", _, "WRITE", process, file, first, last] = words.as_slice() else { return None };
    let is_same = file.rsplit(':').next()?.parse() == Ok(inode);
    let range = first.parse().ok()?..=last.parse().unwrap_or(u64::MAX);
    let process: u32 = process.parse().ok()?;
    (is_same && range.contains(&WRITE_LOCK) && process != 0).then_some(process)
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn the_holder_is_read_from_the_list_of_locks() {
        let holder = |line| holder_in(line, 12345);
        assert_eq!(holder("1: POSIX  ADVISORY  WRITE 4711 fd:01:12345 120 120"), Some(4711));
        assert_eq!(holder("1: POSIX  ADVISORY  WRITE 4711 fd:01:12345 100 EOF"), Some(4711));
        for other in [
            "1: POSIX  ADVISORY  READ  4711 fd:01:12345 120 120",
            "1: POSIX  ADVISORY  WRITE 4711 fd:01:12345 121 121",
            "1: POSIX  ADVISORY  WRITE 4711 fd:01:99999 120 120",
            "1: FLOCK  ADVISORY  WRITE 4711 fd:01:12345 120 120",
            "1: -> POSIX  ADVISORY  WRITE 4711 fd:01:12345 120 120",
            "1: POSIX  ADVISORY  WRITE 0 fd:01:12345 120 120",
            "",
        ] {
            assert_eq!(holder(other), None, "{other}");
        }
    }
}
