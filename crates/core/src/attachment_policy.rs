//! Which files an agent takes.

use serde::Serialize;

/// Which files an agent takes: with its input, and with each result that its calls give.
///
/// It holds for everybody who attaches something, also for a person.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct AttachmentPolicy {
    /// How many at once.
    pub max_attachments: u32,
    /// How many bytes all of them have together.
    pub max_total_bytes: u64,
    /// Endings of names, such as `.png`; empty: all. Upper and lower case are the same.
    pub allowed_suffixes: Vec<String>,
    /// Suffixes of file names that are refused, even if they are allowed.
    pub denied_suffixes: Vec<String>,
}

impl Default for AttachmentPolicy {
    fn default() -> Self {
        Self {
            max_attachments: 4,
            max_total_bytes: 10_000_000,
            allowed_suffixes: Vec::new(),
            denied_suffixes: Vec::new(),
        }
    }
}

impl AttachmentPolicy {
    /// Returns what this policy takes of what another one takes.
    #[must_use]
    pub fn within(&self, other: &Self) -> Self {
        let allowed = match (self.allowed_suffixes.is_empty(), other.allowed_suffixes.is_empty()) {
            (true, _) => other.allowed_suffixes.clone(),
            (false, true) => self.allowed_suffixes.clone(),
            (false, false) => {
                let both = self.allowed_suffixes.iter().filter(|suffix| other.name_problem(suffix).is_none());
                both.cloned().collect()
            }
        };
        let more = other.denied_suffixes.iter().filter(|suffix| !self.denied_suffixes.contains(suffix));
        let is_empty = allowed.is_empty() && !other.allowed_suffixes.is_empty();
        Self {
            // No ending is left, so no file is.
            max_attachments: if is_empty { 0 } else { self.max_attachments.min(other.max_attachments) },
            max_total_bytes: self.max_total_bytes.min(other.max_total_bytes),
            allowed_suffixes: allowed,
            denied_suffixes: self.denied_suffixes.iter().chain(more).cloned().collect(),
        }
    }

    /// Says what is wrong with the name of a file; nothing where it is taken.
    pub fn name_problem(&self, name: &str) -> Option<String> {
        let name = name.to_lowercase();
        let ends = |suffix: &&String| name.ends_with(&suffix.to_lowercase());
        if let Some(denied) = self.denied_suffixes.iter().find(ends) {
            return Some(format!("names that end with `{denied}` are denied"));
        }
        let allowed = &self.allowed_suffixes;
        (!allowed.is_empty() && !allowed.iter().any(|suffix| ends(&suffix)))
            .then(|| format!("its name does not end with `{}`", allowed.join("` or `")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_two_policies_only_what_both_take_is_left() {
        let list = |suffixes: &[&str]| suffixes.iter().map(|suffix| (*suffix).to_owned()).collect::<Vec<_>>();
        let one = AttachmentPolicy {
            max_attachments: 9,
            allowed_suffixes: list(&[".png", ".x.txt", ".pdf"]),
            denied_suffixes: list(&[".a"]),
            ..AttachmentPolicy::default()
        };
        let other = AttachmentPolicy {
            max_total_bytes: 5,
            allowed_suffixes: list(&[".txt", ".png"]),
            denied_suffixes: list(&[".b"]),
            ..AttachmentPolicy::default()
        };
        let both = one.within(&other);
        assert_eq!((both.max_attachments, both.max_total_bytes), (4, 5));
        assert_eq!(
            (both.allowed_suffixes, both.denied_suffixes),
            (list(&[".png", ".x.txt"]), list(&[".a", ".b"]))
        );
        assert_eq!(AttachmentPolicy::default().within(&other), other);
        let nothing = AttachmentPolicy { allowed_suffixes: list(&[".pdf"]), ..one }.within(&other);
        assert_eq!(nothing.max_attachments, 0);
    }

    #[test]
    fn a_name_is_judged_by_its_end_in_any_case() {
        let policy = AttachmentPolicy {
            allowed_suffixes: vec![".png".into(), ".tar.gz".into()],
            denied_suffixes: vec![".Secret.png".into()],
            ..AttachmentPolicy::default()
        };
        let takes = |name: &str| policy.name_problem(name).is_none();
        assert!(takes("a.png") && takes("A.PNG") && takes("b.tar.gz"));
        assert!(!takes("a.png.exe") && !takes("a.gz") && !takes("png") && !takes("a.secret.PNG"));
        assert!(AttachmentPolicy::default().name_problem("anything").is_none());
    }
}
