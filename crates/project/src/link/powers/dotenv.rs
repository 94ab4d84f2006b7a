//! The names that a project's `.env` sets. Values are not looked at.

use std::fs;
use std::path::Path;

/// No larger file is read.
const MAX_BYTES: u64 = 1024 * 1024;

/// Returns the names of the variables, with their lines. A link, a pipe or a file that is too large has none: such a
/// file is not read later either.
pub(super) fn names(root: &Path) -> Vec<(String, usize)> {
    let path = root.join(".env");
    let is_plain = fs::symlink_metadata(&path).is_ok_and(|found| found.is_file() && found.len() <= MAX_BYTES);
    let text = if is_plain { fs::read(&path).unwrap_or_default() } else { Vec::new() };
    let text = String::from_utf8_lossy(&text);
    let name = |line: &str| {
        let line = line.trim_start_matches('\u{feff}').trim_start();
        let (name, _) = line.strip_prefix("export ").unwrap_or(line).split_once('=')?;
        let name = name.trim();
        let is_name = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        is_name.then(|| name.to_owned())
    };
    text.lines().zip(1..).filter_map(|(line, number)| Some((name(line)?, number))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_and_values_are_not_kept() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join(".env");
        fs::write(&file, "# A=1\nOPENAI_API_KEY=sk\n export B = '2'\nno line\n").unwrap();
        assert_eq!(names(folder.path()), [("OPENAI_API_KEY".to_owned(), 2), ("B".to_owned(), 3)]);
        fs::remove_file(file).unwrap();
        assert_eq!(names(folder.path()), []);
    }
}
