//! Confines files, devices and signals with Landlock.

use std::io;
use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access, AccessFs, BitFlags, CompatLevel, Compatible, LandlockStatus, PathBeneath, PathFd, Ruleset,
    RulesetAttr, RulesetCreated, RulesetCreatedAttr, RulesetStatus, Scope,
};

use super::{Reads, Sandbox, Writes};

/// The newest Landlock ABI that this module was tested with. A newer kernel enforces the same rights.
const NEWEST: u32 = 7;

/// Devices that any program may read.
const READABLE: [&str; 5] = ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"];

type Rights = BitFlags<AccessFs>;

/// Makes the rules for a sandbox, or `None` if nothing is forbidden.
pub(super) fn ruleset(sandbox: &Sandbox, level: u32) -> io::Result<Option<RulesetCreated>> {
    let level = abi(level);
    let (reading, writing) = handled(sandbox, level);
    let scopes = Scope::from_all(level);
    if (reading | writing).is_empty() && scopes.is_empty() {
        return Ok(None);
    }
    let mut ruleset = Ruleset::default().set_compatibility(CompatLevel::HardRequirement);
    if !(reading | writing).is_empty() {
        ruleset = ruleset.handle_access(reading | writing).map_err(io::Error::other)?;
    }
    if !scopes.is_empty() {
        ruleset = ruleset.scope(scopes).map_err(io::Error::other)?;
    }
    let mut rules = Rules { ruleset: ruleset.create().map_err(io::Error::other)?, level };
    if let Reads::Below(paths) = &sandbox.reads {
        rules = rules.allow_present(READABLE, reading)?.allow_present(paths, reading)?;
    }
    if let Writes::Below(paths) = &sandbox.writes {
        for path in paths {
            rules = rules.allow(path, writing)?;
        }
    }
    if sandbox.writes != Writes::Anywhere {
        rules = rules.allow_present(["/dev/null"], writing)?;
    }
    Ok(Some(rules.ruleset))
}

/// Restricts the calling thread to rules.
pub(super) fn restrict(ruleset: RulesetCreated) -> io::Result<()> {
    let status = ruleset.restrict_self().map_err(io::Error::other)?;
    match status.ruleset {
        RulesetStatus::FullyEnforced => Ok(()),
        other => Err(io::Error::other(format!("Landlock does not enforce all rules: {other:?}"))),
    }
}

/// Restricts the calling thread so that it can write nothing, and returns the Landlock ABI of the kernel.
pub(super) fn try_level() -> Result<u32, String> {
    let ruleset = Ruleset::default()
        .handle_access(AccessFs::from_write(ABI::V1))
        .and_then(Ruleset::create)
        .and_then(RulesetCreated::restrict_self);
    let status = ruleset.map_err(|error| error.to_string())?;
    match status.landlock {
        LandlockStatus::Available { .. }
            if std::fs::OpenOptions::new().write(true).open("/dev/null").is_ok() =>
        {
            Err("Landlock is present and has no effect".to_owned())
        }
        LandlockStatus::Available { effective_abi, kernel_abi } => {
            Ok(kernel_abi.and_then(|level| u32::try_from(level).ok()).unwrap_or(effective_abi as u32))
        }
        LandlockStatus::NotEnabled => Err("the kernel was started without Landlock".to_owned()),
        LandlockStatus::NotImplemented => Err("the kernel has no Landlock".to_owned()),
    }
}

fn abi(level: u32) -> ABI {
    ABI::from(i32::try_from(level.min(NEWEST)).unwrap_or_default())
}

/// Returns the rights to read and to write that must be granted explicitly.
fn handled(sandbox: &Sandbox, level: ABI) -> (Rights, Rights) {
    let reading = match sandbox.reads {
        Reads::Anywhere => Rights::empty(),
        Reads::Below(_) => AccessFs::from_read(level),
    };
    let writing = match sandbox.writes {
        Writes::Anywhere => Rights::empty(),
        Writes::Nowhere | Writes::Below(_) => AccessFs::from_write(level),
    };
    (reading, writing)
}

struct Rules {
    ruleset: RulesetCreated,
    level: ABI,
}

impl Rules {
    /// Grants rights on a file, or below a directory.
    fn allow(mut self, path: &Path, rights: Rights) -> io::Result<Self> {
        let opened = PathFd::new(path).map_err(|error| io::Error::other(error.to_string()))?;
        let is_directory = path.metadata().is_ok_and(|data| data.is_dir());
        let rights = if is_directory { rights } else { rights & AccessFs::from_file(self.level) };
        if !rights.is_empty() {
            let rule = PathBeneath::new(opened, rights);
            self.ruleset = self.ruleset.add_rule(rule).map_err(io::Error::other)?;
        }
        Ok(self)
    }

    /// Grants rights on those paths that exist and can be opened.
    fn allow_present<P: Into<PathBuf> + Clone>(
        self,
        paths: impl IntoIterator<Item = P>,
        rights: Rights,
    ) -> io::Result<Self> {
        let present = paths.into_iter().map(Into::into).filter(|path: &PathBuf| PathFd::new(path).is_ok());
        present.into_iter().try_fold(self, |rules, path| rules.allow(&path, rights))
    }
}
