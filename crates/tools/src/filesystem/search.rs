//! `search_files`: the lines below a directory that match a regular expression.

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use globset::GlobMatcher;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::error::FileError;
use super::file_search::{End, FileSearch, Room, expression};
use super::list::{compile, here};
use super::openat2::OpenFile;
use super::resolved_path::{LastLink, PathKind, ResolvedPath};
use super::root::{Root, read_up_to};
use super::search_pool::{FileMatches, Foreman, Job, MAX_FILES, Results, SearchPool};
use super::secret::{self, ApprovedSecrets, FoundSecret};
use super::walk::{LeftOut, Patience, WalkEntry, walk};

/// What the model reads about the tool.
pub(crate) const DESCRIPTION: &str = "Searches text files for lines that match a regular expression (Rust syntax; \
    `(?i)` at its start ignores case). Returns the lines by file, as `12: text`; lines around them as `13- text`. \
    Files that are not text, secret files and what `.gitignore` leaves out are left out.";

/// How many bytes are shown in all.
const MAX_SHOWN: usize = 200 * 1024;
/// How many lines around a match are shown.
const MAX_CONTEXT: usize = 20;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Arguments {
    /// The regular expression.
    pattern: String,
    /// The directory or file to look in, relative to the root.
    #[serde(default = "here")]
    path: String,
    /// Looks only in files that match this glob; without a slash, by their name alone.
    #[serde(default)]
    glob: Option<String>,
    /// How many matching lines to return at most.
    #[serde(default = "default_limit")]
    limit: usize,
    /// How many lines to show before and after each match.
    #[serde(default)]
    context: usize,
}

fn default_limit() -> usize {
    100
}

/// What was found.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Findings {
    matches: usize,
    files: Vec<FileFindings>,
    truncated: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<String>,
}

/// The lines of one file.
#[derive(Debug, Serialize)]
struct FileFindings {
    path: String,
    lines: Vec<String>,
}

/// Finds out whether there is anything to search.
///
/// A secret file that is named is asked about; those below a directory are left out.
pub(crate) fn look(root: &Root, arguments: &Arguments) -> Result<Option<FoundSecret>, FileError> {
    arguments.glob.as_deref().map(NameGlob::new).transpose()?;
    expression(&arguments.pattern)?;
    let resolved = root.find(&arguments.path, LastLink::Follow)?;
    match resolved.kind() {
        PathKind::File => secret::look(root, &arguments.path),
        _ => resolved.check_exists().map(|()| None),
    }
}

/// Searches what is below a directory, or one file.
pub(crate) fn run(
    root: &Root,
    arguments: &Arguments,
    patience: &Patience,
    approved: &ApprovedSecrets,
) -> Result<Findings, FileError> {
    let glob = arguments.glob.as_deref().map(NameGlob::new).transpose()?;
    let matcher = expression(&arguments.pattern)?;
    let limit = arguments.limit.min(root.root_config.settings.max_list);
    let room = Room { matches: limit, bytes: MAX_SHOWN };
    let search =
        || FileSearch::new(matcher.clone(), arguments.context.min(MAX_CONTEXT), patience, &root.root_config);
    let resolved = root.find(&arguments.path, LastLink::Follow)?;
    let (results, left_out) = match resolved.kind() {
        PathKind::File => (one_file(root, &arguments.path, search(), room, approved)?, LeftOut::default()),
        _ => below(root, &resolved, glob.as_ref(), patience, SearchPool::new(room, &search))?,
    };
    Ok(Findings::collect(results, left_out, room))
}

fn one_file(
    root: &Root,
    path: &str,
    mut search: FileSearch<'_>,
    room: Room,
    approved: &ApprovedSecrets,
) -> Result<Results, FileError> {
    let opened = root.open_to_read(path)?;
    let (lines, end) = match search.file(&opened.path, opened.file, opened.size, room) {
        (_, End::Secret) => search.slice(&approved_content(root, path, approved)?, room),
        found => found,
    };
    let found = FileMatches { path: opened.path.to_string_lossy().into_owned(), lines };
    let unread = u64::from(end == End::Unread);
    Ok(Results { found: [(0, vec![found])].into(), unread, is_late: end == End::Late, secret: 0 })
}

/// Reads a secret file again, so that what is searched is what was compared with the approved content.
fn approved_content(root: &Root, path: &str, approved: &ApprovedSecrets) -> Result<Vec<u8>, FileError> {
    let OpenFile { file, size, path } = root.open_to_read(path)?;
    let bytes = read_up_to(file, root.root_config.settings.max_read_bytes, size)
        .map_err(|error| FileError::system(&path.to_string_lossy(), error))?;
    approved.check(root, &path, &bytes)?;
    Ok(bytes)
}

