//! Loading a project of files under a policy about its powers.

use std::fmt;
use std::path::Path;

use llm_do_project::{
    Catalog, Diagnostics, LoadedProject, load_agreed, load_changed, load_restricted, load_static,
};
use llm_do_trust::Powers;

/// What an embedding program lets a project of files do without a question.
///
/// A project can run code, send keys to addresses of its own, loosen approvals and reach beyond its directory. These
/// are its [`Powers`]; see the guide on security.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub enum TrustPolicy {
    /// A project with powers is refused with [`LoadError::Untrusted`], and nothing of it runs.
    #[default]
    Refuse,
    /// A project may have these powers and no others.
    Only(Powers),
    /// A project may have any power: the program's own files, or files that it checked itself.
    All,
    /// A project is loaded without its powers: its code is not run, and what loosens or sends is left out.
    Without,
}

/// Why a project could not be loaded.
#[non_exhaustive]
pub enum LoadError {
    /// The files are wrong.
    Invalid(Diagnostics),
    /// The project has powers that the policy does not allow.
    Untrusted(Powers),
}

impl From<Diagnostics> for LoadError {
    fn from(diagnostics: Diagnostics) -> Self {
        Self::Invalid(diagnostics)
    }
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Invalid(diagnostics) => diagnostics.fmt(f),
            Self::Untrusted(powers) => {
                writeln!(f, "error: the project has powers that nobody agreed to")?;
                for declared in powers.iter() {
                    writeln!(f, "  {:<8}{}", declared.class, declared.power)?;
                }
                write!(
                    f,
                    "hint: agree to them with `.trust(TrustPolicy::Only(powers))`, or load it without them"
                )
            }
        }
    }
}

// An error that leaves `main` is printed by this, so it is the text for people.
impl fmt::Debug for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl std::error::Error for LoadError {}

/// Loads a project under a policy. It is read without running anything first, unless everything is allowed.
pub(crate) fn load(
    path: &Path,
    changes: &[String],
    policy: &TrustPolicy,
    catalog: &dyn Catalog,
) -> Result<LoadedProject, LoadError> {
    let agreed = match policy {
        TrustPolicy::All => return Ok(load_changed(path, changes, catalog)?),
        TrustPolicy::Without => return Ok(load_restricted(path, changes, catalog)?),
        TrustPolicy::Refuse => Powers::default(),
        TrustPolicy::Only(powers) => powers.clone(),
    };
    let seen = load_static(path, changes, catalog)?;
    if !seen.powers.beyond(&agreed.to_vec()).is_empty() {
        return Err(LoadError::Untrusted(seen.powers));
    }
    match seen.has_code() {
        // Files that change in the meantime must not gain a power.
        true => Ok(load_agreed(path, changes, Some(&seen.powers), catalog)?),
        false => Ok(seen),
    }
}
