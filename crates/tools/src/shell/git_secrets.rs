//! Secret files in what git shows.
//!
//! A file of a revision (`git show HEAD:.env`) is judged by its content. Differences leave out the paths that may be
//! secret by their name, by pathspecs that are added to the command: nobody could look at the whole history first.
//! What a difference shows of other files is seen by the runtime, which takes private keys and tokens out of it.

use std::path::Path;

use llm_do_core::{Digest, SecretFile};
use llm_do_secrets::{NameRule, name_rule, secret_kind, secret_name_globs};

use super::concerns::operands;
use super::flags::{Argument, FlagSyntax};
use super::git::subcommand_position;
use super::programs::git_subcommand;
use super::repository::Asked;
use super::secrets::{Judge, Secrets, add_all};

/// What every added pathspec begins with. They count from the top of the repository, whatever the case of a name.
pub(crate) const EXCLUDED: &str = ":(exclude,top,icase,glob)**/";

/// Names of files that often hold private keys, which only their content shows: here nobody can look at it.
const KEY_NAMES: &[&str] = &["*.pem", "*.key", "id_rsa", "id_dsa", "id_ecdsa", "id_ed25519", ".*_history"];

/// Globs for paths that may be secret, by the rules that hold for all files.
fn secret_names() -> impl Iterator<Item = String> {
    secret_name_globs().into_iter().chain(KEY_NAMES.iter().map(|name| (*name).to_owned()))
}

/// Flags with which `git log` shows differences.
const PATCH_FLAGS: &[&str] = &[
    "-p",
    "-u",
    "-U",
    "-W",
    "-c",
    "-m",
    "--patch",
    "--unified",
    "--function-context",
    "--patch-with-raw",
    "--patch-with-stat",
    "--binary",
    "--check",
    "--word-diff",
    "--word-diff-regex",
    "--color-words",
    "--cc",
    "--dd",
    "--diff-merges",
    "--remerge-diff",
    "--full-diff",
];

/// Judges a command of git.
pub(crate) async fn find(arguments: &[String], judge: &Judge<'_>, asked: &Asked<'_>) -> Secrets {
    let (global, rest) = arguments.split_at(subcommand_position(arguments));
    let mut secrets = Secrets::default();
    let Some((subcommand, rest)) = rest.split_first() else { return secrets };
    let Some(table) = git_subcommand(subcommand) else {
        for word in rest {
            add_all(word, judge, &mut secrets);
            add_blob(word, judge, asked, &mut secrets).await;
        }
        return secrets;
    };
    let read = table.parse(rest, FlagSyntax::Exact);
    let command = GitCommand { global, subcommand, rest, read: &read, judge, asked };
    command.add_files(&mut secrets).await;
    command.leave_out(&mut secrets).await;
    secrets
}

/// A command of git that only reads.
struct GitCommand<'a> {
    global: &'a [String],
    subcommand: &'a str,
    rest: &'a [String],
    read: &'a [Argument],
    judge: &'a Judge<'a>,
    asked: &'a Asked<'a>,
}