/// Searches the files below a directory, many at once.
fn below(
    root: &Root,
    resolved: &ResolvedPath,
    glob: Option<&NameGlob>,
    patience: &Patience,
    crew: SearchPool<'_>,
) -> Result<(Results, LeftOut), FileError> {
    let start = resolved.path();
    let mut walked = Ok(LeftOut::default());
    let results = crew.work(|foreman| {
        let mut batch = Batch { foreman, job: None };
        walked = walk(resolved, usize::MAX, patience, &mut |entry| {
            let below = || entry.path.strip_prefix(&start).unwrap_or(entry.path);
            let wanted = entry.kind == PathKind::File
                && !root.root_config.is_private(entry.path)
                && root.root_config.settings.allows(&entry.name.to_string_lossy())
                && glob.is_none_or(|glob| glob.matches(below()));
            if !wanted || batch.add(&entry) { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        });
        batch.flush();
    });
    Ok((results, walked?))
}

/// Files of one directory that become a job.
struct Batch<'f, 'scope, 'env, 'a> {
    foreman: &'f mut Foreman<'scope, 'env, 'a>,
    job: Option<Job>,
}

impl Batch<'_, '_, '_, '_> {
    /// Adds a file. Says whether another one could still add something.
    fn add(&mut self, entry: &WalkEntry<'_>) -> bool {
        let fits = |job: &Job| Arc::ptr_eq(&job.directory, entry.directory) && job.names.len() < MAX_FILES;
        let goes_on = self.job.as_ref().is_none_or(fits) || self.flush();
        let new = || {
            let path = entry.path.parent().unwrap_or(Path::new("")).to_path_buf();
            Job { directory: entry.directory.clone(), path, names: Vec::new() }
        };
        self.job.get_or_insert_with(new).names.push(entry.name.clone());
        goes_on
    }

    fn flush(&mut self) -> bool {
        self.job.take().is_none_or(|job| self.foreman.hand_out(job))
    }
}

impl Findings {
    /// Puts together what was found, as far as there is room for it, and says what is missing, the gravest first.
    fn collect(results: Results, left_out: LeftOut, mut room: Room) -> Self {
        let mut findings = Self::default();
        let found = results.found.into_values().flatten();
        let is_full = found.map(|file| findings.add(file, &mut room)).any(|fits| !fits);
        let late = LeftOut { late: left_out.late || results.is_late, ..left_out };
        let note = match results.unread {
            _ if is_full => Some("not all matches are shown; narrow `pattern`, `path` or `glob`".to_owned()),
            0 => late.note(),
            count => late.note().or_else(|| Some(format!("{count} files could not be read to their end"))),
        };
        let notes: Vec<String> = note.into_iter().chain(secret_note(results.secret)).collect();
        findings.note = (!notes.is_empty()).then(|| notes.join("; "));
        findings.truncated = is_full || late.late;
        findings
    }

    fn add(&mut self, found: FileMatches, room: &mut Room) -> bool {
        let count = found.lines.len();
        let shown: Vec<_> = found.lines.into_iter().take_while(|line| room.take(line)).collect();
        let matches = shown.iter().filter(|line| line.is_match).count();
        let fits = shown.len() == count;
        self.matches += matches;
        if matches > 0 {
            let lines = shown.into_iter().map(|line| line.text).collect();
            self.files.push(FileFindings { path: found.path, lines });
        }
        fits
    }
}

/// Says how many files were left out because they are secret.
fn secret_note(count: u64) -> Option<String> {
    match count {
        0 => None,
        1 => Some("1 secret file was left out".to_owned()),
        count => Some(format!("{count} secret files were left out")),
    }
}

/// A glob that is matched with the name alone where it has no slash.
struct NameGlob {
    matcher: GlobMatcher,
    by_name: bool,
}

impl NameGlob {
    fn new(glob: &str) -> Result<Self, FileError> {
        Ok(Self { matcher: compile(glob)?, by_name: !glob.contains('/') })
    }

    fn matches(&self, path: &Path) -> bool {
        if self.by_name {
            path.file_name().is_some_and(|name| self.matcher.is_match(name))
        } else {
            self.matcher.is_match(path)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_glob_without_a_slash_is_matched_with_the_name() {
        let by_name = NameGlob::new("*.rs").unwrap();
        assert!(by_name.matches(Path::new("src/deep/a.rs")));
        let by_path = NameGlob::new("src/*.rs").unwrap();
        assert!(by_path.matches(Path::new("src/a.rs")) && !by_path.matches(Path::new("src/deep/a.rs")));
    }
}
