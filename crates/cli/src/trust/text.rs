//! The powers of a project as a person reads them: fixed sentences, paths and names, escaped.

use std::fmt::Write;
use std::path::Path;

use llm_do_trust::TrustEntry;
use llm_do_trust::{Changes, DeclaredPower, Powers};

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

/// Returns what is new, changed and as before.
pub(super) fn changes(changes: &Changes) -> String {
    let new = changes.new.iter().map(|new| entry("new      ", new));
    let changed =
        changes.changed.iter().map(|(was, now)| format!("{}\n  was      {was}", entry("changed  ", now)));
    let mut lines: Vec<String> = new.chain(changed).collect();
    if changes.kept > 0 {
        let noun = if changes.kept == 1 { "power" } else { "powers" };
        lines.push(format!("  ({} other {noun} as before)", changes.kept));
    }
    lines.join("\n")
}

/// Returns the day on which somebody agreed.
pub(super) fn date(entry: &TrustEntry) -> String {
    entry.agreed.to_string().split('T').next().unwrap_or_default().to_owned()
}

/// Returns the directory of a project as a person would write it.
pub(super) fn shown_root(root: &Path) -> String {
    let shown = root.display().to_string();
    visible_line(if shown.is_empty() { "." } else { &shown })
}