impl GitCommand<'_> {
    /// Adds the files that the command names: of revisions, by the names of their content, or plain ones.
    async fn add_files(&self, secrets: &mut Secrets) {
        for word in operands(self.read) {
            if self.has(&["--no-index"]) {
                add_all(word, self.judge, secrets);
            }
            if is_blob(word) {
                add_blob(word, self.judge, self.asked, secrets).await;
            } else if matches!(self.subcommand, "show" | "diff") && self.asked.kind_of(word).await == "blob" {
                add_nameless(word, self.asked, secrets).await;
            }
        }
        let lines = self.values("-L").filter_map(|value| value.rsplit(':').next());
        for path in lines.filter(|path| may_be_secret(path, self.judge)) {
            secrets.read.push(self.unseen(path));
        }
    }

    /// Adds pathspecs to a command that shows differences.
    async fn leave_out(&self, secrets: &mut Secrets) {
        if !self.shows_differences() || self.has(&["-L"]) {
            return;
        }
        let operands = operands(self.read);
        let is_literal = self.global.iter().any(|word| word.ends_with("-pathspecs"));
        let has_directory = || operands.iter().any(|word| self.judge.root.path().join(word).is_dir());
        if is_literal || self.has(&["--full-diff"]) || (self.has(&["--no-index"]) && has_directory()) {
            return secrets.read.push(self.unseen("what git shows"));
        }
        // Files of revisions, and plain files, are shown without pathspecs, and were judged by themselves.
        let mut blobs = operands.iter().map(|word| is_blob(word));
        let shows_blobs = match self.subcommand {
            "diff" => blobs.any(|is_blob| is_blob),
            _ => !operands.is_empty() && blobs.all(|is_blob| is_blob),
        };
        if self.has(&["--no-index"]) || shows_blobs {
            return;
        }
        // Renames are followed for one path alone.
        if self.has(&["--follow"]) {
            let followed = operands.iter().filter(|word| may_be_secret(word, self.judge));
            return secrets.read.extend(followed.map(|word| self.unseen(word)));
        }
        if self.subcommand == "log" && !self.limits_paths(&operands) {
            // With pathspecs git leaves commits out that touch nothing else: these are shown all the same.
            secrets.added.extend(["--full-history", "--sparse"].map(str::to_owned));
        }
        secrets.added.extend(secret_names().map(|name| format!("{EXCLUDED}{name}")));
        secrets.added_last = true;
        secrets.left_out = self.tracked().await;
    }

    /// Returns whether a command may name paths: pathspecs limit the commits that it shows then.
    fn limits_paths(&self, operands: &[&str]) -> bool {
        let exists = |word: &str| self.judge.root.path().join(word).symlink_metadata().is_ok();
        self.rest.iter().any(|word| word == "--")
            || operands.iter().any(|word| exists(word) || word.starts_with(':'))
    }

    fn shows_differences(&self) -> bool {
        match self.subcommand {
            "log" => self.has(PATCH_FLAGS) || self.read.iter().any(|one| matches!(one, Argument::Unknown(_))),
            "status" => self.has(&["-v", "--verbose"]),
            _ => true,
        }
    }

    /// Says which files of the index are left out.
    async fn tracked(&self) -> Option<String> {
        let question = ["ls-files", "-z", "--"].into_iter().map(str::to_owned);
        let names = secret_names().map(|name| format!(":(top,icase,glob)**/{name}"));
        let arguments: Vec<String> = question.chain(names).collect();
        let (_, printed) =
            self.asked.about(&arguments.iter().map(String::as_str).collect::<Vec<_>>()).await?;
        let printed = String::from_utf8_lossy(&printed);
        let paths: Vec<String> = printed
            .split('\0')
            .filter(|path| !path.is_empty())
            .take(5)
            .map(|path| format!("`{path}`"))
            .collect();
        (!paths.is_empty())
            .then(|| format!("files that may be secret are left out of differences: {}", paths.join(", ")))
    }

    fn has(&self, names: &[&str]) -> bool {
        self.read.iter().any(|one| match one {
            Argument::Flag { name, .. } => names.contains(&name.as_str()),
            Argument::Unknown(word) => names.contains(&word.as_str()),
            Argument::Operand(_) => false,
        })
    }

    fn values(&self, flag: &str) -> impl Iterator<Item = &str> {
        self.read.iter().filter_map(move |one| match one {
            Argument::Flag { name, value: Some(value), .. } if name == flag => Some(value.as_str()),
            _ => None,
        })
    }

    /// What nobody can look at before it is shown.
    fn unseen(&self, path: &str) -> SecretFile {
        let arguments = [self.global, self.rest].concat();
        let content = Digest::hash_parts(arguments.iter().map(String::as_bytes));
        SecretFile { path: path.to_owned(), what: "it may show secret files of the past".to_owned(), content }
    }
}

/// `HEAD:path`, `:path` or `:0:path`; not a pathspec and not a search for a commit.
fn is_blob(word: &str) -> bool {
    word.contains(':') && ![":(", ":/", ":!", ":^"].iter().any(|magic| word.starts_with(magic))
}

fn may_be_secret(path: &str, judge: &Judge<'_>) -> bool {
    let path = judge.root.path().join(path);
    name_rule(&path) != NameRule::Ordinary && !judge.files.allows(&path)
}

/// Adds a file of a revision, if it is secret.
async fn add_blob(word: &str, judge: &Judge<'_>, asked: &Asked<'_>, secrets: &mut Secrets) {
    let Some((_, path)) = word.rsplit_once(':').filter(|_| is_blob(word)) else { return };
    let Some(content) = asked.content_of(word).await else { return };
    let path = judge.root.path().join(path.trim_start_matches("./"));
    let Some(kind) = secret_kind(&path, &content) else { return };
    let file = SecretFile { path: word.to_owned(), what: kind.to_string(), content: Digest::hash(&content) };
    if judge.files.allows(&path) { secrets.allowed.push(file) } else { secrets.read.push(file) }
}

/// Adds a content that is named without its path: it might be that of any file, so it is judged as the strictest.
async fn add_nameless(word: &str, asked: &Asked<'_>, secrets: &mut Secrets) {
    let Some(content) = asked.content_of(word).await else { return };
    let Some(kind) = secret_kind(Path::new(".env"), &content) else { return };
    secrets.read.push(SecretFile {
        path: word.to_owned(),
        what: kind.to_string(),
        content: Digest::hash(&content),
    });
}
