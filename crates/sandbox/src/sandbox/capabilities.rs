//! Drops Linux capabilities: a program in a sandbox keeps few of them.
//!
//! Only root, and users who were granted some, have any. They would allow a program to escape: into other processes, to
//! devices, to files of other users.

use std::io;

use rustix::thread::{CapabilitySet, CapabilitySets, capabilities, set_capabilities, set_no_new_privs};

use super::{Sandbox, Writes};

/// Returns the capabilities that a program keeps, if it has them. Files of other users stay readable and writable for
/// root: in containers the project often belongs to somebody else.
pub(super) fn kept(sandbox: &Sandbox) -> CapabilitySet {
    let always = CapabilitySet::DAC_OVERRIDE
        | CapabilitySet::DAC_READ_SEARCH
        | CapabilitySet::KILL
        | CapabilitySet::NET_BIND_SERVICE;
    let about_owners = CapabilitySet::CHOWN
        | CapabilitySet::FOWNER
        | CapabilitySet::FSETID
        | CapabilitySet::SETUID
        | CapabilitySet::SETGID;
    if sandbox.writes == Writes::Anywhere { always | about_owners } else { always }
}

/// Drops all other capabilities of the calling thread for good: no program that it starts gets them back.
pub(super) fn keep_only(kept: CapabilitySet) -> io::Result<()> {
    set_no_new_privs(true)?;
    let now = capabilities(None)?;
    let lesser = CapabilitySets {
        effective: now.effective & kept,
        permitted: now.permitted & kept,
        inheritable: now.inheritable & kept,
    };
    if lesser != now {
        set_capabilities(None, lesser)?;
    }
    Ok(())
}
