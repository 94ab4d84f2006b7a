//! Commands that name files which only a person may let be written, each time anew.
//!
//! Programs that are known only to read may name them. Any other program might write what it names.

use std::path::{Path, PathBuf};

use llm_do_core::Approval;

use super::parse::CommandLine;
use super::policy::Judgement;
use super::programs::program;
use super::root::Root;
use crate::filesystem::Guarded;

/// Says which protected files a command line names, and why they are protected.
pub(crate) fn of(line: &CommandLine, judgement: &Judgement, root: &Root, guarded: &Guarded) -> Vec<String> {
    let asks = judgement.approval != Approval::PreApproved;
    let may_write = |words: &&Vec<String>| asks || words.first().is_none_or(|name| program(name).is_none());
    let named = line
        .commands()
        .filter(may_write)
        .flat_map(|words| words.iter().skip(1).flat_map(|word| paths_in(word)));
    let protected = named.filter_map(|word| {
        let reason = places(word, root).iter().find_map(|place| guarded.reason(place))?;
        Some(format!("`{word}` is protected: {reason}"))
    });
    protected.collect()
}

/// A word may be a path, or have one behind `=` or right behind a flag's letter.
fn paths_in(word: &str) -> Vec<&str> {
    let value = word.split_once('=').map(|(_, value)| value);
    let joined = word.strip_prefix('-').filter(|rest| !rest.starts_with('-'));
    let joined = joined.and_then(|rest| rest.char_indices().nth(1).map(|(at, _)| &rest[at..]));
    [Some(word), value, joined].into_iter().flatten().filter(|path| !path.is_empty()).collect()
}

/// Where a path leads, and the name under which it is written.
fn places(path: &str, root: &Root) -> Vec<PathBuf> {
    root.resolve(Path::new(path)).into_iter().chain([root.path().join(path)]).collect()
}
