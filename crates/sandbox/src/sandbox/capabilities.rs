//! Rights beyond those of an ordinary user: a program in a sandbox keeps few of them.
//!
//! Only the super-user, and who was given such rights, has any. They would lead around the walls: into other
//! processes, to devices, to files of others.

use std::io;

use rustix::thread::{CapabilitySet, CapabilitySets, capabilities, set_capabilities, set_no_new_privs};

use super::{Sandbox, Writes};

/// What a program keeps, where it has it. Files of others stay readable and writable for the super-user: in
/// containers the project often belongs to somebody else.
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

/// Gives up all other rights of the calling thread, for ever: no program that it starts gets them back.
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
