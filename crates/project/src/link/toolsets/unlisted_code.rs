//! Finds the Python file that defines a tool although the project does not list it.
//!
//! Files are read as text and nothing is run, so this finds functions and no names that code makes up.

use std::path::{Path, PathBuf};

/// The most files that are looked at.
const MAX_FILES: usize = 64;

/// A file that is larger is not looked at.
const MAX_BYTES: u64 = 1024 * 1024;

/// Returns the name of the Python file in a directory that defines a function, unless it is one of those listed.
pub(super) fn defining_file(root: &Path, listed: &[PathBuf], function: &str) -> Option<String> {
    let entries = std::fs::read_dir(root).ok()?.flatten().map(|entry| entry.path());
    let mut files: Vec<PathBuf> = entries.filter(|path| is_small_python(path)).take(MAX_FILES).collect();
    files.sort();
    files.retain(|path| !listed.contains(path));
    let file = files.into_iter().find(|path| {
        std::fs::read_to_string(path).is_ok_and(|text| text.lines().any(|line| defines(line, function)))
    });
    Some(file?.file_name()?.to_str()?.to_owned())
}

/// Returns the name of the listed Python file that defines a function, which is a tool only if `TOOLS` lists it.
pub(super) fn listed_file(root: &Path, listed: &[PathBuf], function: &str) -> Option<String> {
    let mut files = listed.iter().filter(|path| is_small_python(path)).take(MAX_FILES);
    let file = files.find(|path| {
        std::fs::read_to_string(path).is_ok_and(|text| text.lines().any(|line| defines(line, function)))
    })?;
    Some(file.strip_prefix(root).unwrap_or(file).to_str()?.to_owned())
}

fn is_small_python(path: &Path) -> bool {
    let is_python = path.extension().is_some_and(|extension| extension == "py");
    is_python && path.metadata().is_ok_and(|metadata| metadata.is_file() && metadata.len() <= MAX_BYTES)
}

/// Returns whether a line begins the definition of a function at the top of a file.
fn defines(line: &str, function: &str) -> bool {
    let line = line.strip_prefix("async ").unwrap_or(line);
    let Some(rest) = line.strip_prefix("def ").and_then(|rest| rest.trim_start().strip_prefix(function))
    else {
        return false;
    };
    rest.trim_start().starts_with(['(', '['])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_found_by_their_definition() {
        for line in
            ["def count(text):", "async def count(text: str) -> int:", "def  count (", "def count[T](x: T):"]
        {
            assert!(defines(line, "count"), "{line}");
        }
        for line in
            ["def count_words(text):", "    def count(self):", "# def count(", "count(text)", "class count("]
        {
            assert!(!defines(line, "count"), "{line}");
        }
    }
}
