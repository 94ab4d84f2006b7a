//! Files named by `@path` or `@"a path"`: how they are offered, and found in what was sent.

use std::fs::{self, DirEntry};
use std::path::{Component, Path, PathBuf};

use llm_do_core::visible_line;

use super::{Choice, rank};

/// How many entries of a directory are looked at.
const MAX_ENTRIES: usize = 2_000;
/// Directories that hold what tools made, and are offered only to those who type their name.
const MADE_BY_TOOLS: [&str; 3] = [".git", "target", "node_modules"];

/// Returns the word that ends a piece of a line. One that begins with `@"` goes on to the closing quote.
pub(crate) fn word_before(line: &str) -> &str {
    let quoted = line.rmatch_indices("@\"").map(|(at, _)| at).find(|at| begins_word(line, *at));
    if let Some(at) = quoted
        && !line[at + 2..].contains('"')
    {
        return &line[at..];
    }
    let start = line
        .rfind(char::is_whitespace)
        .map_or(0, |at| at + line[at..].chars().next().map_or(0, char::len_utf8));
    &line[start..]
}

/// Returns whether a word begins at this offset: at the `@` of `a@b.c` none does.
fn begins_word(text: &str, at: usize) -> bool {
    text[..at].chars().next_back().is_none_or(|before| before.is_whitespace() || "([{<'\"".contains(before))
}

/// Offers the entries of a directory below the root that go on as it was typed.
pub(super) fn matching(root: &Path, test_support: &str) -> Vec<Choice> {
    let test_support = test_support.strip_prefix('"').unwrap_or(test_support);
    let (directory, name) =
        test_support.rsplit_once('/').map_or(("", test_support), |(directory, name)| (directory, name));
    if !stays_below(directory) || test_support.starts_with('/') {
        return Vec::new();
    }
    let Ok(entries) = fs::read_dir(root.join(directory)) else { return Vec::new() };
    let mut ranked: Vec<_> = entries
        .take(MAX_ENTRIES)
        .filter_map(|entry| offer(&entry.ok()?, &test_support[..test_support.len() - name.len()], name))
        .collect();
    ranked.sort_by(|(rank, one), (other_rank, other)| {
        (rank, one.whole, &one.label).cmp(&(other_rank, other.whole, &other.label))
    });
    ranked.into_iter().map(|(_, choice)| choice).collect()
}

fn offer(entry: &DirEntry, directory: &str, test_support: &str) -> Option<(u8, Choice)> {
    let name = entry.file_name().into_string().ok()?;
    // A dot asks for hidden files, and for nothing else.
    let is_hidden = name.starts_with('.') != test_support.starts_with('.');
    let is_asked_for = test_support.len() > 1 && name.starts_with(test_support);
    let is_made = MADE_BY_TOOLS.contains(&name.as_str()) && !is_asked_for;
    let is_typeable = !name.contains(|c: char| c == '"' || c.is_control());
    if is_hidden || is_made || !is_typeable {
        return None;
    }
    let rank = rank(&name, test_support)?;
    let is_directory = is_directory(entry);
    let slash = if is_directory { "/" } else { "" };
    let inserted = quoted(&format!("{directory}{name}{slash}"), !is_directory);
    let label = visible_line(&format!("{name}{slash}"));
    Some((rank, Choice { inserted, label, description: "".into(), whole: !is_directory, sends: false }))
}

fn is_directory(entry: &DirEntry) -> bool {
    match entry.file_type() {
        Ok(kind) if kind.is_symlink() => entry.path().is_dir(),
        Ok(kind) => kind.is_dir(),
        Err(_) => false,
    }
}

/// Writes a path so that it is one word. The quote of a directory stays open for what follows.
fn quoted(path: &str, is_whole: bool) -> String {
    match (path.contains(char::is_whitespace), is_whole) {
        (false, _) => format!("@{path}"),
        (true, true) => format!("@\"{path}\""),
        (true, false) => format!("@\"{path}"),
    }
}

/// Whether a path names something below the directory it is read from, by its words alone.
fn stays_below(path: &str) -> bool {
    Path::new(path).components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir))
}

/// Finds the files below the root that a message names with `@`, each once, in their order.
///
/// A name that is not a file stays plain text, and so does an e-mail address. The message itself is sent as it is.
pub(crate) fn attachments(text: &str, root: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for (at, _) in text.match_indices('@').filter(|(at, _)| begins_word(text, *at)) {
        let file = file_named(&text[at + 1..], root);
        found.extend(file.filter(|file| !found.contains(file)));
    }
    found
}

fn file_named(text: &str, root: &Path) -> Option<PathBuf> {
    if let Some(quoted) = text.strip_prefix('"') {
        let name = quoted.split(['"', '\n']).next()?;
        return existing(name, root);
    }
    let name = text.split(char::is_whitespace).next()?;
    existing(name, root).or_else(|| {
        // Punctuation at the end of a sentence is not part of a name, unless there is a file of that name.
        let ends = |c: char| c.is_ascii_punctuation() && !matches!(c, '/' | '_' | '-');
        existing(name.trim_end_matches(ends), root)
    })
}

fn existing(name: &str, root: &Path) -> Option<PathBuf> {
    let file = root.join(name);
    (!name.is_empty() && stays_below(name) && file.is_file()).then_some(file)
}
