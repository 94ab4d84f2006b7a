//! Commands that name files which only a person may let be written, each time anew.
//!
//! Programs that are known only to read may name them. Any other program might write what it names, and into a
//! directory that it names whatever else it names: `cp new/main.md prompts`, `cp -r new/. prompts`.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use llm_do_core::Approval;

use super::concerns::values_in;
use super::parse::CommandLine;
use super::policy::{Judgment, keeps_files};
use super::root::Root;
use crate::filesystem::Guarded;

/// How many files one command may put into directories before nobody looks at them all.
const MAX_FILES: usize = 10_000;

/// Says which protected files a command line names, and why they are protected.
pub(crate) fn reasons(
    line: &CommandLine,
    judgment: &Judgment,
    root: &Root,
    guarded: &Guarded,
) -> Vec<String> {
    let asks = judgment.approval != Approval::PreApproved;
    let may_write = |argv: &&Vec<String>| asks || !keeps_files(argv, root);
    line.commands()
        .filter(may_write)
        .flat_map(|argv| Command { arguments: &argv[1..], root, guarded }.protected())
        .collect()
}

/// The words behind a program that may write.
pub(super) struct Command<'c> {
    pub(super) arguments: &'c [String],
    pub(super) root: &'c Root,
    pub(super) guarded: &'c Guarded,
}

impl Command<'_> {
    fn protected(&self) -> Vec<String> {
        let paths: BTreeSet<&str> = self.arguments.iter().flat_map(|word| paths_in(word)).collect();
        let named = paths.iter().filter_map(|path| self.reason(Path::new(path)));
        named.chain(self.put_into_directories(&paths)).collect()
    }

    fn reason(&self, path: &Path) -> Option<String> {
        let shown = path.display();
        let Some(resolved) = self.root.resolve(path) else {
            return Some(format!("`{shown}` is protected: nobody can tell where it leads"));
        };
        let paths = [resolved, self.root.path().join(path)];
        let reason = paths.iter().find_map(|path| self.guarded.reason(path))?;
        Some(format!("`{shown}` is protected: {reason}"))
    }

    /// Finds a protected file that the command may put into one of its directories.
    fn put_into_directories(&self, paths: &BTreeSet<&str>) -> Option<String> {
        self.arriving(paths, |file| self.reason(file)).unwrap_or_else(|target| {
            Some(format!("`{target}` is protected: too much may be written into it to look at"))
        })
    }

    /// Finds the first file that the command may put into one of its directories and that a judge objects to; an error
    /// names the directory for which there are too many.
    pub(super) fn arriving<'p>(
        &self,
        paths: &BTreeSet<&'p str>,
        judge: impl Fn(&Path) -> Option<String>,
    ) -> Result<Option<String>, &'p str> {
        let mut left = MAX_FILES;
        for target in self.targets(paths) {
            for source in paths.iter().filter(|source| **source != target) {
                let files = self.files_of(source, &mut left);
                if let Some(objection) = files.iter().find_map(|file| judge(&Path::new(target).join(file))) {
                    return Ok(Some(objection));
                }
                if left == 0 {
                    return Err(target);
                }
            }
        }
        Ok(None)
    }

    /// The directories among the paths, and one that would be made: the last word, where it does not exist.
    fn targets<'p>(&self, paths: &BTreeSet<&'p str>) -> Vec<&'p str> {
        let last = self.arguments.last().map(String::as_str).filter(|word| !word.starts_with('-'));
        let is_target = |path: &&&str| {
            let destination = self.root.path().join(path);
            destination.is_dir() || (last == Some(**path) && !destination.exists())
        };
        paths.iter().filter(is_target).copied().collect()
    }

    /// The names under which a file, or the files of a directory, arrive in another directory.
    fn files_of(&self, source: &str, left: &mut usize) -> Vec<PathBuf> {
        let name = Path::new(source).file_name().unwrap_or(OsStr::new("."));
        let mut found = vec![PathBuf::from(name)];
        *left = left.saturating_sub(1);
        let mut pending = vec![PathBuf::new()];
        let source = self.root.path().join(source);
        while let Some(directory) = pending.pop() {
            for entry in fs::read_dir(source.join(&directory)).into_iter().flatten().flatten().take(*left) {
                *left = left.saturating_sub(1);
                let file = directory.join(entry.file_name());
                if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                    pending.push(file.clone());
                }
                // With the directory's own name, and without it as for `source/.`
                found.extend([Path::new(name).join(&file), file]);
            }
        }
        found
    }
}

/// A word may be a path, or have one behind `=` or behind the letters of a cluster of flags.
pub(super) fn paths_in(word: &str) -> Vec<&str> {
    std::iter::once(word).chain(values_in(word)).filter(|path| !path.is_empty()).collect()
}
