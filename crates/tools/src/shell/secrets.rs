//! Secret files among the files that a command would show.
//!
//! A file that a command names is judged like a read: it asks. A search through a directory leaves secret files out, by
//! flags that are added to the command. Programs that show no content (`ls`, `stat`) are not concerned, and a program
//! that is not known may read more than it names: that is for whoever allows it.
//!
//! git is judged in [`super::git_secrets`].

use std::fs::File;
use std::io::Read;
use std::path::Path;

use llm_do_core::{Digest, SecretFile};
use llm_do_secrets::{HEAD_BYTES, SecretFiles, SecretKind, secret_kind};

use super::concerns::{operands, paths_among, values_in};
use super::flags::{Argument, Takes};
use super::programs::{Grammar, program};
use super::root::Root;
use super::secret_walk::{Walked, secrets_below};

/// How much of a secret file makes its digest.
const MAX_DIGEST_BYTES: u64 = 16 * 1024 * 1024;

/// Programs that show names, sizes and dates of files, but not what is in them. `file` is not among them: it quotes the
/// beginning of some texts.
const WITHOUT_CONTENT: [&str; 9] = ["ls", "find", "stat", "du", "tree", "pwd", "date", "whoami", "echo"];

/// What was found about one command.
#[derive(Debug, Default, Clone)]
pub(crate) struct Secrets {
    /// Secret files that it would show. They ask.
    pub(crate) read: Vec<SecretFile>,
    /// Files that would be secret, but that the project allows.
    pub(crate) allowed: Vec<SecretFile>,
    /// Flags and operands that are added to the command.
    pub(crate) added: Vec<String>,
    /// Whether what is added are operands, which come last.
    pub(crate) added_last: bool,
    /// What is left out by them, for the model.
    pub(crate) left_out: Option<String>,
    /// What else a person should look at.
    pub(crate) concerns: Vec<String>,
}

/// Judges files as the project wants them judged.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Judge<'a> {
    pub(crate) root: &'a Root,
    pub(crate) files: &'a SecretFiles,
}

impl Judge<'_> {
    /// Returns what is secret about a file without links on the way to it, and whether the project allows it.
    pub(crate) fn file(&self, real: &Path) -> Option<(SecretKind, bool)> {
        let kind = secret_kind(real, &beginning(real, HEAD_BYTES as u64)?)?;
        Some((kind, self.files.allows(real)))
    }

    /// Adds a file to what was found, if it is secret.
    fn add(&self, word: &str, secrets: &mut Secrets) {
        let Some(real) = self.root.resolve(Path::new(word)) else { return };
        let Some((kind, is_allowed)) = self.file(&real) else { return };
        let bytes = beginning(&real, MAX_DIGEST_BYTES).unwrap_or_default();
        let file = SecretFile { path: word.to_owned(), what: kind.to_string(), content: Digest::hash(bytes) };
        let files = if is_allowed { &mut secrets.allowed } else { &mut secrets.read };
        if !files.contains(&file) {
            files.push(file);
        }
    }
}

/// Directories whose files are made up by the kernel: reading one may wait without end, or change something.
const KERNEL_DIRECTORIES: [&str; 3] = ["/proc", "/sys", "/dev"];

/// Returns whether a path leads to files that are made up by the kernel.
pub(crate) fn is_of_kernel(real: &Path) -> bool {
    KERNEL_DIRECTORIES.iter().any(|directory| real.starts_with(directory))
}

