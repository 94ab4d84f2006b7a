//! The powers of a project as a person reads them: fixed sentences, paths and names, escaped.

use std::fmt::Write;
use std::path::Path;

use llm_do::trust::{DeclaredPower, Powers};

use crate::text::visible_line;

/// Returns the first digits of the digest of powers.
pub(crate) fn shown_digest(powers: &Powers) -> String {
    powers.digest().chars().take(12).collect()
}

/// Returns the powers, one by one with their locations; the severest class first.
pub(crate) fn list(powers: &Powers) -> String {
    powers.iter().map(|declared| entry("", declared)).collect::<Vec<_>>().join("\n")
}

/// Returns one power with its locations, after a word about it.
pub(super) fn entry(before: &str, declared: &DeclaredPower) -> String {
    let mut text = format!("  {before}{:<8}{}", declared.class, declared.power);
    for location in &declared.locations {
        let _ = write!(text, "\n  {:width$}{:8}{location}", "", "", width = before.chars().count());
    }
    text
}

/// Returns the directory of a project as a person would write it.
pub(super) fn shown_root(root: &Path) -> String {
    let shown = root.display().to_string();
    visible_line(if shown.is_empty() { "." } else { &shown })
}
