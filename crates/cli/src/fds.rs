//! Closes inherited file descriptors in programs that this process starts.

use std::os::fd::{BorrowedFd, RawFd};

use rustix::io::{FdFlags, fcntl_getfd, fcntl_setfd};

/// Sets close-on-exec on every open descriptor above stderr: what the calling program left open, such as the channel of
/// `--approvals-from`, is for this process alone. Called before anything else is open.
pub(crate) fn set_cloexec_on_inherited() {
    let entries = std::fs::read_dir("/proc/self/fd").or_else(|_| std::fs::read_dir("/dev/fd"));
    let numbers = entries.into_iter().flatten().flatten().filter_map(|entry| {
        let name = entry.file_name();
        name.to_str()?.parse::<RawFd>().ok()
    });
    let inherited: Vec<RawFd> = numbers.filter(|number| *number > 2).collect();
    inherited.into_iter().for_each(close_on_exec);
}

#[expect(unsafe_code, reason = "a descriptor by its number has no owner in this process")]
fn close_on_exec(number: RawFd) {
    // SAFETY: the descriptor is borrowed for this call only; one that is not open gives an error and nothing else.
    let descriptor = unsafe { BorrowedFd::borrow_raw(number) };
    if let Ok(flags) = fcntl_getfd(descriptor) {
        // A descriptor that refuses it cannot be helped.
        let _ = fcntl_setfd(descriptor, flags | FdFlags::CLOEXEC);
    }
}