/// Reads the beginning of a regular file; nothing if there is none.
fn beginning(real: &Path, limit: u64) -> Option<Vec<u8>> {
    // What a file is is looked at first: opening a pipe would wait.
    if is_of_kernel(real) || !real.symlink_metadata().ok()?.is_file() {
        return None;
    }
    let mut bytes = Vec::new();
    File::open(real).ok()?.take(limit).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

/// Judges a command, but for one of git.
pub(crate) fn find(name: &str, arguments: &[String], judge: &Judge<'_>) -> Secrets {
    let mut secrets = Secrets::default();
    let known = program(name);
    let understood =
        known.map(|program| (program.grammar, program.flags.parse(arguments, program.flag_syntax)));
    let is_understood = |read: &[Argument]| !read.iter().any(|one| matches!(one, Argument::Unknown(_)));
    match understood {
        // It shows names, unless it runs another program.
        Some((Grammar::Find, _)) if !arguments.iter().any(|word| runs_program(word)) => {}
        Some((grammar, read)) if is_understood(&read) => {
            for word in files_among(name, grammar, &read) {
                judge.add(word, &mut secrets);
            }
            search_through(name, grammar, &read, judge, &mut secrets);
        }
        _ => arguments.iter().for_each(|word| add_all(word, judge, &mut secrets)),
    }
    secrets
}

fn runs_program(word: &str) -> bool {
    ["-exec", "-ok"].iter().any(|start| word.starts_with(start))
}

/// A word may be a path, or have one behind `=` or behind the letters of a cluster of flags.
pub(crate) fn add_all(word: &str, judge: &Judge<'_>, secrets: &mut Secrets) {
    std::iter::once(word).chain(values_in(word)).for_each(|path| judge.add(path, secrets));
}

/// The files that a known program reads: its operands, and what its flags take.
fn files_among<'a>(name: &str, grammar: Grammar, read: &'a [Argument]) -> Vec<&'a str> {
    let by_flags = read.iter().filter_map(|argument| match argument {
        // The value of a flag that asks may be a path, too.
        Argument::Flag { flag, value: Some(value), .. } if flag.takes == Takes::Path || flag.asks => {
            Some(value.as_str())
        }
        _ => None,
    });
    let mut files: Vec<&str> = by_flags.flat_map(|value| [value, value.trim_start_matches('=')]).collect();
    if !WITHOUT_CONTENT.contains(&name) && grammar != Grammar::AllText {
        let operands = operands(read);
        files.extend(paths_among(grammar, read, &operands));
    }
    files
}

/// Leaves secret files out of a search through directories.
fn search_through(name: &str, grammar: Grammar, read: &[Argument], judge: &Judge<'_>, secrets: &mut Secrets) {
    let Some(search) = DirectorySearch::from_arguments(name, read) else { return };
    let operands = operands(read);
    let starts = paths_among(grammar, read, &operands);
    // Behind links are files of other directories, too.
    let starts = if starts.is_empty() || search.follows_links { &["."][..] } else { starts };
    let mut found = Walked::default();
    for start in starts.iter().filter(|start| judge.root.path().join(start).is_dir()) {
        secrets_below(Path::new(start), judge, search.respects_ignore_files, &mut found);
    }
    if found.is_cut {
        secrets.concerns.push(format!("`{name}` reads too many files here to look for secret ones first"));
    }
    secrets.added.extend(found.paths.iter().map(|path| search.exclusion(path)));
    secrets.added.dedup();
    secrets.left_out = found.note();
}

/// A search through directories.
#[derive(Debug, Clone, Copy)]
struct DirectorySearch {
    is_ripgrep: bool,
    follows_links: bool,
    /// Whether files that are ignored or hidden are left out anyway.
    respects_ignore_files: bool,
}

impl DirectorySearch {
    fn from_arguments(name: &str, read: &[Argument]) -> Option<Self> {
        let flags = || {
            read.iter().filter_map(|argument| match argument {
                Argument::Flag { name, flag, value, .. } => Some((name.as_str(), flag, value.as_deref())),
                _ => None,
            })
        };
        let recurses = |(name, _, value): (&str, _, Option<&str>)| {
            matches!(name, "-r" | "-R" | "--recursive" | "--dereference-recursive")
                || (matches!(name, "-d" | "--directories") && value == Some("recurse"))
        };
        let finds_more = |(name, _, _): (&str, _, Option<&str>)| {
            matches!(name, "-u" | "-." | "-g" | "-t")
                || [
                    "--no-ignore",
                    "--hidden",
                    "--unrestricted",
                    "--glob",
                    "--iglob",
                    "--type",
                    "--ignore",
                    "--no-require",
                ]
                .iter()
                .any(|start| name.starts_with(start))
        };
        let is_ripgrep = name == "rg";
        let is_recursive_grep = name == "grep" && flags().any(recurses);
        if !is_ripgrep && !is_recursive_grep {
            return None;
        }
        let follows_links = flags().any(|(_, flag, _)| flag.follows_links);
        let respects_ignore_files = is_ripgrep && !follows_links && !flags().any(finds_more);
        Some(Self { is_ripgrep, follows_links, respects_ignore_files })
    }

