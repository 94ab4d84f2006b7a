//! Applies a sandbox on Linux: files by Landlock, system calls by seccomp, privileges by capabilities.

use std::io;

use landlock::RulesetCreated;
use rustix::thread::CapabilitySet;

use super::Sandbox;
use super::seccomp_filter::Filter;
use super::status::SandboxStatus;
use super::{capabilities, landlock_rules};

/// What restricts a thread before it starts a process.
#[derive(Debug)]
pub(super) struct Enforcement {
    /// `None` if Landlock is missing, or if nothing about files is forbidden.
    ruleset: Option<RulesetCreated>,
    /// `None` if seccomp is missing.
    filter: Option<Filter>,
    kept_capabilities: CapabilitySet,
}

impl Enforcement {
    /// Prepares as much as the kernel supports.
    pub(super) fn new(sandbox: &Sandbox, status: &SandboxStatus) -> io::Result<Self> {
        if !status.is_partly_active() {
            return Err(io::Error::new(io::ErrorKind::Unsupported, status.missing.join("; ")));
        }
        let level = status.landlock_level.unwrap_or_default();
        let ruleset = if level > 0 { landlock_rules::ruleset(sandbox, level)? } else { None };
        let filter = if status.filters_calls { Some(Filter::new(sandbox, level)?) } else { None };
        Ok(Self { ruleset, filter, kept_capabilities: capabilities::kept(sandbox) })
    }

    /// Restricts the calling thread and everything that it starts. It cannot be undone.
    pub(super) fn restrict_thread(&self) -> io::Result<()> {
        capabilities::keep_only(self.kept_capabilities)?;
        if let Some(ruleset) = &self.ruleset {
            landlock_rules::restrict(ruleset.try_clone()?)?;
        }
        self.filter.as_ref().map_or(Ok(()), Filter::install)
    }
}
