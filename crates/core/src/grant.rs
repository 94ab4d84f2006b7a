//! Grants: approvals that are remembered.

use serde::{Deserialize, Serialize};

use crate::{Digest, Name, Scope};

/// An approval remembered for the session.
///
/// It holds for one agent, one tool and one definition of that tool; a changed definition needs a new one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grant {
    /// What it is bound to.
    pub subject: GrantSubject,
    /// How much it covers.
    pub scope: Scope,
    /// The arguments, where it covers exactly one call.
    pub arguments: Option<Digest>,
}

/// What a grant is bound to: nothing fuzzy.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct GrantSubject {
    /// The agent in whose name the call is made.
    pub agent: Name,
    /// The toolset, where the tool has one.
    pub toolset: Option<Name>,
    /// The tool or agent that is called.
    pub name: Name,
    /// The digest of its definition.
    pub definition: Digest,
}
