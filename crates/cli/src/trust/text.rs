//! The powers of a project as a person reads them: fixed sentences, paths and names, escaped.

use std::fmt::Write;
use std::path::Path;

use llm_do::project::LoadedProject;
use llm_do_trust::{Changes, DeclaredPower, Power, Powers, TrustEntry};

use crate::text::visible_line;

/// Returns the first digits of the digest of powers.
pub(crate) fn shown_digest(powers: &Powers) -> String {
    powers.digest().chars().take(12).collect()
}

/// Returns the powers of a project, one by one with their locations; the severest class first.
pub(crate) fn list(project: &LoadedProject) -> String {
    let unnamed = project.unnamed_providers();
    let entries = project.powers.iter().map(|declared| entry("", declared, &unnamed));
    entries.collect::<Vec<_>>().join("\n")
}

/// Returns one power with its locations, after a word about it.
fn entry(before: &str, declared: &DeclaredPower, unnamed_providers: &[&str]) -> String {
    let condition = if is_conditional(declared, unnamed_providers) { UNNAMED } else { "" };
    let mut text = format!("  {before}{:<8}{}{condition}", declared.class, declared.power);
    for location in &declared.locations {
        let _ = write!(text, "\n  {:width$}{:8}{location}", "", "", width = before.chars().count());
    }
    text
}

/// What is said of an address that nothing is sent to unless somebody asks for it.
const UNNAMED: &str = ", if a model of this provider is chosen; no agent names one";

/// Returns whether a power needs a model that no agent names.
fn is_conditional(declared: &DeclaredPower, unnamed_providers: &[&str]) -> bool {
    let is_unnamed = |key: &str| {
        key.strip_prefix("providers.").is_some_and(|provider| unnamed_providers.contains(&provider))
    };
    matches!(declared.power, Power::Provider { .. } | Power::KeyTo { .. })
        && declared.locations.iter().all(|location| is_unnamed(&location.key))
}

/// Returns what is new, changed and as before.
pub(super) fn changes(changes: &Changes, project: &LoadedProject) -> String {
    let unnamed = project.unnamed_providers();
    let new = changes.new.iter().map(|new| entry("new      ", new, &unnamed));
    let changed = changes
        .changed
        .iter()
        .map(|(was, now)| format!("{}\n  was      {was}", entry("changed  ", now, &unnamed)));
    let mut lines: Vec<String> = new.chain(changed).collect();
    if changes.kept > 0 {
        let noun = if changes.kept == 1 { "power" } else { "powers" };
        lines.push(format!("  ({} other {noun} as before)", changes.kept));
    }
    lines.join("\n")
}

/// Returns the day on which somebody agreed.
pub(crate) fn date(entry: &TrustEntry) -> String {
    entry.agreed.to_string().split('T').next().unwrap_or_default().to_owned()
}

/// Returns the directory of a project as a person would write it.
pub(crate) fn shown_root(root: &Path) -> String {
    let shown = root.display().to_string();
    visible_line(if shown.is_empty() { "." } else { &shown })
}
