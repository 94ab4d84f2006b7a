//! The secrets that a process knows, as it learns of them.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use parking_lot::RwLock;

use crate::mask::SecretMask;

/// The secrets that a process knows by their value: keys in use, passwords of proxies.
///
/// Clones share them. More may be added at any time; a mask that was made before does not know those.
#[derive(Clone, Default)]
pub struct KnownSecrets(Arc<RwLock<KnownValues>>);

#[derive(Default)]
struct KnownValues {
    values: BTreeSet<String>,
    /// The mask of all values; missing until somebody asks for it.
    mask: Option<SecretMask>,
}

impl KnownSecrets {
    /// Adds secrets. Values that are too short to be secrets, and placeholders, are never masked.
    pub fn add(&self, secrets: impl IntoIterator<Item = String>) {
        let mut state = self.0.write();
        let known = state.values.len();
        state.values.extend(secrets);
        if state.values.len() > known {
            state.mask = None;
        }
    }

    /// Returns the mask of all secrets that are known now.
    pub fn mask(&self) -> SecretMask {
        if let Some(mask) = &self.0.read().mask {
            return mask.clone();
        }
        let mut state = self.0.write();
        let KnownValues { values, mask } = &mut *state;
        mask.get_or_insert_with(|| SecretMask::new(values.iter())).clone()
    }

    /// Returns the values.
    pub fn values(&self) -> Vec<String> {
        self.0.read().values.iter().cloned().collect()
    }
}

impl fmt::Debug for KnownSecrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("KnownSecrets(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_that_is_added_later_is_in_the_next_mask() {
        let known = KnownSecrets::default();
        assert_eq!(known.mask().text("sk-canary-0123456789"), "sk-canary-0123456789");
        known.clone().add(["sk-canary-0123456789".to_owned(), "none".to_owned()]);
        assert_eq!(known.mask().text("none sk-canary-0123456789"), "none [removed]");
        assert!(!format!("{known:?} {:?}", known.mask()).contains("canary"));
    }
}
