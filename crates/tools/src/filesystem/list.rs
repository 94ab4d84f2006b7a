//! `list_files`: the names below a directory that match a glob.

use std::ops::ControlFlow;
use std::path::{Component, Path};

use globset::{GlobBuilder, GlobMatcher};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::error::FileError;
use super::resolved_path::{LastLink, PathKind};
use super::root::Root;
use super::walk::{Patience, WalkEntry, walk};
use crate::pattern::check_length;

/// What the model reads about the tool.
pub(crate) const DESCRIPTION: &str = "Lists files and directories whose path matches a glob, in order of their names. \
    Directories end with `/`. `*` stays in one directory, `**/` looks in all of them: `*`, `src/*.rs`, `**/*.md`. \
    What `.gitignore` leaves out is left out, and links to directories are not entered.";

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Arguments {
    /// The glob, relative to `path`.
    #[serde(default = "everything")]
    pattern: String,
    /// The directory to look in, relative to the root.
    #[serde(default = "here")]
    path: String,
    /// How many entries to return at most.
    #[serde(default = "default_limit")]
    limit: usize,
}

fn everything() -> String {
    "**/*".to_owned()
}

pub(crate) fn here() -> String {
    ".".to_owned()
}

fn default_limit() -> usize {
    200
}

/// What was found.
#[derive(Debug, Default, Serialize)]
pub(crate) struct DirectoryListing {
    files: Vec<String>,
    truncated: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<String>,
}

/// Finds out whether there is anything to list.
pub(crate) fn look(root: &Root, arguments: &Arguments) -> Result<(), FileError> {
    compile(&arguments.pattern)?;
    root.find(&arguments.path, LastLink::Follow)?.check_exists()
}

/// Lists what matches.
pub(crate) fn run(
    root: &Root,
    arguments: &Arguments,
    patience: &Patience,
) -> Result<DirectoryListing, FileError> {
    let matcher = compile(&arguments.pattern)?;
    let resolved = root.find(&arguments.path, LastLink::Follow)?;
    let start = resolved.path();
    let limit = arguments.limit.min(root.root_config.settings.max_list);
    let mut listing = DirectoryListing::default();
    let left_out = walk(&resolved, depth(&arguments.pattern), patience, &mut |entry| {
        if root.root_config.is_private(entry.path) {
            return ControlFlow::Continue(());
        }
        let matches = entry.path.strip_prefix(&start).is_ok_and(|path| matcher.is_match(path));
        let Some(name) = matches.then(|| shown(root, &entry)).flatten() else {
            return ControlFlow::Continue(());
        };
        if listing.files.len() == limit {
            listing.truncated = true;
            return ControlFlow::Break(());
        }
        listing.files.push(name);
        ControlFlow::Continue(())
    })?;
    listing.truncated |= left_out.late;
    listing.note = left_out.note().or_else(|| listing.note(limit));
    Ok(listing)
}

impl DirectoryListing {
    fn note(&self, limit: usize) -> Option<String> {
        match (self.truncated, self.files.is_empty()) {
            (true, _) => Some(format!("only the first {limit} are listed; narrow `pattern` or `path`")),
            (false, true) => Some("nothing matches; `**/` in a pattern looks in all directories".to_owned()),
            (false, false) => None,
        }
    }
}

/// Writes an entry as the model uses it. Special files and links that lead nowhere inside are of no use.
fn shown(root: &Root, entry: &WalkEntry<'_>) -> Option<String> {
    let path = entry.path.to_string_lossy();
    let kind = match entry.kind {
        PathKind::Link => root.find(&path, LastLink::Follow).ok()?.kind(),
        kind => kind,
    };
    match kind {
        PathKind::Directory => Some(format!("{path}/")),
        PathKind::File if root.root_config.settings.allows(&entry.name.to_string_lossy()) => {
            Some(path.into_owned())
        }
        _ => None,
    }
}

/// Compiles a glob that stays below its directory.
pub(crate) fn compile(pattern: &str) -> Result<GlobMatcher, FileError> {
    check_length(pattern).map_err(FileError::Argument)?;
    let leaves = |part: Component<'_>| !matches!(part, Component::Normal(_) | Component::CurDir);
    if Path::new(pattern).components().any(leaves) {
        return Err(FileError::Outside { path: pattern.to_owned() });
    }
    let pattern = pattern.strip_prefix("./").unwrap_or(pattern);
    let glob = GlobBuilder::new(pattern).literal_separator(true).build();
    let problem = |error: globset::Error| FileError::Argument(format!("not a glob: {error}"));
    Ok(glob.map_err(problem)?.compile_matcher())
}

/// How many levels a glob can reach.
fn depth(pattern: &str) -> usize {
    if pattern.contains("**") { usize::MAX } else { pattern.matches('/').count() + 1 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stays_in_its_directory_and_two_stars_do_not() {
        let matches = |pattern, path: &str| compile(pattern).unwrap().is_match(path);
        assert!(matches("*.rs", "a.rs") && !matches("*.rs", "src/a.rs"));
        assert!(matches("**/*.rs", "a.rs") && matches("**/*.rs", "src/deep/a.rs"));
        assert!(matches("./src/*", "src/a.rs"));
    }

    #[test]
    fn a_glob_that_leaves_its_directory_is_refused() {
        for pattern in ["../*", "a/../../*", "/etc/*"] {
            assert!(matches!(compile(pattern), Err(FileError::Outside { .. })), "{pattern}");
        }
    }
}
