//! One agreement: a directory, the powers that a person agreed to, and when.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::identity::DirectoryIdentity;
use crate::power::{Power, digest_of};

/// How a person agreed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TrustSource {
    /// By answering the question before a run.
    Question,
    /// By `llm-do trust`.
    Command,
    /// By having `llm-do init` write the project.
    Init,
}

/// What a person agreed to for one directory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrustEntry {
    /// The canonical path.
    #[serde(flatten)]
    pub(crate) path: StoredPath,
    /// The inode of the directory: one that was replaced is another directory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) inode: Option<u64>,
    /// When the directory was made, if the file system knows it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) born: Option<Timestamp>,
    /// The owner of the files, if a person accepted one who is neither the user nor root.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<u32>,
    /// Whether the directory is the person's own work: commands that only look may run its code.
    #[serde(default)]
    pub own: bool,
    /// Whether everything below the directory is trusted.
    #[serde(default)]
    pub below: bool,
    /// When the person agreed.
    pub agreed: Timestamp,
    /// How the person agreed.
    pub by: TrustSource,
    /// The version of llm-do that wrote the entry.
    pub llm_do: String,
    /// The digest of the powers.
    pub digest: String,
    /// The powers.
    pub powers: Vec<Power>,
    /// The code that the last run imported, with its digests.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub code: BTreeMap<String, String>,
}

impl TrustEntry {
    /// An agreement of now.
    pub fn new(identity: &DirectoryIdentity, powers: Vec<Power>, by: TrustSource) -> Self {
        Self {
            path: StoredPath::from(identity.path.as_path()),
            inode: identity.inode,
            born: identity.born,
            owner: None,
            own: false,
            below: false,
            agreed: Timestamp::now(),
            by,
            llm_do: env!("CARGO_PKG_VERSION").to_owned(),
            digest: digest_of(&powers),
            powers,
            code: BTreeMap::new(),
        }
    }

    /// Returns the directory.
    pub fn path(&self) -> PathBuf {
        self.path.to_path()
    }

    /// Returns whether the entry is about this directory, and not about one that was there earlier.
    pub(crate) fn is_about(&self, identity: &DirectoryIdentity) -> bool {
        // What either side does not know does not count against the directory.
        let agrees = |one: Option<u64>, other: Option<u64>| one.is_none() || other.is_none() || one == other;
        let born = self.born.is_none() || identity.born.is_none() || self.born == identity.born;
        self.path() == identity.path && agrees(self.inode, identity.inode) && born
    }
}

/// A path as it is stored: as text, or as base64 if it is not UTF-8.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum StoredPath {
    #[serde(rename = "path")]
    Text(String),
    #[serde(rename = "path_bytes")]
    Bytes(String),
}

impl From<&Path> for StoredPath {
    fn from(path: &Path) -> Self {
        match path.to_str() {
            Some(text) => Self::Text(text.to_owned()),
            None => Self::Bytes(STANDARD.encode(path.as_os_str().as_encoded_bytes())),
        }
    }
}

impl StoredPath {
    fn to_path(&self) -> PathBuf {
        match self {
            Self::Text(text) => PathBuf::from(text),
            Self::Bytes(encoded) => PathBuf::from(decoded(encoded)),
        }
    }
}

#[cfg(unix)]
fn decoded(encoded: &str) -> OsString {
    use std::os::unix::ffi::OsStringExt;
    OsString::from_vec(STANDARD.decode(encoded).unwrap_or_default())
}

#[cfg(not(unix))]
fn decoded(_: &str) -> OsString {
    OsString::new()
}
