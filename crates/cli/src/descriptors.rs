//! The descriptors that this process was started with: none of them is handed on to programs that it starts.

use std::os::fd::{BorrowedFd, RawFd};

use rustix::io::{FdFlags, fcntl_getfd, fcntl_setfd};

/// Keeps every descriptor above stderr from the programs that are started later. Whatever the calling program left
/// open, such as the channel of `--approvals-from`, is for this process alone. Called before anything else is open.
pub(crate) fn keep_to_itself() {
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
        // There is nothing to be done about a descriptor that refuses it.
        let _ = fcntl_setfd(descriptor, flags | FdFlags::CLOEXEC);
    }
}
