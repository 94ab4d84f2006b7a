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
    /// Endings of names that are refused, also where they are allowed.
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
