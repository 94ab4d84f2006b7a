//! Systems without a sandbox: preparing one is an error.

use std::io;

use super::{Sandbox, SandboxStatus};

/// Never made, because [`Enforcement::new`] always fails here.
#[derive(Debug)]
pub(super) struct Enforcement;

impl Enforcement {
    pub(super) fn new(_sandbox: &Sandbox, status: &SandboxStatus) -> io::Result<Self> {
        Err(io::Error::new(io::ErrorKind::Unsupported, status.missing.join("; ")))
    }

    pub(super) fn restrict_thread(&self) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
}