    /// The flag that leaves out one file. GNU grep compares names only, and so does ripgrep behind links.
    fn exclusion(self, path: &Path) -> String {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        match (self.is_ripgrep, self.follows_links) {
            (true, false) => format!("--glob=!/{}", globset::escape(&path.to_string_lossy())),
            (true, true) => format!("--glob=!{}", globset::escape(&name)),
            (false, _) => format!("--exclude={}", escaped(&name)),
        }
    }
}

/// Escapes what `fnmatch` does not take as it is.
fn escaped(name: &str) -> String {
    name.chars().fold(String::new(), |mut text, ch| {
        if matches!(ch, '*' | '?' | '[' | '\\') {
            text.push('\\');
        }
        text.push(ch);
        text
    })
}

impl Secrets {
    /// Returns the words of a command with what is added: flags before `--`, operands at the end.
    pub(crate) fn complete(&self, arguments: &[String]) -> Vec<String> {
        let end = arguments.iter().position(|word| word == "--").filter(|_| !self.added_last);
        let (before, behind) = arguments.split_at(end.unwrap_or(arguments.len()));
        [before, &self.added, behind].concat()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_come_before_the_end_of_flags_and_operands_last() {
        let split = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        let flags = Secrets { added: split("--exclude=.env"), ..Secrets::default() };
        assert_eq!(flags.complete(&split("-r x .")), split("-r x . --exclude=.env"));
        assert_eq!(flags.complete(&split("-r -- x .")), split("-r --exclude=.env -- x ."));
        let operands = Secrets { added_last: true, ..flags };
        assert_eq!(operands.complete(&split("log -- x")), split("log -- x --exclude=.env"));
    }

    /// What ripgrep is told to leave out, matched by its own library.
    #[test]
    fn ripgrep_leaves_out_exactly_the_secret_files() {
        let folder = llm_do_testing::TestDir::new();
        for path in [".env", "sub/.env", "sub/{x}/key[1].env"] {
            folder.write(path, "PASSWORD=correct-horse\n");
        }
        folder.write("sub/plain.txt", "text\n");
        let root = Root::new(folder.path()).unwrap();
        let judge = Judge { root: &root, files: &SecretFiles::default() };
        let added = |text: &str| {
            let argv: Vec<String> = text.split(' ').map(str::to_owned).collect();
            find("rg", &argv, &judge).added
        };
        for command in
            ["--hidden x", "-uuu x .", "-. x", "-g * -g .env x", "--no-ignore --hidden x", "-uuL x"]
        {
            let mut overrides = ignore::overrides::OverrideBuilder::new(root.path());
            for flag in added(command) {
                overrides.add(flag.strip_prefix("--glob=").unwrap()).unwrap();
            }
            let overrides = overrides.build().unwrap();
            let is_left_out = |path: &str| overrides.matched(root.path().join(path), false).is_ignore();
            for path in [".env", "sub/.env", "sub/{x}/key[1].env"] {
                assert!(is_left_out(path), "{command}: {path}");
            }
            assert!(!is_left_out("sub/plain.txt") && !is_left_out("sub/key1.env"), "{command}");
        }
        // Hidden files are not searched anyway, and not looked at.
        assert_eq!(added("x").len(), 1);
        assert_eq!(find("rg", &["x".into(), ".env".into()], &judge).read.len(), 1);
    }

    #[test]
    fn names_are_excluded_as_they_are_written() {
        assert_eq!(escaped(r"a*b?[c]\d"), r"a\*b\?\[c]\\d");
    }
}
