//! Whether there is a Python for the tests that need one.

use std::process::Command;

/// Returns from a test where there is no Python.
macro_rules! needs_python {
    () => {
        if !crate::needs_python::has_python() {
            eprintln!("skipped: there is no python3");
            return;
        }
    };
}
pub(crate) use needs_python;

pub fn has_python() -> bool {
    let version =
        Command::new("python3").args(["-c", "import sys; sys.exit(sys.version_info < (3, 10))"]).status();
    version.is_ok_and(|status| status.success())
}
