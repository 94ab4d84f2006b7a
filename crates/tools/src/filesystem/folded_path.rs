//! Paths as file systems compare them that take several names for one.

use std::path::{Component, Path, PathBuf};

/// Folds names that some file systems take for the same, and removes `.` and what `..` undoes.
pub(super) fn folded(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => {
                plain.pop();
            }
            Component::CurDir => {}
            Component::Normal(name) => plain.push(folded_name(&name.to_string_lossy())),
            other => plain.push(other.as_os_str()),
        }
    }
    plain
}

/// Folds case, leaves out characters that HFS+ does not look at, and dots and blanks at the end as Windows does.
fn folded_name(name: &str) -> String {
    let is_seen = |c: &char| !matches!(c, '\u{200c}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{206a}'..='\u{206f}' | '\u{feff}');
    let seen: String = name.chars().filter(is_seen).flat_map(char::to_lowercase).collect();
    match seen.trim_end_matches(['.', ' ']) {
        "" => seen,
        trimmed => trimmed.to_owned(),
    }
}
