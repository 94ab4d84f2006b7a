//! Content digests: what was shown, granted, recorded and run is compared by them.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A BLAKE3 digest of some bytes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Digest([u8; 32]);

impl Digest {
    /// Digests bytes.
    pub fn hash(bytes: impl AsRef<[u8]>) -> Self {
        Self(*blake3::hash(bytes.as_ref()).as_bytes())
    }

    /// Digests a list of parts so that no two different lists collide: each part is preceded by its length.
    pub fn hash_parts<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> Self {
        let mut hasher = blake3::Hasher::new();
        for part in parts {
            hasher.update(&(part.len() as u64).to_le_bytes());
            hasher.update(part);
        }
        Self(*hasher.finalize().as_bytes())
    }

    /// Begins a digest of several values.
    pub(crate) fn builder() -> DigestBuilder {
        DigestBuilder(blake3::Hasher::new())
    }

    /// Digests this digest followed by another: one step of a running digest.
    pub fn then(&self, next: &Digest) -> Self {
        let mut both = [0; 64];
        both[..32].copy_from_slice(&self.0);
        both[32..].copy_from_slice(&next.0);
        Self::hash(both)
    }

    /// Returns the bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Returns the first 12 hexadecimal digits, for keys and for people.
    pub fn short(&self) -> String {
        self.prefix(12)
    }

    /// Returns the first hexadecimal digits, at most 64.
    pub fn prefix(&self, digits: usize) -> String {
        let mut text = self.to_string();
        text.truncate(digits);
        text
    }
}

/// Digests values in one pass. No two different sequences of the same calls have the same digest: each text is preceded
/// by its length.
pub(crate) struct DigestBuilder(blake3::Hasher);

impl DigestBuilder {
    pub(crate) fn digest(&mut self, digest: &Digest) {
        self.0.update(&digest.0);
    }

    pub(crate) fn number(&mut self, number: usize) {
        self.0.update(&(number as u64).to_le_bytes());
    }

    pub(crate) fn bytes(&mut self, bytes: impl AsRef<[u8]>) {
        let bytes = bytes.as_ref();
        self.number(bytes.len());
        self.0.update(bytes);
    }

    pub(crate) fn finish(self) -> Digest {
        Digest(*self.0.finalize().as_bytes())
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&blake3::Hash::from_bytes(self.0).to_hex())
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.short())
    }
}

impl FromStr for Digest {
    type Err = blake3::HexError;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        blake3::Hash::from_hex(text).map(|hash| Self(*hash.as_bytes()))
    }
}

impl Serialize for Digest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Digest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}
