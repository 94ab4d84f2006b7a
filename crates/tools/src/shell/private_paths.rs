//! Commands that would reach directories of llm-do itself: records, trust, configuration and cache.
//!
//! No approval lets them run. A path inside such a directory is refused, and so is a directory above it where the
//! program looks at or changes what is below. A program that finds its files by other means than its words is not seen
//! here; the sandbox limits it.

use std::ffi::OsStr;
use std::path::Path;

use super::parse::CommandLine;
use super::policy::keeps_files;
use super::protection::{Command, paths_in};
use super::root::Root;
use crate::filesystem::Guarded;

/// Programs that look at a directory that they are given, and not at what is below it.
const SHALLOW: [&str; 11] =
    ["ls", "stat", "file", "echo", "pwd", "test", "mkdir", "touch", "basename", "dirname", "git"];

/// Programs that look through the working directory where they are given no other, and how many of their words are
/// not paths.
const FROM_HERE: [(&str, usize); 6] =
    [("grep", 1), ("rg", 1), ("fd", 1), ("find", 0), ("tree", 0), ("du", 0)];

/// Programs whose last word is where they write, and not what they take.
const INTO_LAST: [&str; 5] = ["cp", "mv", "ln", "install", "rsync"];

/// Says which directories of llm-do itself a command line would reach.
pub(crate) fn private_paths(line: &CommandLine, root: &Root, guarded: &Guarded) -> Vec<String> {
    if !guarded.has_private() {
        return Vec::new();
    }
    line.commands().filter_map(|argv| CommandReach::new(argv, root, guarded)?.private()).collect()
}

/// What one command may reach.
struct CommandReach<'c> {
    program: &'c str,
    arguments: &'c [String],
    may_write: bool,
    root: &'c Root,
    guarded: &'c Guarded,
}

impl<'c> CommandReach<'c> {
    fn new(argv: &'c [String], root: &'c Root, guarded: &'c Guarded) -> Option<Self> {
        let (program, rest) = argv.split_first()?;
        let program = Path::new(program).file_name().and_then(OsStr::to_str).unwrap_or(program);
        Some(Self { program, arguments: rest, may_write: !keeps_files(argv, root), root, guarded })
    }

    fn private(&self) -> Option<String> {
        let target = self.target();
        let paths = self.arguments.iter().flat_map(|word| paths_in(word));
        let mut paths = paths.chain(self.working_directory());
        let reached =
            paths.find(|path| self.is_private(path) || (Some(*path) != target && self.holds_private(path)));
        let reason =
            |path: &str| format!("`{path}` leads to files of llm-do itself, and no tool reaches them");
        reached.map(reason).or_else(|| self.arrives_in_private())
    }

    /// What the program looks through where its words name nothing.
    fn working_directory(&self) -> Option<&'static str> {
        let (_, other_operands) = FROM_HERE.iter().find(|(program, _)| *program == self.program)?;
        let operands = self.arguments.iter().filter(|word| !word.starts_with('-')).count();
        (operands <= *other_operands).then_some(".")
    }

    /// The directory or file into which the program writes what its other words name.
    fn target(&self) -> Option<&'c str> {
        if !INTO_LAST.contains(&self.program) {
            return None;
        }
        let mut arguments = self.arguments.iter().map(String::as_str);
        let long = |word: &&'c str| word.strip_prefix("--target-directory=");
        let is_flag = |word: &str| word.starts_with('-') && !word.starts_with("--") && word.contains('t');
        while let Some(word) = arguments.next() {
            match word {
                "-t" | "--target-directory" => return arguments.next(),
                word if long(&word).is_some() => return long(&word),
                word if is_flag(word) => return word.split_once('t').map(|(_, target)| target),
                _ => {}
            }
        }
        self.arguments.last().map(String::as_str)
    }

    fn is_private(&self, path: &str) -> bool {
        self.resolved_paths(path).any(|path| match self.may_write {
            true => self.guarded.is_unwritable(&path),
            false => self.guarded.is_unreadable(&path),
        })
    }

    fn holds_private(&self, path: &str) -> bool {
        let is_deep =
            !SHALLOW.contains(&self.program) || self.arguments.iter().any(|word| is_recursive(word));
        let holds = |path: &Path| match self.may_write {
            true => self.guarded.leads_to_unwritable(path),
            false => self.guarded.leads_to_unreadable(path),
        };
        is_deep && self.resolved_paths(path).any(|path| holds(&path))
    }

    /// A path as it is written, and where it leads.
    fn resolved_paths(&self, path: &str) -> impl Iterator<Item = std::path::PathBuf> {
        self.root.resolve(Path::new(path)).into_iter().chain([self.root.path().join(path)])
    }

    /// Finds a file that would arrive in a private directory below the target: `cp -r new/. state`.
    fn arrives_in_private(&self) -> Option<String> {
        if !self.may_write || !self.holds_private(self.target()?) {
            return None;
        }
        let command = Command { arguments: self.arguments, root: self.root, guarded: self.guarded };
        let paths = self.arguments.iter().flat_map(|word| paths_in(word)).collect();
        let objection = |file: &Path| {
            let shown = file.display().to_string();
            self.is_private(&shown).then(|| format!("`{shown}` would be a file of llm-do itself"))
        };
        let too_many = |target: &str| Some(format!("too much may be written into `{target}` to look at"));
        command.arriving(&paths, objection).unwrap_or_else(too_many)
    }
}

fn is_recursive(word: &str) -> bool {
    word == "--recursive" || (word.starts_with('-') && !word.starts_with("--") && word.contains('R'))
}
