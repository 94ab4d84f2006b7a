//! The walls of Linux, as one: files by Landlock, system calls by seccomp.

use std::io;

use landlock::RulesetCreated;
use rustix::thread::CapabilitySet;

use super::Sandbox;
use super::calls::Filter;
use super::status::SandboxStatus;
use super::{files, rights};

/// What a thread enters before it starts a process.
#[derive(Debug)]
pub(super) struct Walls {
    /// Nothing where Landlock is missing, or has nothing to forbid.
    files: Option<RulesetCreated>,
    /// Nothing where seccomp is missing.
    calls: Option<Filter>,
    kept: CapabilitySet,
}

impl Walls {
    /// Prepares as much as the kernel has.
    pub(super) fn new(sandbox: &Sandbox, status: &SandboxStatus) -> io::Result<Self> {
        if !status.is_partly_active() {
            return Err(io::Error::new(io::ErrorKind::Unsupported, status.missing.join("; ")));
        }
        let level = status.landlock_level.unwrap_or_default();
        let files = if level > 0 { files::ruleset(sandbox, level)? } else { None };
        let calls = if status.filters_calls { Some(Filter::new(sandbox, level)?) } else { None };
        Ok(Self { files, calls, kept: rights::kept(sandbox) })
    }

    /// Binds the calling thread, and all that it starts, for ever.
    pub(super) fn enter(&self) -> io::Result<()> {
        rights::keep_only(self.kept)?;
        if let Some(ruleset) = &self.files {
            files::restrict(ruleset.try_clone()?)?;
        }
        self.calls.as_ref().map_or(Ok(()), Filter::install)
    }
}
